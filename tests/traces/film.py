"""The records of a job, with headers and times, as a line without a broker writes them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from infra.bus.message import Message
from infra.bus.outputs import Cause, Output, caused_by, outputs_of
from schemas import records as r
from schemas.codec import decode
from schemas.headers import trace_root
from schemas.topics import Event
from streams.decider import INPUTS
from tests.director import builders as b

STEP_US = 100_003
"""Odd on purpose: a time that was rounded to milliseconds would be seen."""
Spoil = Callable[[Event], Event]


def as_it_is(event: Event) -> Event:
    return event


@dataclass
class Film:
    """A director, instant workers, and every record in the order in which it was written."""

    spoil: Spoil = as_it_is
    """What becomes of an answer."""
    job_id: str = "harbour"
    caller: str = ""
    """The traceparent that the producer sends; empty: that of our own command line."""
    records: list[tuple[Message, Event]] = field(default_factory=list)
    _line: b.Line = field(default_factory=b.Line)
    _now_us: int = b.START_US
    _offsets: Any = field(default_factory=count)

    def submit(self, **fields: Any) -> "Film":
        """The job from its prompt to its end."""
        self._run(b.prompt(job_id=self.job_id, submitted_us=self._now_us, **fields), "prompt")
        return self

    def retry(self) -> "Film":
        self._run(r.RetryRequested(job_id=self.job_id, requested_us=self._now_us), "retry")
        return self

    def all(self, kind: type[b.E]) -> list[b.E]:
        return [event for _, event in self.records if isinstance(event, kind)]

    def _run(self, event: Event, identity: str) -> None:
        cause = Cause(id=identity, traceparent=trace_root(self.job_id), source="longtake/cli", time_us=self._now_us)
        pending = self._written([event], cause)
        if self.caller and identity == "prompt":
            message, prompt = pending[0]
            pending = [(replace(message, headers=(("traceparent", self.caller.encode()),)), prompt)]
            self.records[-1] = pending[0]
        while pending:
            message, event = pending.pop(0)
            self._now_us += STEP_US
            if message.topic in INPUTS:
                pending += self._decided(message)
            answers = [self.spoil(self._timed(answer)) for answer in b.answers(event)]
            role = "longtake/worker"
            pending += self._written(answers, caused_by(message, role, self._now_us))

    def _decided(self, message: Message) -> list[tuple[Message, Event]]:
        line = self._line
        events = line.take(line.decider.decide(message, line.row, self._now_us))
        written = self._written(events, caused_by(message, "longtake/director", self._now_us))
        if line.row and line.row.stage is r.Stage.QUEUED:
            traceparent = line.row.traceparent
            turn = Cause(
                id=f"director/{self.job_id}/{self._now_us}",
                traceparent=traceparent,
                source="longtake/director",
                time_us=self._now_us,
            )
            written += self._written(line.take(line.decider.start(line.row, self._now_us)), turn)
        return written

    def _timed(self, answer: Event) -> Event:
        """The answer with times: three tenths of a step to generate, a frame every 1,001 microseconds."""
        start_us, end_us = self._now_us, self._now_us + STEP_US // 2
        self._now_us = end_us
        match answer:
            case r.SegmentGenerated():
                parts = {"denoise_us": 30_001, "decode_us": 10_007, "store_us": 5_003}
                return replace(answer, started_us=start_us, finished_us=end_us, **parts)
            case r.PieceStitched():
                times = tuple(start_us + 1001 * frame for frame in range(answer.frames))
                return replace(answer, started_us=start_us, finished_us=end_us, encoded_us=times)
            case r.VideoAssembled():
                return replace(answer, started_us=start_us, finished_us=end_us)
            case r.PieceChecked() | r.VideoChecked():
                return replace(answer, checked_us=end_us)
            case _:
                return answer

    def _written(self, events: Iterable[Event], cause: Cause) -> list[tuple[Message, Event]]:
        written = [(self._message(output), decode(output.value or b"")) for output in outputs_of(events, cause)]
        self.records += written
        return written

    def _message(self, output: Output) -> Message:
        fields: dict[str, Any] = {"topic": output.topic, "key": output.key, "value": output.value}
        place: dict[str, Any] = {"partition": 0, "offset": next(self._offsets), "headers": output.headers}
        return Message(**fields, **place, timestamp_us=self._now_us // 1000 * 1000)
