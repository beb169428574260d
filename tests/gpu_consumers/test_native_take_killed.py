"""A take of the native engine through the director and the bus: its worker is killed inside a segment, and it is the same take."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from infra.bus.message import Message
from infra.bus.reader import Reader, event_of
from infra.bus.writer import publish
from infra.objects import Objects
from infra.settings import Settings
from schemas.headers import trace_root
from schemas.records import PromptSubmitted, SegmentGenerated
from tests.director.processes import directors
from tests.gpu_consumers.test_on_the_broker import worker

pytestmark = pytest.mark.timeout(300)
SEGMENTS = 3
QUIET_S = 240.0


def prompt(job_id: str) -> PromptSubmitted:
    """8 s at 16 per second: segments of 45, 48 and 35 frames."""
    return PromptSubmitted(
        job_id=job_id,
        text="A boat leaves the harbour, pan left",
        duration_s=8.0,
        width=64,
        height=64,
        fps=16.0,
        seed=7,
        engine="causal_dit",
        engine_options={"config": "tiny"},
    )


def segments(answers: Iterator[Message], count: int) -> list[SegmentGenerated]:
    found: list[SegmentGenerated] = []
    while len(found) < count:
        event = event_of(next(answers))
        assert isinstance(event, SegmentGenerated), event
        found.append(event)
    return found


def wait_for_latents(settings: Settings, job_id: str, segment: int) -> None:
    """They are stored before a segment is decoded."""
    folder = Path(settings.objects.removeprefix("file://")) / "jobs" / job_id / "segments"
    end_s = time.monotonic() + QUIET_S
    while not list(folder.glob(f"{segment}-*-latents.safetensors")):
        assert time.monotonic() < end_s, "its latents never came"
        time.sleep(0.002)


def pictures(settings: Settings, event: SegmentGenerated) -> np.ndarray:
    return Objects(settings.objects).get_tensors(event.frames)["frames"]


def test_a_take_whose_worker_is_killed_inside_a_segment_is_the_same_to_the_last_bit(bus_settings: Settings) -> None:
    with (
        directors(bus_settings),
        Reader.from_beginning(bus_settings, [SegmentGenerated.topic]) as reader,
    ):
        answers = reader.for_seconds(QUIET_S)
        with worker(bus_settings) as first:
            publish(bus_settings, [prompt("whole")], trace_root("whole"))
            whole = segments(answers, SEGMENTS)
            publish(bus_settings, [prompt("killed")], trace_root("killed"))
            wait_for_latents(bus_settings, "killed", 1)
            os.kill(first.pid, signal.SIGKILL)
            first.wait()
        with worker(bus_settings):
            killed = segments(answers, SEGMENTS)
    assert [event.segment for event in killed] == [event.segment for event in whole] == list(range(SEGMENTS))
    assert [event.restored for event in whole] == [False] * SEGMENTS
    assert any(event.restored for event in killed), "the other process had to find the take again"
    for one, other in zip(whole, killed, strict=True):
        assert (one.job_id, other.job_id) == ("whole", "killed")
        assert one.latents.digest == other.latents.digest
        assert np.array_equal(pictures(bus_settings, one), pictures(bus_settings, other))
    assert len({event.latents.digest for event in whole}) == SEGMENTS
