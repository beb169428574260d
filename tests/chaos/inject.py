"""Makes a schedule come true on a running stack."""

import os
import random
import signal
import time
from collections.abc import Callable, Mapping, Sequence

import psutil

from infra.bus import clients
from infra.bus.message import Message
from schemas import records as r
from tests.chaos.schedule import Fault, Kind, Line
from tests.chaos.stack import Stack, send
from tests.chaos.store import Store
from tests.chaos.watch import Groups, Recovery, Tail, Watch

REPLAYABLE = frozenset(
    event.topic
    for event in (
        r.PromptSubmitted,
        r.SegmentRequested,
        r.SegmentGenerated,
        r.PieceRequested,
        r.PieceStitched,
        r.PieceChecked,
        r.AssemblyRequested,
        r.VideoAssembled,
        r.VideoChecked,
    )
)
"""What a producer may send twice, early or late. The line's own last words are not for others to say."""
_PATIENCE_S = 5.0
"""How long a fault waits for its victim to have work in hand."""
_REPEATS = 40
_STEP_S = 7200
"""A clock is wrong by up to an hour, either way."""
_CLICKHOUSE = ("check-pieces", "check-videos")


class Injector:
    """Owns what is wrong at the moment. One call of `turn` after the other, in one thread."""

    def __init__(self, stack: Stack, line: Line, store: Store | None, tail: Tail, seed: int) -> None:
        self._stack = stack
        self._line = line
        self._store = store
        self._tail = tail
        self._groups = Groups(stack.settings)
        self._group_of = {role: self._groups.of_role(role) for role in line.workers}
        self._chance = random.Random(f"{seed}/repeats")
        self._undo: list[tuple[float, Callable[[], object]]] = []
        self._now_s = 0.0
        self._producer = clients.plain_producer(stack.settings, "longtake.chaos.repeats")
        self.watch = Watch(self._groups, tail)
        self.injected: list[Fault] = []

    def turn(self, schedule: list[Fault], now_s: float) -> None:
        """Begin what is due and remove it from the schedule, end what has lasted long enough, look at recoveries."""
        self._now_s = now_s
        for undo in [undo for undo in self._undo if undo[0] <= now_s]:
            self._undo.remove(undo)
            undo[1]()
        if schedule and schedule[0].at_s <= now_s:
            fault = schedule[0]
            if self._strike(fault, patient=now_s < fault.at_s + _PATIENCE_S):
                self.injected.append(schedule.pop(0))
        self.watch.look()

    def quiet(self) -> bool:
        """Whether nothing is wrong any more and all that was affected has recovered."""
        return not self._undo and not self.watch.unrecovered()

    def drained(self) -> bool:
        """Whether every group has read everything. A group that does not say how far it is has not."""
        return all(self._groups.committed(group) for group in self._group_of.values()) and not any(
            self.watch.waiting(group, None) for group in self._group_of.values()
        )

    def end(self) -> None:
        """Put right what is still wrong."""
        for _, undo in self._undo:
            undo()
        self._undo.clear()
        self._producer.close()

    def _strike(self, fault: Fault, *, patient: bool) -> bool:
        """False: the victim has nothing in hand yet."""
        match fault.kind:
            case Kind.KILL | Kind.KILL_CHILD | Kind.PAUSE:
                return self._process(fault, patient=patient)
            case Kind.BROKER:
                self._kill_broker(fault)
            case Kind.CLICKHOUSE:
                waits = self._waits(_CLICKHOUSE)
                _kill(self._stack.pid("clickhouse"))
                self._measure(fault, waits)
            case Kind.CLOCK:
                self._clock(fault)
            case Kind.REPEATS:
                self._repeat(fault)
            case Kind.DISK_FULL | Kind.STORE_ERRORS | Kind.STORE_SLOW:
                assert self._store
                wrong, right = self._store.faults[fault.kind]
                wrong(fault.pick)
                self._later(fault, lambda: (right(), self._measure(fault, self._waits(self._line.workers))))
        return True

    def _process(self, fault: Fault, *, patient: bool) -> bool:
        group = self._group_of[fault.target]
        held = self._groups.held(group)
        names = [f"{fault.target}-{slot}" for slot in range(self._line.workers[fault.target])]
        alive = [
            name
            for name in names
            if self._stack.pid(name) and (fault.kind is not Kind.KILL_CHILD or self._stack.engine(name))
        ]
        busy = {name: found for name in alive if (found := self.watch.waiting(group, held.get(name, set())))}
        candidates = list(busy) or alive
        if not candidates or (patient and not busy):
            return False
        name = candidates[int(fault.pick * len(candidates))]
        hit = self.watch.offsets(group, held.get(name, set())) if name in busy else {}
        family = self._stack.family(name)
        if fault.kind is Kind.PAUSE:
            send(family, signal.SIGSTOP)
            self._later(fault, lambda: send(family, signal.SIGCONT))
        else:
            _kill(self._stack.engine(name) if fault.kind is Kind.KILL_CHILD else self._stack.pid(name))
        recovery = Recovery(fault=fault, name=name, groups=(group,), began_s=time.monotonic())
        self.watch.add(recovery, hit)
        return True

    def _kill_broker(self, fault: Fault) -> None:
        waits = self._waits(self._line.workers)
        self.watch.disturb()
        self._tail.rest()
        _kill(self._stack.pid("kafka"))
        self._measure(fault, waits, after_broker=True)

    def _clock(self, fault: Fault) -> None:
        names = [f"{role}-{slot}" for role, count in self._line.workers.items() for slot in range(count)]
        name = names[int(fault.pick * len(names))]
        step_s = int((fault.pick * 997 % 1 - 0.5) * _STEP_S)
        self._stack.clock(name).write_text(f"{step_s}\n")
        self._later(fault, lambda: self._stack.clock(name).write_text("0\n"))
        self._measure(fault, self._waits([name.rpartition("-")[0]]), name=f"{name} {step_s:+d} s")

    def _repeat(self, fault: Fault) -> None:
        messages = [message for message in self._tail.kept if message.topic in REPLAYABLE]
        again = self._chance.sample(messages, min(len(messages), 1 + int(fault.pick * _REPEATS)))
        for message in again:
            self._produce(message)
        self._measure(fault, self._waits(["director"] if "director" in self._line.workers else self._line.workers))

    def _produce(self, message: Message) -> None:
        self._producer.produce(message.topic, message.value, message.key, headers=list(message.headers))
        self._producer.poll(0)

    def _waits(self, roles: Sequence[str] | Mapping[str, int]) -> dict[str, dict[tuple[str, str, int], int]]:
        groups = [self._group_of[role] for role in roles if role in self._group_of]
        return {group: found for group in groups if (found := self.watch.waiting(group, None))}

    def _measure(
        self,
        fault: Fault,
        waits: Mapping[str, Mapping[tuple[str, str, int], int]],
        *,
        name: str = "",
        after_broker: bool = False,
    ) -> None:
        """One time for each group in which something waits."""
        began_s = time.monotonic()
        for group, waiting in waits.items():
            recovery = Recovery(
                fault=fault, name=name or group, groups=(group,), began_s=began_s, after_broker=after_broker
            )
            self.watch.add(recovery, waiting)

    def _later(self, fault: Fault, undo: Callable[[], object]) -> None:
        self._undo.append((self._now_s + fault.lasts_s, undo))


def _kill(pid: int) -> None:
    """kill -9, and wait until it is gone. 0: it is between two lives."""
    if not pid:
        return
    try:
        process = psutil.Process(pid)
        os.kill(pid, signal.SIGKILL)
        process.wait(5)
    except (ProcessLookupError, psutil.Error):
        return
