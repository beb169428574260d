"""Stitcher and assembler as processes on a real broker: requests in, one video out."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from infra.bus.dead_letters import dead_letters
from infra.bus.reader import Reader, event_of
from infra.bus.writer import publish
from infra.objects import Objects
from infra.settings import Settings
from schemas.codec import sealed
from schemas.headers import trace_root
from schemas.records import Encode, PieceStitched, SeamRejected, VideoAssembled
from schemas.topics import Event
from tests.stitcher.clips import Drift, segment
from tests.stitcher.takes import assembly, decoded, take

SMALL = {"width": 256, "height": 144}
FRAMES = 24
QUIET_S = 60.0


@contextmanager
def worker(settings: Settings, module: str) -> Iterator[subprocess.Popen[bytes]]:
    """A worker in slot 0."""
    program = f"from {module} import run; from infra.settings import Settings; run(Settings(), 0)"
    addresses = {
        "LONGTAKE_KAFKA": settings.kafka,
        "LONGTAKE_OBJECTS": settings.objects,
        "LONGTAKE_STATE": str(settings.state),
    }
    process = subprocess.Popen([sys.executable, "-c", program], env=os.environ | addresses)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def ask(settings: Settings, event: Event) -> None:
    publish(settings, [event], trace_root("job"))


def answers(settings: Settings) -> list[Event]:
    with Reader.from_beginning(settings, [PieceStitched.topic, VideoAssembled.topic]) as reader:
        return [event_of(message) for message in reader.to_end()]


def test_pieces_and_the_video_come_out_once_and_a_bad_request_is_put_aside(
    bus_settings: Settings, tmp_path: Path
) -> None:
    objects = Objects(bus_settings.objects)
    drifts = (Drift(), Drift(offset_frames=1, gain=(1.05, 1.05, 1.05)), Drift(gain=(1.4, 1.4, 1.4)))
    take_ = take(objects, *(segment(i, FRAMES, drift, **SMALL) for i, drift in enumerate(drifts)))
    topics = [PieceStitched.topic, VideoAssembled.topic]
    with Reader.from_beginning(bus_settings, topics) as reader:
        seen = (event_of(message) for message in reader.for_seconds(QUIET_S))
        with worker(bus_settings, "streams.stitcher.worker") as process:
            ask(bus_settings, take_.request(0))
            first = next(seen)
            assert isinstance(first, PieceStitched)
            ask(bus_settings, sealed(replace(take_.request(1), encode=Encode(codec="vp8"))))
            ask(bus_settings, take_.request(1, first.correction))
            second = next(seen)
            assert isinstance(second, PieceStitched)
            ask(bus_settings, take_.request(2, second.correction))
            assert isinstance(next(seen), SeamRejected)
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0
        with worker(bus_settings, "streams.assembler"):
            ask(bus_settings, assembly([first, second]))
            video = next(seen)
        assert isinstance(video, VideoAssembled)
        assert len(decoded(objects, video.video, tmp_path)) == video.frames == first.frames + second.frames
        with worker(bus_settings, "streams.stitcher.worker"):
            ask(bus_settings, take_.request(1, first.correction))
            again = next(seen)
    assert again == second, "remembered, not encoded again"
    assert answers(bus_settings).count(second) == 2
    assert [letter.field for letter in dead_letters(bus_settings)] == ["encode.codec"]
