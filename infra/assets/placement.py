"""Which machines keep an asset: rendezvous hashing (highest random weight, Thaler and Ravishankar 1998) on xxHash64. Pure.

Every machine comes to the same answer by itself. When one joins or leaves, only what it keeps moves: 1/n of all.
"""

from collections.abc import Mapping

import xxhash

from schemas.records import AssetRef

REPLICAS = 2
"""Machines that keep an asset: one may be away."""


def weight(asset: AssetRef, node: str) -> int:
    """From 0 to 2^64 - 1, as if drawn at random."""
    said = (asset.content.digest, asset.region, asset.version, node)
    return xxhash.xxh64_intdigest("\0".join(said).encode())


def keepers(asset: AssetRef, nodes: Mapping[str, str], replicas: int = REPLICAS) -> tuple[str, ...]:
    """Who keeps the asset, the first choice first. `nodes` are the regions of machines, by name.

    An asset with a region is kept there, if any machine is there.
    """
    near = [node for node, region in nodes.items() if asset.region in ("", region)]
    return tuple(sorted(near or nodes, key=lambda node: (weight(asset, node), node), reverse=True)[:replicas])


def keeps(asset: AssetRef, node: str, nodes: Mapping[str, str]) -> bool:
    """Whether this machine is to keep it. One that knows of no others keeps all."""
    return not nodes or node in keepers(asset, nodes)
