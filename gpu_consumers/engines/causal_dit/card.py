"""What is on the card: a take is admitted by the ledger's numbers before anything of it is made.

Weights are counted once per model, activations once for the largest take, caches for every take that is alive.
"""

import os
import re
import weakref
from dataclasses import dataclass, fields
from itertools import count

import torch

from gpu_consumers.engines.causal_dit.ledger import RESERVE, Ledger
from gpu_consumers.engines.engine import EngineError, NoRoomError
from schemas.records import FailureKind

LIMIT = "LONGTAKE_CARD_MEMORY"
"""Environment: the most that takes may need, as in `24GB` (1024^3). On a card never more than is free on it."""
_SIZE = re.compile(r"(\d{1,6}(?:\.\d{1,3})?) ?(KB|MB|GB)")
_UNITS = {"KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}


@dataclass(frozen=True, slots=True, kw_only=True, weakref_slot=True)
class Place:
    """A take's memory is counted for as long as this is referred to."""

    number: int


class Card:
    """The takes that are alive. `budget_bytes` None: nobody counts."""

    def __init__(self, budget_bytes: int | None) -> None:
        self.budget_bytes = budget_bytes
        self._numbers = count()
        self._alive: dict[int, tuple[str, Ledger]] = {}

    @property
    def models(self) -> frozenset[str]:
        """Those that takes are of."""
        return frozenset(model for model, _ in list(self._alive.values()))

    def needed(self, *more: tuple[str, Ledger]) -> int:
        """Bytes of the takes that are alive, and of more of them, each with its model's name."""
        takes = [*list(self._alive.values()), *more]
        weights: dict[str, int] = {}
        for model, ledger in takes:  # some jobs add a control branch to it, some do not
            weights[model] = max(weights.get(model, 0), ledger.total - ledger.per_job() - ledger.activations)
        activations = max((ledger.activations for _, ledger in takes), default=0)
        return sum(weights.values()) + activations + sum(ledger.per_job() for _, ledger in takes)

    def admit(self, model: str, ledger: Ledger) -> Place:
        """Count a take in. Raises: NoRoomError with the numbers."""
        needed = self.needed((model, ledger))
        if self.budget_bytes is not None and needed > self.budget_bytes:
            others = len(self._alive)
            reason = (
                f"no room for the take: {_gb(ledger.total)} GB ({parts(ledger)}) beside {others} other takes are "
                f"{_gb(needed)} GB, and there are {_gb(self.budget_bytes)} GB; `longtake plan` says what to change"
            )
            raise NoRoomError(reason, others=others)
        place = Place(number=next(self._numbers))
        self._alive[place.number] = (model, ledger)
        weakref.finalize(place, self._alive.pop, place.number)
        return place


def card_of(device: torch.device) -> Card:
    """With what is free on the card now, less the reserve, or what the environment says if that is less. Raises: EngineError."""
    limits: list[int] = []
    if said := os.environ.get(LIMIT):
        match = _SIZE.fullmatch(said)
        if not match:
            raise EngineError(FailureKind.ENGINE, f"{LIMIT} is written 24GB, not {said[:40]!r}", retryable=False)
        limits.append(round(float(match[1]) * _UNITS[match[2]]))
    if device.type == "cuda":
        free, total = torch.cuda.mem_get_info(device)
        limits.append(free - round(RESERVE * total))
    return Card(min(limits, default=None))


def parts(ledger: Ledger) -> str:
    """The ledger in one line: GB by part, largest first, those of nothing left out."""
    sizes = {field.name: int(getattr(ledger, field.name)) for field in fields(ledger)}
    return ", ".join(
        f"{name.replace('_', ' ')} {_gb(size)}" for name, size in sorted(sizes.items(), key=lambda i: -i[1]) if size
    )


def _gb(size: int) -> str:
    return f"{size / 1e9:.3g}"
