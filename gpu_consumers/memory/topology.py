"""What connects this machine's GPUs: facts from NVML as records, and how close two devices are by them."""

import logging
from dataclasses import dataclass
from enum import IntEnum
from itertools import product

import pynvml

log = logging.getLogger(__name__)


class Path(IntEnum):
    """Where the ways of two devices meet on PCIe: NVML's numbers, and what `nvidia-smi topo -mp` prints for them."""

    BOARD = pynvml.NVML_TOPOLOGY_INTERNAL
    PIX = pynvml.NVML_TOPOLOGY_SINGLE
    """One switch."""
    PXB = pynvml.NVML_TOPOLOGY_MULTIPLE
    """Several switches under one host bridge."""
    PHB = pynvml.NVML_TOPOLOGY_HOSTBRIDGE
    NODE = pynvml.NVML_TOPOLOGY_NODE
    """Several host bridges of one NUMA node."""
    SYS = pynvml.NVML_TOPOLOGY_SYSTEM


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One GPU. `used_bytes` is as of the reading."""

    uuid: str
    name: str
    memory_bytes: int
    used_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """All GPUs, in NVML's order; `pcie` and `nvlink` are square: row and column are devices."""

    devices: tuple[Device, ...] = ()
    pcie: tuple[tuple[Path, ...], ...] = ()
    nvlink: tuple[tuple[bool, ...], ...] = ()

    def island(self, device: int) -> frozenset[int]:
        """The devices that NVLink joins to this one, itself included: directly, by a switch or by way of others."""
        seen, new = {device}, [device]
        while new:
            row = self.nvlink[new.pop()]
            found = {other for other, linked in enumerate(row) if linked} - seen
            seen |= found
            new += found
        return frozenset(seen)


SAME_ISLAND, SAME_ROOT, FAR = 1.0, 0.4, 0.1


def score(topology: Topology, a: int, b: int) -> float:
    """How well two devices work together: 1.0 in one NVLink island, 0.4 under one PCIe root, 0.1 beyond it."""
    if b in topology.island(a):
        return SAME_ISLAND
    return SAME_ROOT if topology.pcie[a][b] <= Path.PHB else FAR


def read_topology() -> Topology:
    """The devices that the driver shows to this process. Lost ones are left out; without a driver there are none."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        log.debug("no GPU: %s", error)
        return Topology()
    try:
        return _read()
    finally:
        pynvml.nvmlShutdown()


def _read() -> Topology:
    handles: list[object] = []
    devices: list[Device] = []
    for index in range(pynvml.nvmlDeviceGetCount()):
        try:
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
            uuid, name = pynvml.nvmlDeviceGetUUID(handle), pynvml.nvmlDeviceGetName(handle)
        except pynvml.NVMLError as error:
            log.warning("GPU %d is left out: %s", index, error)
            continue
        handles.append(handle)
        devices.append(Device(uuid=uuid, name=name, memory_bytes=int(memory.total), used_bytes=int(memory.used)))
    size = range(len(handles))
    pcie = {(a, b): _path(handles[a], handles[b]) if a != b else Path.BOARD for a, b in product(size, size)}
    nvlink = {(a, b): a != b and _linked(handles[a], handles[b]) for a, b in product(size, size)}
    return Topology(
        devices=tuple(devices),
        pcie=tuple(tuple(pcie[a, b] for b in size) for a in size),
        nvlink=tuple(tuple(nvlink[a, b] for b in size) for a in size),
    )


def _path(a: object, b: object) -> Path:
    try:
        return Path(pynvml.nvmlDeviceGetTopologyCommonAncestor(a, b))
    except pynvml.NVMLError:  # not told inside some virtual machines
        return Path.SYS


def _linked(a: object, b: object) -> bool:
    try:
        status = pynvml.nvmlDeviceGetP2PStatus(a, b, pynvml.NVML_P2P_CAPS_INDEX_NVLINK)
    except pynvml.NVMLError:
        return False
    return status == pynvml.NVML_P2P_STATUS_OK
