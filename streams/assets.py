"""The assets of a plan: which they are, in the order they are used."""

from collections.abc import Iterable

from schemas.records import AssetRef
from streams.validation import refused

MAX_ASSETS = 64
"""Of a job: every JobChanged lists them."""


def in_order(uses: Iterable[tuple[int, AssetRef]]) -> tuple[AssetRef, ...]:
    """Each asset once, by when it is used first. Raises: BadInputError if there are too many."""
    assets = tuple(dict.fromkeys(asset for _, asset in sorted(uses, key=lambda use: use[0])))
    if len(assets) > MAX_ASSETS:
        raise refused("assets", "number", f"{len(assets)} assets, at most {MAX_ASSETS}")
    return assets
