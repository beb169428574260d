"""`longtake demo`: its numbers are compared, and it leaves nothing behind however it ends."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from infra.cli.demo_summary import DemoSummary, SeamSummary, disagreements
from infra.cli.measured import covered_us
from schemas.records import Verdict
from tests.cli.events import finished

ANNOUNCED = finished("film")
FRAMES = 48
_DEADLINE_S = 60.0


def good() -> DemoSummary:
    return DemoSummary(
        job_id="film",
        verdict=Verdict.PASS,
        frames=FRAMES,
        fps=24.0,
        duration_s=2.0,
        video="/x/video.mp4",
        sha256="0",
        pieces=2,
        frame_rows=FRAMES,
        distinct_frame_rows=FRAMES,
        finished_events=1,
        psnr_y_mean=41.0,
        psnr_y_min=39.5,
        vmaf_mean=95.0,
        vmaf_min=91.0,
        seams=(SeamSummary(piece=1, offset_frames=1, shift_px=0.5, gain=1.03, score=0.9),),
        engine_busy_share=0.9,
        wall_s=40.0,
    )


def test_numbers_that_agree_pass() -> None:
    assert disagreements(good(), ANNOUNCED, FRAMES) == []


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"verdict": Verdict.QUARANTINE}, "verdict"),
        ({"finished_events": 2}, "2 VideoFinished"),
        ({"finished_events": 0}, "0 VideoFinished"),
        ({"sha256": "1"}, "not the one that was announced"),
        ({"frames": 47}, "47 frames decoded"),
        ({"frame_rows": 49}, "49 rows of frames"),
        ({"distinct_frame_rows": 47}, "47 different frames"),
        ({"pieces": 3}, "3 pieces, 2 announced"),
        ({"seams": ()}, "0 seams"),
        ({"fps": 23.976}, "fps"),
        ({"duration_s": 2.04}, "2.04 s"),
        ({"psnr_y_mean": 40.9}, "psnr_y_mean"),
        ({"psnr_y_min": 39.0}, "psnr_y_min"),
        ({"vmaf_mean": 95.1}, "vmaf_mean"),
        ({"vmaf_min": 90.0}, "vmaf_min"),
    ],
)
def test_a_number_that_does_not_fit_is_named(wrong: dict[str, object], says: str) -> None:
    assert any(says in words for words in disagreements(replace(good(), **wrong), ANNOUNCED, FRAMES))


def test_a_video_of_another_length_does_not_pass() -> None:
    assert len(disagreements(good(), ANNOUNCED, 288)) >= 4


def test_busy_time_counts_overlapping_work_once() -> None:
    assert covered_us([(0, 10), (5, 12), (20, 25), (21, 22)]) == 17
    assert covered_us([]) == 0


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A demo whose stack is up."""
    process = subprocess.Popen([sys.executable, "-m", "infra.cli.main", "demo", "-o", tmp_path])
    try:
        until((tmp_path / "state" / "services.json").exists)
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_a_demo_that_is_ended_takes_its_stack_with_it(demo: subprocess.Popen[bytes], number: signal.Signals) -> None:
    family = psutil.Process(demo.pid).children(recursive=True)
    assert any("kafka.Kafka" in " ".join(process.cmdline()) for process in family)
    os.kill(demo.pid, number)
    demo.wait(60)
    until(lambda: not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in family))


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _DEADLINE_S
    while not true():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)
