"""What an engine process must find in its environment before it imports torch: its device, and how memory is pooled."""

import re
from collections.abc import Mapping

from gpu_consumers.memory.topology import Device

_POOL = "expandable_segments:True"
"""Segments grow in place, so that tensors of changing sizes leave no holes (PyTorch, "CUDA semantics: memory management")."""

_NOT_FOR_ENGINES = re.compile(r"LONGTAKE_(KAFKA(_.*)?|CLICKHOUSE(_.*)?|WEBHOOKS(_.*)?|.*_PASSWORD(_FILE)?)")


def engine_environment(environ: Mapping[str, str], device: Device | None) -> dict[str, str]:
    """`environ` with the device pinned and the pool configured; what it already says of either stays.

    Without what opens the bus and the database: an engine is other people's code, and speaks to its worker only.
    """
    environ = {name: value for name, value in environ.items() if not _NOT_FOR_ENGINES.fullmatch(name)}
    added = {"PYTORCH_ALLOC_CONF": _POOL, "PYTORCH_CUDA_ALLOC_CONF": _POOL}
    if any(name in environ for name in added):
        added = {}
    if device and "CUDA_VISIBLE_DEVICES" not in environ:
        added |= {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": device.uuid}
    return {**environ, **added}
