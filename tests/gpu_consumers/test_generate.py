"""Segments from a real engine process: continued, interleaved, announced again, failed, refused."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gpu_consumers.generate import Generate
from infra.objects import Objects
from infra.settings import Settings
from schemas.codec import encode, sealed
from schemas.errors import BadInputError
from schemas.records import FailureKind, SegmentGenerated, SegmentRequested
from tests.gpu_consumers.answers import ANSWER_S, Start, failed, generated, only
from tests.gpu_consumers.requests import blob, message_of, segment_request

SEGMENTS = 3


def take(
    work: Generate, job_id: str, before: Sequence[SegmentGenerated] = (), attempt: int = 1
) -> list[SegmentGenerated]:
    """The rest of a job, segment by segment."""
    events = list(before)
    while len(events) < SEGMENTS:
        events.append(generated(work, segment_request(job_id, events, attempt=attempt)))
    return events


def pictures(settings: Settings, event: SegmentGenerated) -> np.ndarray:
    return Objects(settings.objects).get_tensors(event.frames)["frames"]


def test_a_job_interrupted_after_any_segment_and_continued_in_another_process_is_the_same_job(
    settings: Settings, start: Start
) -> None:
    whole = take(start(), "job-1")
    assert [event.restored for event in whole] == [False] * SEGMENTS
    for boundary in range(1, SEGMENTS):
        again = take(start(), "job-1", whole[:boundary], attempt=1 + boundary)
        assert [event.restored for event in again[boundary:]] == [True] + [False] * (SEGMENTS - boundary - 1)
        for one, other in zip(whole, again, strict=True):
            assert other.latents.digest == one.latents.digest
            assert np.array_equal(pictures(settings, other), pictures(settings, one))


def test_four_jobs_in_flight_are_the_jobs_they_are_alone(shared_settings: Settings, shared: Generate) -> None:
    jobs = [f"job-{number}" for number in range(4)]
    done: dict[str, list[SegmentGenerated]] = {job: [] for job in jobs}
    for _ in range(2):
        outcomes = {job: shared.submit(message_of(segment_request(job, done[job]))) for job in jobs}
        for job, outcome in outcomes.items():
            event = only(outcome)
            assert isinstance(event, SegmentGenerated)
            assert not event.restored
            done[job].append(event)
    for job in jobs:
        first = generated(shared, segment_request(job, attempt=2))
        second = generated(shared, segment_request(job, [first], attempt=2))
        assert [e.latents.digest for e in (first, second)] == [e.latents.digest for e in done[job]]
        assert np.array_equal(pictures(shared_settings, second), pictures(shared_settings, done[job][1]))
    assert len({event.latents.digest for events in done.values() for event in events}) == 8


def test_the_store_holds_what_the_event_says(shared_settings: Settings, shared: Generate) -> None:
    objects = Objects(shared_settings.objects)
    request = segment_request("told")
    before_us = time.time_ns() // 1000
    event = generated(shared, request)
    tensors = objects.get_tensors(event.frames)
    assert tensors["frames"].shape == event.frames.shape == (12, 90, 160, 3)
    assert tensors["frames"].dtype == np.uint8
    for times in (tensors["generated_us"], tensors["decoded_us"]):
        assert times.shape == (12,)
        assert times.dtype == np.int64
        assert np.all(np.diff(times) >= 0)
    assert np.all(np.less_equal(tensors["generated_us"], tensors["decoded_us"]))
    assert before_us <= event.started_us <= tensors["generated_us"][0]
    assert tensors["decoded_us"][-1] <= event.finished_us <= time.time_ns() // 1000
    latents = objects.get_tensors(event.latents)["latents"]
    assert latents.shape == event.latents.shape
    assert (event.worker, event.engine, bool(event.engine_version)) == ("generate-7", "animatic", True)
    assert event.request_hash == request.request_hash


def test_done_work_is_announced_again_and_not_done_again(settings: Settings, start: Start) -> None:
    request = segment_request()
    first = generated(start("generate-0"), request)
    stored = stored_files(settings)
    assert generated(start("generate-1"), request) == first
    assert stored_files(settings) == stored


def stored_files(settings: Settings) -> set[str]:
    folder = Path(settings.objects.removeprefix("file://"))
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("nan", FailureKind.NAN),
        ("black", FailureKind.BLACK),
        ("freeze", FailureKind.FROZEN),
        ("short", FailureKind.WRONG_FRAME_COUNT),
        ("oom", FailureKind.OUT_OF_MEMORY),
        ("crash", FailureKind.CRASHED),
    ],
)
def test_a_segment_that_goes_wrong_fails_and_its_next_attempt_comes_out(
    shared: Generate, fault: str, kind: FailureKind
) -> None:
    event = failed(shared, segment_request(fault, options={"fault": fault}))
    assert (event.kind, event.retryable, event.worker) == (kind, True, "generate-7")
    assert event.reason
    generated(shared, segment_request(fault, options={"fault": fault}, attempt=2))


def test_the_latents_are_stored_before_anything_is_decoded(shared_settings: Settings, shared: Generate) -> None:
    failed(shared, segment_request("undecoded", options={"fault": "short"}))
    assert [name.rsplit("-", 1)[1] for name in stored_files(shared_settings) if "/undecoded/" in name] == [
        "latents.safetensors"
    ]


def test_an_engine_or_option_that_does_not_exist_is_not_tried_again(shared: Generate) -> None:
    nobody = failed(shared, sealed(replace(segment_request(), engine="nobody")))
    assert (nobody.kind, nobody.retryable) == (FailureKind.ENGINE, False)
    assert not failed(shared, segment_request(options={"fault": "gremlins"})).retryable


def test_latents_that_are_missing_or_changed_are_a_missing_state(shared: Generate) -> None:
    first = generated(shared, segment_request("lost"))
    wrong = replace(first.latents, digest="xxh3:" + "0" * 32)
    outside = blob("xxh3:" + "0" * 32)
    other = first.frames
    for reference in (wrong, outside, other):
        request = sealed(replace(segment_request("lost", [first]), latent_ref=(reference,)))
        assert failed(shared, request).kind is FailureKind.STATE_MISSING
    generated(shared, segment_request("lost", [first]))


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"value": b""}, "value"),
        ({"value": b"{}"}, "value"),
        ({"value": encode(segment_request()) + b"x"}, "value"),
        ({"key": b"other"}, "key"),
    ],
)
def test_a_record_that_is_no_request_is_refused(shared: Generate, change: dict[str, bytes], field: str) -> None:
    with pytest.raises(BadInputError) as refused:
        shared.submit(message_of(segment_request(), **change)).result(ANSWER_S)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (replace(segment_request(), frames=13), "request_hash"),
        (segment_request("../../etc"), "job_id"),
        (segment_request("a/../b"), "job_id"),
    ],
)
def test_a_forged_request_is_refused(shared: Generate, request_: SegmentRequested, field: str) -> None:
    with pytest.raises(BadInputError) as refused:
        shared.submit(message_of(request_)).result(ANSWER_S)
    assert refused.value.field == field


def test_another_event_on_the_topic_is_refused(shared: Generate) -> None:
    event = generated(shared, segment_request("echo"))
    with pytest.raises(BadInputError, match="SegmentGenerated"):
        shared.submit(message_of(segment_request(), value=encode(event))).result(ANSWER_S)
