"""What was heard of one job since its trace was told last, in whatever order."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from infra.bus.message import Message
from infra.traces.fact import Asked, Done, asked_of, done_of
from infra.traces.span import Key, span_id_of
from schemas.headers import trace_id, trace_root, traceparent_of
from schemas.records import JobChanged, PromptRefused, PromptSubmitted, Stage
from schemas.topics import Event

ENDED = frozenset({Stage.FINISHED, Stage.FAILED, Stage.CANCELLED})
_DIRECTOR = b"longtake/director"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FACTS_PER_JOB = 20_000
"""About 2,500 segments: what comes beyond is left out, and the root says so."""


@dataclass(slots=True, kw_only=True)
class Said:
    """A decision of the director: all that one record led to. `written_us` is the broker's time, to the millisecond."""

    at_us: int
    written_us: int
    events: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """The job came to an end, or was taken up."""

    at_us: int
    stage: Stage
    reason: str


@dataclass(slots=True, kw_only=True)
class Run:
    """Owns the facts of one job."""

    job_id: str
    trace_id: int = 0
    caller: int = 0
    """The span of the producer that sent the prompt; 0: it sent none."""
    prompt: str = ""
    """Place of the prompt."""
    job: JobChanged | None = None
    refused: PromptRefused | None = None
    marks: list[Mark] = field(default_factory=list)
    told: bool = False
    """The first mark is the end that was told already."""
    asked: dict[Key, Asked] = field(default_factory=dict)
    done: dict[Key, Done] = field(default_factory=dict)
    said: dict[str, Said] = field(default_factory=dict)
    truncated: bool = False

    @property
    def facts(self) -> int:
        """How much it remembers."""
        return len(self.asked) + len(self.done) + len(self.said)

    @property
    def ended(self) -> bool:
        """There is something to tell and nothing to wait for."""
        if self.marks:
            return self.marks[-1].stage in ENDED and not (self.told and len(self.marks) == 1)
        return self.refused is not None

    def take(self, message: Message, event: Event) -> None:
        """Remember what a trace needs of a record."""
        headers = dict(message.headers)
        traceparent = traceparent_of(message.headers, otherwise=message.job_id or message.id)
        self.trace_id = self.trace_id or int(trace_id(traceparent), 16)
        identity = (headers.get("ce_id") or b"").decode(errors="replace")
        match event:
            case PromptSubmitted():
                self.prompt = self.prompt or message.id
                self.caller = _caller(message, traceparent, identity)
            case PromptRefused():
                self.refused = event
            case JobChanged():
                self._changed(event)
            case _:
                pass
        if self.facts >= _FACTS_PER_JOB:
            self.truncated = True
            return
        cause = identity.rpartition("/")[0]
        if headers.get("ce_source") == _DIRECTOR and cause:
            self._decided(cause, message, event)
        if asked := asked_of(event, cause):
            self.asked.setdefault(asked.key, asked)
        if done := done_of(event, message.id):
            self.done[done.key] = done

    def forget(self) -> None:
        """All is told: what comes now is of a retry."""
        self.marks, self.told, self.refused = self.marks[-1:], bool(self.marks), None
        self.asked, self.done, self.said = {}, {}, {}
        self.truncated = False

    def _changed(self, job: JobChanged) -> None:
        self.job = job
        before = self.marks[-1].stage in ENDED if self.marks else None
        if before != (job.stage in ENDED):
            self.marks.append(Mark(at_us=job.changed_us, stage=job.stage, reason=job.reason))

    def _decided(self, cause: str, message: Message, event: Event) -> None:
        name = type(event).__name__
        at_us = _time_us(message)
        said = self.said.setdefault(cause, Said(at_us=at_us, written_us=at_us, events=[]))
        said.written_us = max(said.written_us, message.timestamp_us)
        said.events.append(name)


def _caller(message: Message, traceparent: str, identity: str) -> int:
    """The producer's own span, by the prompt's header. What the line writes itself has an id made of the event's."""
    made_up = trace_root(message.job_id or message.id)
    span_id = int(traceparent.split("-")[2], 16)
    return 0 if traceparent == made_up or span_id == span_id_of(identity) else span_id


def _time_us(message: Message) -> int:
    """`ce_time` to the microsecond; the broker's time where it cannot be read."""
    for name, value in message.headers:
        if name == "ce_time" and value:
            try:
                return _parsed_us(value.decode())
            except (ValueError, UnicodeDecodeError):
                break
    return message.timestamp_us


def _parsed_us(text: str) -> int:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text} is in no time zone")
    return round((moment - _EPOCH) / timedelta(microseconds=1))
