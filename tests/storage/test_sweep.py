"""The sweep on a real broker and a store on disk: garbage goes, and what somebody refers to never does, whatever happens meanwhile."""

import os
import threading
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from prometheus_client import REGISTRY

from infra.bus import clients
from infra.bus.clients import Member
from infra.bus.decision import Decision
from infra.bus.message import Message
from infra.bus.reader import Reader, event_of
from infra.bus.requests import event_in
from infra.bus.writer import Writer, publish
from infra.objects import Objects, job_key
from infra.settings import Settings
from infra.storage.sweep import look, sweep
from schemas.codec import encode
from schemas.headers import trace_root, traceparent_of
from schemas.records import (
    AssemblyState,
    Blob,
    CancelRequested,
    JobState,
    PieceChecked,
    PieceStitched,
    SegmentGenerated,
    SegmentState,
    Stage,
)
from schemas.topics import DEAD_LETTERS
from streams.control import cancelled_early
from tests.bus.line import Counter, eventually, in_thread, row, table
from tests.cli.conftest import Longtake, longtake
from tests.gpu_consumers.requests import segment_request
from tests.schemas.samples import sample

__all__ = ["longtake"]

DIRECTOR = Member(role="director", topics=(SegmentGenerated.topic,))
GRACE_S = 1.0
DAY_S = 86_400.0
ROUNDS = 300
JOBS = 8


@pytest.fixture
def settings(bus_settings: Settings) -> Settings:
    return bus_settings.model_copy(update={"sweep_grace_s": GRACE_S})


@pytest.fixture
def objects(settings: Settings) -> Objects:
    return Objects(settings.objects)


def put(objects: Objects, name: str, job: str = "boat", kind: str = "segments") -> Blob:
    return objects.put_bytes(job_key(job, kind, name), name.encode(), "x/y")


def aged(objects: Objects, blob: Blob, age_s: float = 10 * DAY_S) -> Blob:
    """As if it had been put that long ago."""
    then = time.time() - age_s
    os.utime(path_of(objects, blob), (then, then))
    return blob


def path_of(objects: Objects, blob: Blob) -> Path:
    return Path(objects.url.removeprefix("file://")) / objects.key_of(blob)


def generated(job: str, number: int, latents: Blob, frames: Blob) -> SegmentGenerated:
    return SegmentGenerated(
        job_id=job,
        segment=number,
        attempt=1,
        request_hash="0" * 32,
        start_frame=0,
        engine="animatic",
        engine_version="1",
        latents=latents,
        frames=frames,
        restored=False,
        started_us=0,
        finished_us=time.time_ns() // 1000,
        denoise_us=0,
        decode_us=0,
        store_us=0,
        worker="generate-0",
    )


def say(settings: Settings, *events: SegmentGenerated | JobState) -> None:
    publish(settings, events, trace_root("boat"))


def held(objects: Objects, blobs: Iterable[Blob]) -> list[str]:
    return [objects.key_of(blob) for blob in blobs if objects.holds(blob)]


# --- what stays, and what goes -----------------------------------------------------------------------------------------


def test_what_the_table_or_an_unread_record_names_stays_and_the_rest_goes(settings: Settings, objects: Objects) -> None:
    in_row, unread, orphan = (aged(objects, put(objects, f"{i}-1-x-latents.safetensors")) for i in range(3))
    say(settings, row("boat", segments=(SegmentState(attempt=1, latents=in_row),)))
    say(settings, generated("boat", 1, unread, unread))
    assert [stored.key for stored in look(settings, objects).removable] == [objects.key_of(orphan)]
    assert len(held(objects, (in_row, unread, orphan))) == 3, "looking removes nothing"
    sweep(settings, objects)
    assert held(objects, (in_row, unread, orphan)) == [objects.key_of(in_row), objects.key_of(unread)]


def test_the_answer_to_a_request_that_is_still_to_be_read_stays(settings: Settings, objects: Objects) -> None:
    """A worker stored it and died before it could announce it: the next one will."""
    answer = aged(objects, put(objects, "0-1-x-latents.safetensors"))
    request = segment_request("boat")
    say(settings, row("boat"))
    publish(settings, [request], trace_root("boat"))
    objects.put_manifest(request.request_hash, encode(generated("boat", 0, answer, answer)))
    sweep(settings, objects)
    assert objects.holds(answer)


