"""The bus alone under attack: questions, workers that answer each once, directors that count them, in exactly-once transactions."""

import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from infra.bus import clients
from infra.bus.outputs import Cause, outputs_of
from infra.bus.reader import Reader, event_of
from infra.settings import Settings
from schemas.headers import trace_root
from schemas.records import JobState, PromptRefused, SegmentFailed
from tests.bus.line import ANSWERED, ASKED, TABLE, WORKER, question
from tests.chaos import verify
from tests.chaos.inject import Injector
from tests.chaos.outcome import Outcome
from tests.chaos.schedule import Fault, Line, end_s
from tests.chaos.stack import Stack, running_stack
from tests.chaos.watch import Tail

WORKERS = {WORKER.role: 4, TABLE.role: 2}
_PARTITIONS = 16
_JOBS = 500
_TURN_S = 0.05
_PATIENCE_S = 900.0


def run_bus(
    seed: int, records: int, session_s: float, schedule_of: Callable[[int, Line], tuple[Fault, ...]], folder: Path
) -> Outcome:
    """A stack in `folder`. The questions come evenly over the time of the schedule, which also asks some of them again."""
    settings = Settings(
        state=folder / "state",
        objects=(folder / "objects").as_uri(),
        partitions=_PARTITIONS,
        slots=_PARTITIONS,
        session_timeout_ms=round(session_s * 1000),
    )
    commands = {
        f"{role}-{slot}": [sys.executable, "-m", "tests.chaos.member", role, "--slot", str(slot)]
        for role, count in WORKERS.items()
        for slot in range(count)
    }
    line = Line(workers=WORKERS, session_s=session_s, clickhouse=False, store=frozenset(), clock=False)
    with running_stack(settings, commands) as stack:
        return _attacked(seed, records, stack, line, schedule_of(seed, line))


def _attacked(seed: int, records: int, stack: Stack, line: Line, schedule: tuple[Fault, ...]) -> Outcome:
    tail = Tail(stack.settings, [ASKED])
    asking = _Asking(stack.settings)
    asking.until(1)
    _wait_for_groups(stack.settings)
    injector = Injector(stack, line, None, tail, seed)
    left, started_s = list(schedule), time.monotonic()
    try:
        while left or asking.sent < records or not injector.quiet() or not _answered(tail, records):
            now_s = time.monotonic() - started_s
            if now_s > end_s(schedule) + _PATIENCE_S:
                break
            asking.until(min(records, int(records * now_s / end_s(schedule))))
            tail.drain()
            injector.turn(left, now_s)
            time.sleep(_TURN_S)
    finally:
        injector.end()
    wall_s = time.monotonic() - started_s
    return Outcome(
        seed=seed,
        schedule=schedule,
        recoveries=tuple(injector.watch.done),
        unrecovered=tuple(injector.watch.unrecovered()),
        injected=len(injector.injected),
        wall_s=wall_s,
        **_checked(stack.settings),
    )


def _answered(tail: Tail, records: int) -> bool:
    """Whether each group has answered as many questions as there are: whether they are the right ones is looked at afterwards."""
    asked = tail.counts[ASKED]
    return asked >= records and tail.counts[ANSWERED] >= len(WORKERS) * asked


class _Asking:
    """Owns a producer that does not wait for the broker."""

    def __init__(self, settings: Settings) -> None:
        self._producer = clients.plain_producer(settings, "longtake.chaos.producer")
        self.sent = 0

    def until(self, count: int) -> None:
        """Ask until this many questions were asked."""
        for number in range(self.sent, count):
            job_id = f"job-{number % _JOBS}"
            cause = Cause(id=str(number), traceparent=trace_root(job_id), source="chaos", time_us=number)
            for output in outputs_of([question(job_id, number)], cause):
                self._producer.produce(output.topic, output.value, output.key, headers=list(output.headers))
            self._producer.poll(0)
        self.sent = max(self.sent, count)
        self._producer.poll(0)


def _wait_for_groups(settings: Settings) -> None:
    """Until both groups have answered something: then they can be watched."""
    with Reader.from_beginning(settings, [ANSWERED]) as reader:
        heard: set[str] = set()
        for message in reader.for_seconds(60.0):
            event = event_of(message)
            assert isinstance(event, PromptRefused)
            heard.add(event.rule)
            if len(heard) == len(WORKERS):
                return
    raise AssertionError("the groups do not answer")


def _checked(settings: Settings) -> dict[str, object]:
    """Every question has one answer of the workers, and its place in the count of the directors; so has the table."""
    asked, answered = Counter[tuple[str, int]](), Counter[tuple[str, str, int]]()
    table: dict[str, int] = {}
    with Reader.from_beginning(settings, [ASKED, ANSWERED, JobState.topic]) as reader:
        for event in map(event_of, reader.to_end()):
            match event:
                case SegmentFailed():
                    asked[event.job_id, event.segment] += 1
                case PromptRefused():
                    answered[event.rule, event.job_id, int(event.field)] += 1
                case JobState():
                    table[event.job_id] = event.attempts
                case _:
                    raise AssertionError(f"{type(event).__name__} does not belong here")
    counts = Counter[str]()
    for (job_id, _), times in asked.items():
        counts[job_id] += times
    wanted = Counter({(WORKER.role, job_id, number): times for (job_id, number), times in asked.items()})
    wanted.update((TABLE.role, job_id, n + 1) for job_id, count in counts.items() for n in range(count))
    lost, doubled = wanted - answered, answered - wanted
    hanging = verify.hanging(settings)
    differing = [job_id for job_id, count in counts.items() if table.get(job_id) != count]
    return {
        "records": asked.total(),
        "lost": lost.total(),
        "doubled": doubled.total(),
        "wrong": {"bus_hanging_transactions": len(hanging), "bus_table_disagrees": len(differing)},
        "facts": {"bus_records": asked.total(), "bus_answers": answered.total()},
        "problems": (
            *(f"lost: {answer}" for answer in list(lost)[:20]),
            *(f"doubled: {answer}" for answer in list(doubled)[:20]),
            *(f"open transaction in {place}" for place in hanging),
            *(f"the table does not count right: {job_id}" for job_id in differing[:20]),
        ),
    }
