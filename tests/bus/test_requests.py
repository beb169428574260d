"""Work that is done once, however often it is asked for."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from infra.bus.message import Message
from infra.bus.requests import event_in, remembered, request_in
from infra.objects import Objects
from schemas.codec import encode, sealed
from schemas.errors import BadInputError
from schemas.records import AssemblyFailed, AssemblyRequested, Blob, SegmentFailed, VideoAssembled, VideoFormat
from schemas.topics import Event


def request(**fields: Any) -> AssemblyRequested:
    defaults: dict[str, Any] = {
        "job_id": "boat",
        "attempt": 1,
        "request_hash": "",
        "format": VideoFormat(width=640, height=360, fps_num=24, fps_den=1),
        "frames": 24,
        "pieces": (),
        "requested_us": 5,
    }
    return sealed(AssemblyRequested(**(defaults | fields)))


def message(event: Event, key: bytes = b"boat") -> Message:
    return Message(topic=event.topic, partition=0, offset=0, key=key, value=encode(event), headers=(), timestamp_us=0)


def answer(job_id: str, number: int) -> AssemblyFailed:
    return AssemblyFailed(
        job_id=job_id,
        attempt=1,
        request_hash="",
        pieces=(number,),
        reason="",
        failed_us=0,
        worker="",
    )


def assembled(asked: AssemblyRequested, video: Blob) -> VideoAssembled:
    return VideoAssembled(
        job_id=asked.job_id,
        attempt=asked.attempt,
        request_hash=asked.request_hash,
        format=asked.format,
        frames=asked.frames,
        duration_us=1,
        video=video,
        tracks=(),
        piece_starts=(0,),
        gop_frames=24,
        started_us=0,
        finished_us=0,
        worker="",
    )


class Work:
    """Counts how often it is done."""

    def __init__(self) -> None:
        self.done = 0

    def __call__(self, asked: AssemblyRequested) -> AssemblyFailed:
        self.done += 1
        return answer(asked.job_id, self.done)


def test_the_same_request_is_done_once_also_by_another_worker(tmp_path: Path) -> None:
    work = Work()
    for sent_us in (5, 6):
        handler = remembered(Objects((tmp_path / "objects").as_uri()), AssemblyRequested, work)
        assert list(handler(message(request(requested_us=sent_us)))) == [answer("boat", 1)]
    assert work.done == 1


def test_another_attempt_is_done_anew(tmp_path: Path) -> None:
    work = Work()
    handler = remembered(Objects((tmp_path / "objects").as_uri()), AssemblyRequested, work)
    for attempt in (1, 2):
        handler(message(request(attempt=attempt)))
    assert work.done == 2


@pytest.mark.parametrize("damage", ["gone", "cut short", "outside"])
def test_work_whose_result_is_no_longer_there_is_done_again(tmp_path: Path, damage: str) -> None:
    objects = Objects((tmp_path / "objects").as_uri())
    done: list[str] = []

    def work(asked: AssemblyRequested) -> VideoAssembled:
        done.append(f"jobs/boat/videos/{len(done)}.mp4")
        video = objects.put_bytes(done[-1], b"a video", "video/mp4")
        return assembled(asked, replace(video, uri="file:///elsewhere/0.mp4") if damage == "outside" else video)

    handler = remembered(objects, AssemblyRequested, work)
    handler(message(request()))
    path = tmp_path / "objects" / done[0]
    if damage == "gone":
        path.unlink()
    elif damage == "cut short":
        path.write_bytes(b"a vid")
    (again,) = handler(message(request()))
    assert len(done) == 2
    assert isinstance(again, VideoAssembled)
    assert damage == "outside" or again.video.uri.endswith(done[1])


@pytest.mark.parametrize("kept", [b"", b"\0\0\0\xff\xffof a later release", encode(request())])
def test_a_manifest_of_another_release_or_kind_is_passed_over(tmp_path: Path, kept: bytes) -> None:
    objects, work = Objects((tmp_path / "objects").as_uri()), Work()
    objects.put_manifest(request().request_hash, kept)
    for _ in range(2):
        assert list(remembered(objects, AssemblyRequested, work)(message(request()))) == [answer("boat", 1)]


@pytest.mark.parametrize("byte", [0, 20, -1])
def test_a_manifest_with_a_flipped_bit_is_passed_over(tmp_path: Path, byte: int) -> None:
    objects, work = Objects((tmp_path / "objects").as_uri()), Work()
    handler = remembered(objects, AssemblyRequested, work)
    handler(message(request()))
    path = tmp_path / "objects" / "manifests" / request().request_hash
    data = bytearray(path.read_bytes())
    data[byte] ^= 1
    path.write_bytes(data)
    assert list(handler(message(request()))) == [answer("boat", 2)]
    assert list(handler(message(request()))) == [answer("boat", 2)]


def test_work_that_failed_is_not_remembered(tmp_path: Path) -> None:
    def broken(_: AssemblyRequested) -> AssemblyFailed:
        raise ZeroDivisionError

    objects = Objects((tmp_path / "objects").as_uri())
    with pytest.raises(ZeroDivisionError):
        remembered(objects, AssemblyRequested, broken)(message(request()))
    assert list(remembered(objects, AssemblyRequested, Work())(message(request()))) == [answer("boat", 1)]


@pytest.mark.parametrize("forged", ["../../etc/passwd", "", request(frames=25).request_hash])
def test_a_request_under_a_hash_that_is_not_its_own_is_refused(forged: str) -> None:
    with pytest.raises(BadInputError, match="request_hash"):
        request_in(message(replace(request(), request_hash=forged)), AssemblyRequested)


def test_a_record_under_another_key_is_refused() -> None:
    with pytest.raises(BadInputError, match="key"):
        request_in(message(request(), key=b"train"), AssemblyRequested)


def test_a_record_of_another_kind_is_refused() -> None:
    with pytest.raises(BadInputError, match="a AssemblyRequested where a SegmentFailed belongs"):
        event_in(message(request()), SegmentFailed)
