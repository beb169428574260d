"""longtake.videos.finished.v1, videos.checked.v1, jobs.v1, dead letters -> what people want to be told of: pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec
import xxhash

from infra.bus.letter import parse
from infra.bus.message import Message
from infra.bus.reader import event_of
from schemas.errors import BadInputError
from schemas.records import JobChanged, Stage, Verdict, VideoChecked, VideoFinished
from schemas.topics import DEAD_LETTERS

TOPICS = (VideoFinished.topic, VideoChecked.topic, JobChanged.topic, DEAD_LETTERS)


class Kind(StrEnum):
    """What happened."""

    FINISHED = "finished"
    """A video was announced; `event` is its VideoFinished."""
    REJECTED = "rejected"
    """A gate sent a whole video back or put it into quarantine; `event` is the VideoChecked."""
    FAILED = "failed"
    """A job was given up; `event` is its JobChanged."""
    DEAD_LETTER = "dead_letter"
    """A record was put aside; `event` says which and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One thing to tell."""

    id: str
    """Of the delivery: the same whenever it is told again."""
    kind: Kind
    job_id: str
    at_us: int
    summary: str
    """A line for a person; parts of it are what a producer wrote."""
    event: Mapping[str, Any]


def alert_of(message: Message) -> Alert | None:
    """What the record is worth telling; None: nothing. Raises: BadInputError if it cannot be read."""
    if message.topic == DEAD_LETTERS:
        return _dead_letter(message)
    match event := event_of(message):
        case VideoFinished():
            seconds, gates = event.duration_us / 1e6, sorted({finding.gate for finding in event.warnings})
            warned = f", warnings: {', '.join(gates)}" if gates else ""
            summary = f"{event.job_id} is finished: {seconds:.1f} s, VMAF {event.scores.vmaf_mean:.1f}{warned}"
            return _alert(Kind.FINISHED, event, event.finished_us, summary, "")
        case VideoChecked() if event.verdict is not Verdict.PASS:
            gates = sorted({finding.gate for finding in event.findings if finding.verdict is not Verdict.PASS})
            summary = f"{event.job_id} did not pass: {event.verdict.value} by {', '.join(gates)}"
            return _alert(Kind.REJECTED, event, event.checked_us, summary, str(event.attempt))
        case JobChanged() if event.stage is Stage.FAILED:
            summary = f"{event.job_id} failed: {event.reason}"
            return _alert(Kind.FAILED, event, event.changed_us, summary, str(event.changed_us))
        case _:
            return None


def _alert(kind: Kind, event: VideoFinished | VideoChecked | JobChanged, at_us: int, summary: str, which: str) -> Alert:
    content = msgspec.to_builtins(event)
    return Alert(
        id=_id(kind, event.job_id, which), kind=kind, job_id=event.job_id, at_us=at_us, summary=summary, event=content
    )


def _dead_letter(message: Message) -> Alert | None:
    try:
        letter = parse(message)
    except BadInputError:
        return None
    said = {name: getattr(letter, name) for name in ("id", "group", "field", "rule", "message", "time_us")}
    job_id = message.job_id
    return Alert(
        id=_id(Kind.DEAD_LETTER, letter.original.id, letter.group),
        kind=Kind.DEAD_LETTER,
        job_id=job_id,
        at_us=letter.time_us,
        summary=f"a record of {letter.original.topic} was put aside: {letter.message} [{letter.rule}], job {job_id}",
        event=said | {"record": letter.original.id},
    )


def _id(kind: Kind, *names: str) -> str:
    return xxhash.xxh3_128_hexdigest("\n".join((kind, *names)).encode())
