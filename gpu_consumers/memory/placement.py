"""Which devices: for a worker's slot one of its own, for what works together a group that is close and evenly filled."""

from collections.abc import Set as AbstractSet
from itertools import combinations

from gpu_consumers.memory.topology import Device, Path, Topology, score

SKEW_LIMITS = {"H100": 0.15, "H200": 0.15}
"""By what the card's name contains."""
SKEW_LIMIT = 0.22
"""A100 and all others."""


class NoRoomError(Exception):
    """No group of devices has that much memory free. The message has the numbers."""


def device_for_slot(topology: Topology, slot: int, avoid: AbstractSet[str] = frozenset()) -> Device | None:
    """The device of the slot-th worker on this machine; None if there is none. `avoid`: uuids, unless nothing else is left.

    Workers do not talk to each other, but each moves latents, frames and offloaded keys over PCIe: neighbouring slots get
    devices that share as little of it as possible, and every device gets one before any gets two.
    """
    order = [topology.devices[index] for index in _spread(topology)]
    usable = [device for device in order if device.uuid not in avoid] or order
    return usable[slot % len(usable)] if usable else None


def place(topology: Topology, need_bytes: int, count: int = 1) -> tuple[int, ...]:
    """`count` devices with `need_bytes` free on each: the closest to each other among those that keep the skew in its limit.

    If no group does, the one with the least skew. Raises: NoRoomError.
    """
    devices = topology.devices
    roomy = [i for i, device in enumerate(devices) if device.memory_bytes - device.used_bytes >= need_bytes]
    groups = list(combinations(roomy, count))
    if not groups:
        free = ", ".join(f"{(d.memory_bytes - d.used_bytes) / 1e9:.1f}" for d in devices) or "no device"
        raise NoRoomError(f"{need_bytes / 1e9:.1f} GB on each of {count} devices; free: {free} GB")
    limit = skew_limit(devices)

    def cost(group: tuple[int, ...]) -> tuple[float, float, float, tuple[int, ...]]:
        after = skew(devices, dict.fromkeys(group, need_bytes))
        closeness = sum(score(topology, a, b) for a, b in combinations(group, 2))
        return max(0.0, after - limit), -closeness, after, group

    return min(groups, key=cost)


def skew(devices: tuple[Device, ...], added: dict[int, int] | None = None) -> float:
    """How much fuller the fullest device is than the emptiest, in shares of their memory. `added`: bytes by device."""
    more = added or {}
    shares = [(device.used_bytes + more.get(i, 0)) / device.memory_bytes for i, device in enumerate(devices)]
    return max(shares) - min(shares)


def skew_limit(devices: tuple[Device, ...]) -> float:
    """The strictest of the devices' limits."""
    limits = [limit for name, limit in SKEW_LIMITS.items() if any(name in device.name for device in devices)]
    return min(limits, default=SKEW_LIMIT)


def _spread(topology: Topology) -> list[int]:
    """The devices in an order in which each is as far from those before it as it can be."""
    order: list[int] = []
    left = list(range(len(topology.devices)))
    while left:
        farthest = min(left, key=lambda i: (sum(Path.SYS - topology.pcie[i][j] for j in order), i))
        left.remove(farthest)
        order.append(farthest)
    return order
