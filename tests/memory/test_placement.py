"""Which devices are chosen, on recorded machines."""

import pytest

from gpu_consumers.memory.placement import NoRoomError, device_for_slot, place, skew, skew_limit
from gpu_consumers.memory.topology import Device, Topology
from tests.memory.recorded import DGX_A100, HGX_H100, PCIE_BOX, filled, recorded

GB = 10**9


def slots(machine: Topology, count: int, avoid: frozenset[str] = frozenset()) -> list[int]:
    found = [device_for_slot(machine, slot, avoid) for slot in range(count)]
    return [machine.devices.index(device) for device in found if device]


@pytest.mark.parametrize(
    ("machine", "order"),
    [
        (DGX_A100, [0, 2, 4, 6, 1, 3, 5, 7]),  # every switch pair once before any twice
        (HGX_H100, [0, 4, 1, 5, 2, 6, 3, 7]),  # from socket to socket
        (PCIE_BOX, [0, 1, 3, 2, 4]),  # every root once before any twice
    ],
)
def test_neighbouring_slots_share_as_little_pcie_as_they_can(machine: str, order: list[int]) -> None:
    assert slots(recorded(machine), len(order)) == order


def test_more_workers_than_devices_go_round_again() -> None:
    assert slots(recorded(PCIE_BOX), 7) == [0, 1, 3, 2, 4, 0, 1]


def test_a_worker_whose_device_was_lost_gets_another() -> None:
    box = recorded(PCIE_BOX)
    assert slots(box, 2, frozenset({"GPU-0"})) == [1, 3]
    only = Topology(devices=box.devices[:1], pcie=((box.pcie[0][0],),), nvlink=((False,),))
    assert slots(only, 1, frozenset({"GPU-0"})) == [0]
    assert device_for_slot(Topology(), 0) is None


def test_a_group_is_as_close_as_it_can_be() -> None:
    assert place(recorded(PCIE_BOX), 4 * GB, 2) == (1, 2)
    box = filled(recorded(PCIE_BOX), {1: 30 * GB})
    assert place(box, 4 * GB, 2) == (3, 4)
    assert len(place(recorded(DGX_A100), 4 * GB, 4)) == 4


def test_devices_are_filled_evenly() -> None:
    machine, chosen = recorded(DGX_A100), []
    used = dict.fromkeys(range(8), 0)
    for _ in range(16):
        (device,) = place(filled(machine, used), 4 * GB)
        used[device] += 4 * GB
        chosen.append(device)
        assert skew(filled(machine, used).devices) <= skew_limit(machine.devices)
    assert sorted(chosen) == sorted([*range(8), *range(8)])


def test_the_limit_of_skew_keeps_a_fuller_device_out_even_if_it_is_closer() -> None:
    box = recorded(PCIE_BOX)
    fifth = {index: round(0.2 * box.devices[index].memory_bytes) for index in (1, 3)}
    assert place(filled(box, fifth), round(0.1 * GB), 2) == (1, 2)
    assert place(filled(box, fifth), round(1.3 * GB), 2) == (0, 2)


def test_h100s_have_the_stricter_limit() -> None:
    a100, h100 = recorded(DGX_A100).devices, recorded(HGX_H100).devices
    assert (skew_limit(a100), skew_limit(h100), skew_limit((*a100, *h100))) == (0.22, 0.15, 0.15)
    eighth = {0: round(0.18 * h100[0].memory_bytes)}
    assert skew(filled(recorded(HGX_H100), eighth).devices) == pytest.approx(0.18)


def test_skew_is_in_shares_of_each_cards_memory() -> None:
    cards = (Device(uuid="a", name="A", memory_bytes=100, used_bytes=50), Device(uuid="b", name="B", memory_bytes=50))
    assert skew(cards, {1: 20}) == pytest.approx(0.1)


def test_what_fits_nowhere_is_refused_with_the_numbers() -> None:
    with pytest.raises(NoRoomError, match=r"30\.0 GB on each of 3 devices; free: 34\.2, 34\.2, 25\.8, 25\.8, 25\.8 GB"):
        place(recorded(PCIE_BOX), 30 * GB, 3)
    with pytest.raises(NoRoomError, match="no device"):
        place(Topology(), 1)
