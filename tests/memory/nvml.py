"""NVML with the answers of a recorded machine."""

from types import SimpleNamespace

import pynvml
import pytest

from gpu_consumers.memory.topology import Topology


class Nvml:
    """The driver's library with the answers of a recorded machine; `lost` devices answer with an error."""

    def __init__(self, machine: Topology, lost: int | None = None) -> None:
        self.machine, self.lost, self.open = machine, lost, 0

    def install(self, monkeypatch: pytest.MonkeyPatch) -> "Nvml":
        for name in ("Init", "Shutdown"):
            monkeypatch.setattr(pynvml, f"nvml{name}", getattr(self, name))
        names = ("Count", "HandleByIndex", "MemoryInfo", "UUID", "Name", "TopologyCommonAncestor", "P2PStatus")
        for name in names:
            monkeypatch.setattr(pynvml, f"nvmlDeviceGet{name}", getattr(self, name))
        return self

    def Init(self) -> None:  # noqa: N802 (NVML's names)
        self.open += 1

    def Shutdown(self) -> None:  # noqa: N802
        self.open -= 1

    def Count(self) -> int:  # noqa: N802
        return len(self.machine.devices)

    def HandleByIndex(self, index: int) -> int:  # noqa: N802
        if index == self.lost:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
        return index

    def MemoryInfo(self, handle: int) -> SimpleNamespace:  # noqa: N802
        device = self.machine.devices[handle]
        return SimpleNamespace(total=device.memory_bytes, used=device.used_bytes)

    def UUID(self, handle: int) -> str:  # noqa: N802
        return self.machine.devices[handle].uuid

    def Name(self, handle: int) -> str:  # noqa: N802
        return self.machine.devices[handle].name

    def TopologyCommonAncestor(self, a: int, b: int) -> int:  # noqa: N802
        return int(self.machine.pcie[a][b])

    def P2PStatus(self, a: int, b: int, index: int) -> int:  # noqa: N802
        assert index == pynvml.NVML_P2P_CAPS_INDEX_NVLINK
        return pynvml.NVML_P2P_STATUS_OK if self.machine.nvlink[a][b] else pynvml.NVML_P2P_STATUS_NOT_SUPPORTED