def test_a_piece_stays_until_its_verdict_was_read_where_somebody_publishes(
    settings: Settings, objects: Objects
) -> None:
    """Its job may be finished by then."""
    piece = put(objects, "0-1-x.mp4", kind="pieces")
    stitched, verdict = sample(PieceStitched), sample(PieceChecked)
    assert isinstance(stitched, PieceStitched)
    assert isinstance(verdict, PieceChecked)
    verdict = replace(verdict, job_id="boat", request_hash="abc")
    objects.put_manifest("abc", encode(replace(stitched, job_id="boat", video=piece, reference=piece, renditions=())))
    say(settings, row("boat", stage=Stage.FINISHED))
    publish(settings, [verdict], trace_root("boat"))

    def publisher_reads_from(offset: int) -> None:
        places = [TopicPartition(verdict.topic, partition, offset) for partition in range(settings.partitions)]
        consumer.commit(offsets=places, asynchronous=False)

    consumer = clients.lone_consumer(settings, "longtake.publish")
    publisher_reads_from(0)
    sweep(settings, objects)
    assert objects.holds(piece)
    publisher_reads_from(1)
    sweep(settings, objects)
    assert not objects.holds(piece)
    consumer.close()


def test_what_a_dead_letter_names_stays(settings: Settings, objects: Objects) -> None:
    """It may be replayed."""
    named = aged(objects, put(objects, "0-1-x-frames.safetensors"))
    say(settings, row("boat"))
    producer = clients.plain_producer(settings, "test")
    producer.produce(DEAD_LETTERS, encode(generated("boat", 0, named, named)), b"boat")
    assert producer.flush(10) == 0
    sweep(settings, objects)
    assert objects.holds(named)


def test_a_finished_job_keeps_its_video_only(settings: Settings, objects: Objects) -> None:
    video = put(objects, "1-x.mp4", kind="videos")
    others = [
        put(objects, "0-1-x-frames.safetensors"),
        put(objects, "0-1-x.mp4", kind="pieces"),
        put(objects, "0-1-x.mp4", kind="references"),
    ]
    say(settings, row("boat", stage=Stage.FINISHED, assembly=AssemblyState(attempt=1, video=video)))
    sweep(settings, objects)
    assert held(objects, (video, *others)) == [objects.key_of(video)]
    folder = path_of(objects, video).parents[1]
    assert [path.name for path in folder.iterdir()] == ["videos"], "nor are empty folders left"
    left = {kind: REGISTRY.get_sample_value("longtake_store_bytes", {"kind": kind}) for kind in ("videos", "pieces")}
    assert left == {"videos": video.size_bytes, "pieces": 0}


def test_jobs_of_another_cluster_are_left_alone_and_reported(settings: Settings, objects: Objects) -> None:
    foreign = [aged(objects, put(objects, "0-1-x-frames.safetensors", job=job)) for job in ("foreign", "cancelled")]
    long_ago_us = round((time.time() - 10 * DAY_S) * 1e6)
    say(settings, cancelled_early(CancelRequested(job_id="cancelled"), long_ago_us))
    found = sweep(settings, objects)
    assert found.unknown_jobs == {"foreign", "cancelled"}
    assert held(objects, foreign) == list(map(objects.key_of, foreign))


def test_uploads_that_a_crash_cut_short_go(settings: Settings, objects: Objects) -> None:
    root = Path(objects.url.removeprefix("file://"))
    old, young = root / "old.mp4#1", root / "young.mp4#2"
    for path in (old, young):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    sweep(settings.model_copy(update={"sweep_grace_s": 3600.0}), objects)
    assert (old.exists(), young.exists()) == (False, True)


