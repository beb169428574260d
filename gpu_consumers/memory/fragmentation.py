"""How much of what the allocator holds lies in pieces that nothing fits into, and what to do about it between segments."""

from collections.abc import Mapping
from enum import StrEnum

REPORT_AT = 0.30
REBUILD_AT = 0.70


class Care(StrEnum):
    """What the pool needs."""

    NONE = "none"
    REPORT = "report"
    """Logged and counted; nothing is done."""
    REBUILD = "rebuild"
    """Give everything back that can be, before the next segment: never inside one."""


def fragmentation(stats: Mapping[str, int]) -> float:
    """The share of reserved bytes that lie idle between blocks in use and cannot be given back.

    `stats` are those of `torch.cuda.memory_stats()`.
    """
    reserved = stats.get("reserved_bytes.all.current", 0)
    return stats.get("inactive_split_bytes.all.current", 0) / reserved if reserved else 0.0


def care(ratio: float) -> Care:
    """Nothing below 30 %, a new pool above 70 %."""
    if ratio > REBUILD_AT:
        return Care.REBUILD
    return Care.REPORT if ratio >= REPORT_AT else Care.NONE
