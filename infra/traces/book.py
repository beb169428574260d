"""Jobs whose traces are not told yet, in bounded memory, and which of their spans are told."""

from collections import OrderedDict
from dataclasses import replace

from prometheus_client import Counter

from infra.bus.message import Message
from infra.settings import Settings
from infra.traces.run import Run
from infra.traces.span import Span
from infra.traces.tree import LINE, failed, tree
from schemas.topics import Event

_SETTLE_S = 3.0
"""Between a job's end and its trace: topics are read side by side, and what led to the end may be read after it."""
_JOBS = 10_000
_FACTS = 200_000
"""About 130 MB: 660 bytes each, the times of frames included."""

TRACES = Counter("longtake_traces_total", "Jobs, by what became of their trace: told, left_out or lost.", ("outcome",))


class Book:
    """Owns what was heard of every open job, the one heard of longest ago first."""

    def __init__(self, facts: int = _FACTS, jobs: int = _JOBS) -> None:
        self._most_facts = facts
        self._most_jobs = jobs
        self._runs: OrderedDict[str, Run] = OrderedDict()
        self._due_s: dict[str, float] = {}
        self._facts = 0
        self.lost = 0
        """Jobs that were let go before their end, for want of room."""

    def take(self, message: Message, event: Event, now_s: float) -> None:
        """Remember a record. `now_s` is on the monotonic clock."""
        job_id = message.job_id
        run = self._runs.setdefault(job_id, Run(job_id=job_id))
        self._runs.move_to_end(job_id)
        before = run.facts
        run.take(message, event)
        self._facts += run.facts - before
        if run.ended:
            self._due_s.setdefault(job_id, now_s + _SETTLE_S)
        else:
            self._due_s.pop(job_id, None)

    def due(self, now_s: float) -> list[tuple[Span, ...]]:
        """The trees of jobs that have ended a while ago; and of those that have to make room."""
        ready = [job_id for job_id, due_s in self._due_s.items() if due_s <= now_s]
        return [*map(self._told, ready), *self.room()]

    def room(self) -> list[tuple[Span, ...]]:
        """Let go of what is too much: an ended job is told first."""
        told: list[tuple[Span, ...]] = []
        while self._facts > self._most_facts or len(self._runs) > self._most_jobs:
            job_id = next(iter(self._runs))
            if job_id in self._due_s:
                told.append(self._told(job_id))
            run = self._runs.pop(job_id)
            self.lost += bool(run.facts)
            TRACES.labels("lost").inc(bool(run.facts))
            self._facts -= run.facts
        return told

    def _told(self, job_id: str) -> tuple[Span, ...]:
        del self._due_s[job_id]
        run = self._runs[job_id]
        spans = tree(run)
        self._facts -= run.facts
        run.forget()
        return spans


def chosen(spans: tuple[Span, ...], settings: Settings) -> tuple[Span, ...]:
    """What is told of a job: all of it if something failed, otherwise by the shares of the line and of each service.

    A trace is drawn by its id: every service, and whoever else draws so, draws the same ones.
    """
    if not spans or failed(spans):
        return spans
    draw = (spans[0].trace_id & ((1 << 56) - 1)) / (1 << 56)
    if draw >= settings.trace_share:
        return ()
    shares = settings.trace_shares
    kept = [span for span in spans if span.service == LINE or draw < settings.trace_share * shares.get(span.service, 1)]
    known = {span.span_id for span in kept}
    return tuple(replace(span, links=tuple(link for link in span.links if link in known)) for span in kept)