def test_a_transaction_that_is_open_is_waited_for(settings: Settings, objects: Objects) -> None:
    blob = aged(objects, put(objects, "0-1-x-latents.safetensors"))
    say(settings, row("boat"))
    producer = clients.transactional_producer(settings, Member(role="generate", topics=()))
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce(SegmentGenerated.topic, encode(generated("boat", 0, blob, blob)), b"boat")
    assert producer.flush(10) == 0
    done = threading.Event()

    def swept(_: threading.Event) -> None:
        sweep(settings, objects)
        done.set()

    with in_thread(swept):
        assert not done.wait(1.0), "its end decides"
        producer.commit_transaction(10)
        assert done.wait(20)
    assert objects.holds(blob)


def test_the_command_says_what_would_go_and_takes_it_out(
    settings: Settings, objects: Objects, longtake: Longtake
) -> None:
    settings = settings.model_copy(update={"sweep_grace_s": 6 * 3600.0})
    orphan = aged(objects, put(objects, "0-1-x-frames.safetensors"))
    say(settings, row("boat"))
    would = longtake(settings, "sweep", "--dry-run", "--json")
    (frames,) = (kind for kind in would.json()["kinds"] if kind["kind"] == "frames")
    assert (would.code, frames["objects"], frames["removable"]) == (0, 1, 1)
    assert objects.holds(orphan)
    assert "frames" in longtake(settings, "sweep").out
    assert not objects.holds(orphan)


# --- the race -----------------------------------------------------------------------------------------------------------


class Keeper(Counter):
    """A director that puts what is announced into the row of its job, and now and then stands still."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.slowest_s = 0.0

    def decide(self, message: Message, state: JobState | None, now_us: int) -> Decision:
        self.open.wait(5)
        event = event_in(message, SegmentGenerated)
        self.slowest_s = max(self.slowest_s, time.time() - event.finished_us / 1e6)
        before = state or row(event.job_id, traceparent=traceparent_of(message.headers, otherwise=event.job_id))
        segment = SegmentState(attempt=1, latents=event.latents, frames=event.frames)
        return Decision(state=replace(before, segments=(*before.segments, segment)))


@pytest.mark.timeout(300)
def test_what_is_stored_announced_and_taken_up_while_the_sweep_runs_is_never_removed(
    settings: Settings, objects: Objects
) -> None:
    """300 rounds: two objects and their event, and an object that nobody will ever announce."""
    announced: list[SegmentGenerated] = []
    orphans: list[Blob] = []
    keeper, swept = Keeper(), threading.Event()

    def breathe(stop: threading.Event) -> None:
        """Records wait for longer than the grace."""
        while not stop.wait(0.3):
            keeper.open.clear()
            stop.wait(1.5 * GRACE_S)
            keeper.open.set()

    def sweep_on(stop: threading.Event) -> None:
        while not stop.is_set():
            sweep(settings, objects)
            swept.set()

    say(settings, *(row(f"job-{number}") for number in range(JOBS)))
    keeper.open.set()
    with table(settings, keeper, DIRECTOR), in_thread(sweep_on):
        with in_thread(breathe), Writer(settings) as writer:
            for number in range(ROUNDS):
                job, begun = f"job-{number % JOBS}", time.monotonic()
                latents, frames, orphan = (
                    put(objects, f"{number}-1-{name}.safetensors", job)
                    for name in ("a-latents", "a-frames", "b-latents")
                )
                event = generated(job, number, latents, frames)
                writer.publish([event], trace_root(job))
                if time.monotonic() - begun < GRACE_S / 2:  # a machine that stood still has broken the promise
                    announced.append(event)
                orphans.append(orphan)
                time.sleep(0.005)
            assert swept.wait(60)
        keeper.open.set()
        eventually(lambda: len(_rows(settings)) == ROUNDS, "every event is in a row", 60)
        eventually(lambda: not held(objects, orphans), "every orphan is gone", 60)
    assert announced
    assert keeper.slowest_s > GRACE_S, "some were on their way for longer than the grace"
    missing = [blob.uri for event in announced for blob in (event.latents, event.frames) if not objects.holds(blob)]
    assert missing == []


def _rows(settings: Settings) -> list[SegmentState]:
    """The segments of all jobs, as the table has them."""
    with Reader.from_beginning(settings, [JobState.topic]) as reader:
        last = {message.job_id: event_of(message) for message in reader.to_end()}
    return [segment for job in last.values() if isinstance(job, JobState) for segment in job.segments]
