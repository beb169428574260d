"""The engine states that a worker keeps between the segments of its jobs, so that the next one need not restore."""

import threading
from collections import OrderedDict
from dataclasses import dataclass

from gpu_consumers.collapse import Shown
from gpu_consumers.engines.engine import EngineState
from schemas.records import SegmentRequested


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A state and the digests of the latents it comes from, oldest first: those known to this process."""

    state: EngineState
    digests: tuple[str, ...]
    shown: Shown | None = None
    """By the take so far, if a collapse is looked for."""


class HeldStates:
    """At most `limit` states, one per job; the least recently used goes first, earlier where an engine needs its memory (room.py).

    A state is taken out while it works.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._states: OrderedDict[str, Held] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, request: SegmentRequested) -> Held | None:
        """The state in which `request` starts, if it is here. A state of the job that does not match is dropped."""
        with self._lock:
            held = self._states.pop(request.job_id, None)
        return held if held and _fits(held, request) else None

    def holds(self, request: SegmentRequested) -> bool:
        """Whether `take` would find it now. It may be given up before that."""
        with self._lock:
            held = self._states.get(request.job_id)
        return held is not None and _fits(held, request)

    def drop_idlest(self) -> str | None:
        """Give up the state that was not used for longest; its job's id. None: there is none that is idle."""
        with self._lock:
            return self._states.popitem(last=False)[0] if self._states else None

    def put(self, job_id: str, held: Held) -> None:
        """Keep the state in which the job's next segment starts."""
        with self._lock:
            self._states[job_id] = held
            self._states.move_to_end(job_id)
            while len(self._states) > self._limit:
                self._states.popitem(last=False)


def _fits(held: Held, request: SegmentRequested) -> bool:
    wanted = tuple(blob.digest for blob in request.latent_ref)
    return bool(wanted) and held.digests[-len(wanted) :] == wanted
