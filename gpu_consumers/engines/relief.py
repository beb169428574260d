"""What a job's options become when one of its segments found no room: how the changes of `faults.py` reach an engine."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from gpu_consumers.engines.causal_running import offloaded, smaller
from gpu_consumers.faults import Change


def relieved(engine: str, options: Mapping[str, str], changes: AbstractSet[Change]) -> dict[str, str]:
    """The options of the segment's next attempt and of all that follow, so that a take found again is the same take.

    Engines without a cache of their own get what they had.
    """
    relief = dict(options)
    if engine != "causal_dit":
        return relief
    if Change.OFFLOAD in changes:
        relief = offloaded(relief)
    if Change.SMALLER_CACHE in changes:
        relief = smaller(relief) or relief
    return relief
