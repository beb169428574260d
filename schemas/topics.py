"""Every topic of the line: its name, its records, how long it keeps them. All are keyed by `job_id` and partitioned by murmur2."""

from dataclasses import dataclass
from typing import TypeAlias

from schemas import records as r

DEAD_LETTERS = "longtake.dead-letters.v1"

Event: TypeAlias = (
    r.PromptSubmitted
    | r.PromptRefused
    | r.CancelRequested
    | r.RetryRequested
    | r.SegmentRequested
    | r.SegmentGenerated
    | r.SegmentFailed
    | r.PieceRequested
    | r.PieceStitched
    | r.SeamRejected
    | r.PieceChecked
    | r.AssemblyRequested
    | r.VideoAssembled
    | r.AssemblyFailed
    | r.VideoChecked
    | r.VideoFinished
    | r.JobChanged
    | r.ReleaseChanged
    | r.ReleaseCause
    | r.AssetChanged
    | r.PlayReported
    | r.JobState
    | r.JobProgress
    | r.EngineBaseline
    | r.LineThroughput
    | r.QualityBaseline
)

EVENTS: tuple[type[Event], ...] = (
    r.PromptSubmitted,
    r.PromptRefused,
    r.CancelRequested,
    r.RetryRequested,
    r.SegmentRequested,
    r.SegmentGenerated,
    r.SegmentFailed,
    r.PieceRequested,
    r.PieceStitched,
    r.SeamRejected,
    r.PieceChecked,
    r.AssemblyRequested,
    r.VideoAssembled,
    r.AssemblyFailed,
    r.VideoChecked,
    r.VideoFinished,
    r.JobChanged,
    r.ReleaseChanged,
    r.ReleaseCause,
    r.AssetChanged,
    r.PlayReported,
    r.JobState,
    r.JobProgress,
    r.EngineBaseline,
    r.LineThroughput,
    r.QualityBaseline,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic as it is created. `compacted` topics keep the last record of each key for ever."""

    name: str
    events: tuple[type[Event], ...]
    compacted: bool = False


_COMPACTED = {
    r.JobChanged.topic,
    r.JobState.topic,
    r.EngineBaseline.topic,
    r.ReleaseChanged.topic,
    r.AssetChanged.topic,
}


def _topics() -> tuple[Topic, ...]:
    names = dict.fromkeys(event.topic for event in EVENTS)
    topics = [
        Topic(name=name, events=tuple(e for e in EVENTS if e.topic == name), compacted=name in _COMPACTED)
        for name in names
    ]
    return (*topics, Topic(name=DEAD_LETTERS, events=()))


TOPICS = _topics()


def key_of(event: Event) -> str:
    """The record's key: `job_id`, or for the streams about the line itself what they are about."""
    match event:
        case r.EngineBaseline():
            return f"engine/{event.engine}/{event.engine_version}"
        case r.LineThroughput():
            return f"minute/{event.minute_us}"
        case r.QualityBaseline():
            return f"quality/{event.population}"
        case r.ReleaseChanged():
            return f"release/{event.name}"
        case r.ReleaseCause():
            return f"cause/{event.name}"
        case r.AssetChanged():
            return f"asset/{event.asset.name}@{event.asset.version}"
        case _:
            return event.job_id
