"""The two workers as processes on a real broker and a real ClickHouse, killed in the middle of their work."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from infra.bus.message import Message
from infra.bus.process import run_process
from infra.bus.reader import Reader, event_of
from infra.bus.writer import Writer
from infra.clickhouse import connect, migrate
from infra.objects import Objects
from infra.settings import Settings
from qc_consumers import pieces, videos
from schemas.headers import trace_id, trace_root, traceparent_of
from schemas.records import PieceChecked, Stage, Verdict, VideoChecked
from tests.bus.processes import in_process
from tests.qc.clips import assembled, bunny, encoded, stitched
from tests.qc.film import changed, faststart, finished, generated

FRAMES, JOBS, PIECES, KILLS = 12, 3, 3, 2
PATIENCE_S = 60.0


def serve(run: Callable[[Settings, int], None], settings: Settings) -> None:
    run_process(lambda: run(settings, 0))


def ask(settings: Settings, query: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in connect(settings).query(query).result_rows]


def wait_for_rows(settings: Settings, frames: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while ask(settings, "SELECT count() FROM frame_log")[0][0] < frames:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def answers(settings: Settings, topic: str, count: int) -> list[Message]:
    """The first `count` records, and what comes within a second after them."""
    found: list[Message] = []
    deadline = time.monotonic() + PATIENCE_S
    with Reader.from_beginning(settings, [topic]) as reader:
        while len(found) < count:
            assert time.monotonic() < deadline
            found += [message] if (message := reader.poll(0.1)) else []
        return found + list(reader.for_seconds(1.0))


def test_kills_between_rows_and_commit_lose_and_double_nothing(line_settings: Settings, tmp_path: Path) -> None:
    migrate(line_settings)
    piece = stitched(Objects(line_settings.objects), tmp_path, bunny()[:FRAMES])
    with Writer(line_settings) as writer:
        for number in range(JOBS * PIECES):
            job, index = f"job-{number % JOBS}", number // JOBS
            event = replace(piece, job_id=job, piece=index, start_frame=index * FRAMES, request_hash=f"{number:032x}")
            writer.publish([replace(generated(index, 1), job_id=job), event], trace_root(job))
    for kill in range(1, KILLS + 1):
        with in_process(serve, pieces.run, line_settings):
            wait_for_rows(line_settings, kill * 2 * FRAMES)
    with in_process(serve, pieces.run, line_settings):
        messages = answers(line_settings, PieceChecked.topic, JOBS * PIECES)
    events = [event for event in map(event_of, messages) if isinstance(event, PieceChecked)]
    everything = [(f"job-{job}", index) for job in range(JOBS) for index in range(PIECES)]
    assert sorted((event.job_id, event.piece) for event in events) == everything
    assert {event.verdict for event in events} == {Verdict.PASS}
    for message in messages:
        assert trace_id(traceparent_of(message.headers, otherwise="")) == trace_id(trace_root(message.job_id))
    expected = [(f"job-{job}", PIECES * FRAMES, PIECES * FRAMES) for job in range(JOBS)]
    query = "SELECT job_id, count(), uniqExact(frame) FROM frames GROUP BY job_id ORDER BY job_id"
    assert ask(line_settings, query) == expected
    for log in ("segment_log", "piece_log", "seam_log"):
        assert ask(line_settings, f"SELECT count() FROM {log}") == [(JOBS * PIECES,)]  # noqa: S608 (names of our own)


def test_a_video_is_checked_and_its_job_is_told(line_settings: Settings, tmp_path: Path) -> None:
    path = faststart(encoded(tmp_path / "joined.mp4", bunny()[:24]), tmp_path / "video.mp4")
    video = assembled(Objects(line_settings.objects), path, 24)
    with Writer(line_settings) as writer:
        writer.publish(
            [changed(Stage.CHECKING, 3), video, finished("1.0"), changed(Stage.FINISHED, 3)], trace_root("film")
        )
    with in_process(serve, videos.run, line_settings):
        (message,) = answers(line_settings, VideoChecked.topic, 1)
        deadline = time.monotonic() + PATIENCE_S
        while ask(line_settings, "SELECT stage, v.finished_us > 0 FROM jobs JOIN videos AS v USING job_id") != [
            ("finished", True)
        ]:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    answer = event_of(message)
    assert isinstance(answer, VideoChecked)
    assert (answer.job_id, answer.verdict) == ("film", Verdict.PASS)
