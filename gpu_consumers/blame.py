"""Which request is answered with a failure when an engine process ends: at most one; the others are given to the next process."""

import signal
from collections.abc import Iterable
from dataclasses import dataclass

from gpu_consumers.pipe import ENGINE_STAGES, LastWords, Stage
from schemas.records import FailureKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """A request that was in the process. `crashes` of processes it was in, this one not counted, while the engine worked on it."""

    number: int
    stage: Stage
    crashes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """The worker killed the process because there was no step for `silent_s`. `number` None: not in any request."""

    number: int | None
    silent_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a process ended. `exit_code` is negative for a signal; `oom_killed`: the kernel killed something for memory meanwhile."""

    exit_code: int
    oom_killed: bool = False
    last_words: LastWords | None = None
    stall: Stall | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Blame:
    """Request `number` failed."""

    number: int
    kind: FailureKind
    reason: str


def blame(suspects: Iterable[Suspect], ending: Ending) -> Blame | None:
    """Whose fault the ending was. None: nobody's, nothing fails. An error or a stall of the object store is nobody's.

    A process that stalls or says why it ends names the request. Otherwise it is one that the engine was working on; of
    two, the one that was there when a process crashed before, so that a request which kills every process takes at most
    one innocent request with it.
    """
    by_number = {suspect.number: suspect for suspect in suspects}
    if ending.stall:
        return _of_stall(by_number, ending.stall)
    words = ending.last_words
    if words:
        if words.stage not in ENGINE_STAGES and words.kind is not FailureKind.OUT_OF_MEMORY:
            return None
        return Blame(number=words.number, kind=words.kind, reason=f"{words.reason} (while in {words.stage})")
    working = [suspect for suspect in by_number.values() if suspect.stage in ENGINE_STAGES]
    if not working:
        return None
    worst = max(working, key=lambda suspect: (suspect.crashes, suspect.stage is Stage.DENOISE))
    kind, reason = _of_exit(ending)
    return Blame(number=worst.number, kind=kind, reason=f"{reason} while in {worst.stage}")


def _of_stall(suspects: dict[int, Suspect], stall: Stall) -> Blame | None:
    stage = Stage.QUEUED if stall.number is None else suspects[stall.number].stage
    if stall.number is None or stage not in ENGINE_STAGES:
        return None
    return Blame(
        number=stall.number, kind=FailureKind.TIMEOUT, reason=f"no step for {stall.silent_s:.1f} s while in {stage}"
    )


def _of_exit(ending: Ending) -> tuple[FailureKind, str]:
    if ending.exit_code == -signal.SIGKILL and ending.oom_killed:
        return FailureKind.OUT_OF_MEMORY, "the kernel killed the engine process for memory"
    if ending.exit_code < 0:
        return FailureKind.CRASHED, f"the engine process was ended by {signal.Signals(-ending.exit_code).name}"
    return FailureKind.CRASHED, f"the engine process exited with {ending.exit_code}"
