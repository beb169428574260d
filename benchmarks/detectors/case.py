"""One clip with a fault, or without, and what the line's own checks say of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from numpy.random import Generator

from qc_consumers.check import Bench
from schemas.records import Finding

SILENT_GATES = frozenset({"psnr_y_min", "psnr_y_p1", "psnr_y_worst_second", "vmaf_min", "vmaf_p1"})
"""Warn of single hard frames, which clean clips have too."""
_NEAR_FRAMES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What was found in a clip."""

    findings: Sequence[Finding]
    frame: int = -1
    """Where the fault was planted; -1: everywhere."""
    allowed: frozenset[str] = frozenset()
    """Gates that are right to speak up about a clean clip: lightning is a flash."""
    looked: frozenset[str] = field(default=frozenset())
    """Gates that were asked."""

    def has(self, gate: str) -> bool:
        """Whether this gate found the fault, where it is."""
        return any(
            finding.gate == gate
            and (self.frame < 0 or finding.frame < 0 or abs(finding.frame - self.frame) <= _NEAR_FRAMES)
            for finding in self.findings
        )

    def false_gates(self) -> set[str]:
        """Gates that found something in a clean clip."""
        return {finding.gate for finding in self.findings} - self.allowed - SILENT_GATES


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A way to make clips. `gate` is empty for clean ones."""

    name: str
    gate: str
    make: Callable[[Generator, Bench], Result]
    clips: int
