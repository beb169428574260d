"""Looks at everything a run has left behind: videos, rows, blobs, events, the table, transactions."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from infra.bus import clients
from infra.bus.message import Message
from infra.bus.progress import EndsQuery
from infra.bus.reader import Reader, event_of
from infra.clickhouse import connect
from infra.objects import BlobError, Objects
from infra.settings import Settings
from schemas import records as r
from schemas.topics import DEAD_LETTERS, TOPICS, Event
from streams.jobs import changed

Film = tuple[str, ...]
"""A digest of each frame."""


@dataclass(slots=True)
class Found:
    """What is wrong, counted, and said."""

    lost: int = 0
    doubled: int = 0
    wrong: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def count(self, name: str, problems: Sequence[str]) -> None:
        self.wrong[name] += len(problems)
        self.problems += problems


def line(
    settings: Settings, kept: Sequence[Message], jobs: Mapping[str, Film], film: Callable[[str], Film]
) -> dict[str, Any]:
    """Fields of the outcome. `jobs` are those that were submitted and what each has to look like."""
    found = Found()
    events = [event_of(message) for message in kept if message.topic != DEAD_LETTERS]
    _videos(found, events, jobs, film)
    _rows(found, settings, jobs)
    rows = _table(found, settings, events, jobs)
    objects = Objects(settings.objects)
    videos = [event for event in events if isinstance(event, r.VideoFinished)]
    blobs = {blob.uri: blob for event in (*rows, *videos) for blob in _blobs(event)}
    found.count("missing_blobs", [f"{uri} is not there" for uri, blob in blobs.items() if not _is_there(objects, blob)])
    letters = [message for message in kept if message.topic == DEAD_LETTERS]
    found.count("dead_letters", [f"dead letter of {m.job_id}: {m.headers}" for m in letters])
    found.count("hanging_transactions", [f"open transaction in {place}" for place in hanging(settings)])
    return {
        "records": len(jobs),
        "lost": found.lost,
        "doubled": found.doubled,
        "wrong": dict(found.wrong),
        "facts": _facts(events, blobs),
        "problems": tuple(found.problems),
    }


def hanging(settings: Settings) -> list[tuple[str, int]]:
    """Partitions that an open transaction holds up, when nobody writes."""
    client = clients.admin(settings)
    places = [(topic.name, partition) for topic in TOPICS for partition in range(settings.partitions)]
    return list(EndsQuery(client, places).result().open())


def _videos(found: Found, events: Sequence[Event], jobs: Mapping[str, Film], film: Callable[[str], Film]) -> None:
    finished = Counter(event.job_id for event in events if isinstance(event, r.VideoFinished))
    for job_id, wanted in jobs.items():
        count = finished[job_id]
        if not count:
            found.lost += 1
            found.problems.append(f"{job_id} has no finished video")
            continue
        if count > 1:
            found.doubled += count - 1
            found.problems.append(f"{job_id} has {count} finished videos")
        try:
            pictures = film(job_id)
        except BlobError as error:
            found.count("wrong_videos", [f"{job_id}: {error}"])
            continue
        if pictures != wanted:
            differing = sum(a != b for a, b in zip(pictures, wanted, strict=False))
            what = f"{len(pictures)} of {len(wanted)} frames, {differing} differ"
            found.count("wrong_videos", [f"{job_id} is another film: {what}"])
    found.count("strange_videos", [f"nobody asked for {job_id}" for job_id in finished if job_id not in jobs])


def _rows(found: Found, settings: Settings, jobs: Mapping[str, Film]) -> None:
    """Every frame, piece, segment and video of every job is in ClickHouse once, and says that the job is finished."""
    client = connect(settings)

    def asked(query: str) -> dict[str, tuple[Any, ...]]:
        return {row[0]: tuple(row[1:]) for row in client.query(query).result_rows}

    frames = asked("SELECT job_id, count(), uniqExact(frame) FROM frames GROUP BY job_id")
    for job_id, wanted in jobs.items():
        total, different = frames.get(job_id, (0, 0))
        found.lost += max(0, len(wanted) - different)
        found.doubled += max(0, total - different)
        if (total, different) != (len(wanted), len(wanted)):
            found.problems.append(f"{job_id} has {total} rows of {different} frames, not of {len(wanted)}")
    keys = {
        "frame_log": "job_id, piece, attempt, frame",
        "piece_log": "job_id, piece, attempt",
        "segment_log": "job_id, segment, attempt, outcome",
        "video_log": "job_id, attempt",
        "finish_log": "job_id",
    }
    for name, key in keys.items():
        (extra,) = client.query(f"SELECT count() - uniqExact({key}) FROM {name}").result_rows[0]  # noqa: S608 (our own names)
        found.doubled += extra
        if extra:
            found.problems.append(f"{extra} rows of {name} are there twice")
    stages = asked("SELECT job_id, stage FROM jobs")
    videos = asked("SELECT job_id, count(), countIf(finished_us IS NOT NULL) FROM videos GROUP BY job_id")
    unsaid = [job_id for job_id in jobs if stages.get(job_id) != ("finished",) or videos.get(job_id) != (1, 1)]
    found.count("wrong_rows", [f"{job} is {stages.get(job)} with videos {videos.get(job)}" for job in unsaid])


def _table(found: Found, settings: Settings, events: Sequence[Event], jobs: Mapping[str, Film]) -> list[r.JobState]:
    """The director's table and what it has said of each job agree. Gives the rows."""
    said = {event.job_id: event for event in events if isinstance(event, r.JobChanged)}
    rows: dict[str, r.JobState] = {}
    with Reader.from_beginning(settings, [r.JobState.topic]) as reader:
        for row in map(event_of, reader.to_end()):
            if isinstance(row, r.JobState):
                rows[row.job_id] = row
    for job_id in jobs:
        row = rows.get(job_id)
        if row is None or changed(row) != said.get(job_id):
            found.count("table_disagrees", [f"{job_id}: the table and jobs.v1 differ: {row} | {said.get(job_id)}"])
    return list(rows.values())


def _blobs(value: Any) -> Iterator[r.Blob]:
    if isinstance(value, r.Blob):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _blobs(part)
    elif is_dataclass(value):
        for each in fields(value):
            yield from _blobs(getattr(value, each.name))


def _is_there(objects: Objects, blob: r.Blob) -> bool:
    try:
        objects.get_bytes(blob)
    except BlobError:
        return False
    return True


def _facts(events: Sequence[Event], blobs: Mapping[str, r.Blob]) -> dict[str, int]:
    made = [event for event in events if isinstance(event, r.SegmentGenerated)]
    return {
        "blobs": len(blobs),
        "segments": len({(event.job_id, event.segment) for event in made}),
        "segments_announced_again": len({e.latents.uri for e in made}) - len({(e.job_id, e.segment) for e in made}),
        "segments_restored": sum(event.restored for event in made),
        "segments_failed": sum(isinstance(event, r.SegmentFailed) for event in events),
    }
