"""How close devices are on recorded machines, and that NVML's answers become these records."""

import pynvml
import pytest

from gpu_consumers.memory.topology import Path, Topology, read_topology, score
from tests.memory.nvml import Nvml
from tests.memory.recorded import DGX_A100, HGX_H100, PCIE_BOX, recorded


@pytest.mark.parametrize("machine", [DGX_A100, HGX_H100])
def test_behind_an_nvswitch_all_devices_are_one_island(machine: str) -> None:
    topology = recorded(machine)
    assert topology.island(5) == frozenset(range(8))
    assert {score(topology, a, b) for a in range(8) for b in range(8)} == {1.0}


def test_without_nvlink_the_pcie_root_decides() -> None:
    box = recorded(PCIE_BOX)
    assert score(box, 1, 2) == 0.4  # PHB: one root
    assert score(box, 1, 3) == 0.1  # NODE: one socket, two roots
    assert score(box, 0, 1) == 0.1  # SYS: across the sockets
    assert box.island(0) == {0}


def test_an_island_reaches_over_devices_in_between() -> None:
    off = (False,) * 4
    chain = Topology(
        devices=recorded(DGX_A100).devices[:4],
        pcie=((Path.SYS,) * 4,) * 4,
        nvlink=((False, True, False, False), (True, False, True, False), (False, True, False, False), off),
    )
    assert score(chain, 0, 2) == 1.0
    assert score(chain, 0, 3) == 0.1


@pytest.mark.parametrize("machine", [DGX_A100, HGX_H100, PCIE_BOX])
def test_what_nvml_says_becomes_the_record(monkeypatch: pytest.MonkeyPatch, machine: str) -> None:
    nvml = Nvml(recorded(machine)).install(monkeypatch)
    assert read_topology() == recorded(machine)
    assert nvml.open == 0


def test_a_lost_device_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    Nvml(recorded(PCIE_BOX), lost=1).install(monkeypatch)
    found = read_topology()
    assert [device.uuid for device in found.devices] == ["GPU-0", "GPU-2", "GPU-3", "GPU-4"]
    assert found.pcie[2][3] is Path.PHB


def test_without_a_driver_there_are_no_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    def init() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(pynvml, "nvmlInit", init)
    assert read_topology() == Topology()


@pytest.mark.gpu
def test_this_machines_devices_are_read() -> None:
    found = read_topology()
    if not found.devices:
        pytest.skip("no GPU here")
    assert all(device.memory_bytes > device.used_bytes for device in found.devices)
    assert all(found.pcie[i][i] is Path.BOARD for i in range(len(found.devices)))
