"""Every topic -> the records of one job, as they are on the bus: where, when, and what they say."""

import time
from dataclasses import dataclass
from typing import Annotated

import msgspec
from confluent_kafka import murmur2
from fastapi import APIRouter, Depends, Query, Request, Response

from infra.bus import clients
from infra.bus.dead_letters import OPEN_TOPICS
from infra.bus.letter import parse
from infra.bus.mended import to_text
from infra.bus.message import Message, Partition
from infra.bus.reader import Reader, event_of
from infra.bus.topics import partition_counts
from infra.settings import Settings
from infra.web.api import JobId
from infra.web.console.pages import Pages
from infra.web.view import Job, View
from schemas.codec import to_json
from schemas.errors import BadInputError
from schemas.records import AssetChanged, JobState, QualityBaseline, ReleaseChanged
from schemas.topics import DEAD_LETTERS, TOPICS

ROWS = 100
_NOT_OF_A_JOB = frozenset(event.topic for event in (ReleaseChanged, AssetChanged, QualityBaseline, JobState))
"""The last one is the director's own table."""
_SLACK_US = 600_000_000
"""A producer's clock may be wrong by this much."""
_TURN_S = 0.2
_LONGEST_S = 10.0
"""Of reading for one page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One record of the bus. `time_us` is the broker's."""

    topic: str
    partition: int
    offset: int
    time_us: int
    name: str
    """Of the event, or what else it is."""
    text: str
    """JSON for people, or why there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """Of one job, the oldest first."""

    found: tuple[Record, ...]
    whole: bool
    """Everything was read in time."""


def records(settings: Settings, job_id: str, since_us: int) -> Records:
    """The job's records since then. Raises: BusError; KafkaException."""
    key, deadline_s = job_id.encode(), time.monotonic() + _LONGEST_S
    found: list[Record] = []
    with Reader.of_places(settings, _places(settings, key), since_us) as reader:
        while not reader.at_end and time.monotonic() < deadline_s:
            message = reader.poll(_TURN_S)
            if message and message.key == key:
                found.append(_record(message))
        found.sort(key=lambda r: (r.time_us, r.topic, r.offset))
        return Records(found=tuple(found), whole=reader.at_end)


def new_events(view: View, pages: Pages, settings: Settings) -> APIRouter:
    """`/jobs/{job_id}/events`."""
    router = APIRouter(include_in_schema=False, dependencies=[Depends(pages.viewer)])

    @router.get("/jobs/{job_id}/events")
    def events(request: Request, job_id: JobId, page: Annotated[int, Query(ge=1, le=100_000)] = 1) -> Response:  # pyright: ignore[reportUnusedFunction] (a route)
        job = view.job(job_id)
        if job is None:
            return pages.page(request, "unknown.html", 404, what=f"job {job_id}")
        since_us = _since_us(job)
        every = records(settings, job_id, since_us)
        found = every.found
        return pages.page(
            request,
            "events.html",
            job_id=job_id,
            records=found[(page - 1) * ROWS : page * ROWS],
            total=len(found),
            whole=every.whole,
            since_us=since_us,
            number=page,
            pages=max(1, -(-len(found) // ROWS)),
        )

    return router


def _since_us(job: Job) -> int:
    """Before anything was said of it: when it was submitted, by its producer's clock."""
    submitted = job.changed or job.prompt
    return max(0, submitted.submitted_us - _SLACK_US) if submitted else 0


def _places(settings: Settings, key: bytes) -> list[Partition]:
    """Where the key's records are. Whoever writes to the open topics may choose a partition of their own."""
    counts = partition_counts(
        clients.admin(settings), [topic.name for topic in TOPICS if topic.name not in _NOT_OF_A_JOB]
    )
    return [
        (topic, partition)
        for topic, count in counts.items()
        for partition in (range(count) if topic in OPEN_TOPICS else (murmur2(key, count),))
    ]


def _record(message: Message) -> Record:
    name, text = _said(message)
    return Record(
        topic=message.topic,
        partition=message.partition,
        offset=message.offset,
        time_us=message.timestamp_us,
        name=name,
        text=text,
    )


def _said(message: Message) -> tuple[str, str]:
    try:
        if message.topic == DEAD_LETTERS:
            return "dead letter", to_text(parse(message)).decode()
        if message.value is None:
            return "tombstone", ""
        event = event_of(message)
    except BadInputError as error:
        return "cannot be read", str(error)
    return type(event).__name__, msgspec.json.format(to_json(event), indent=2).decode()
