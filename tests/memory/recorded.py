"""Topologies as real machines told them."""

import json
from dataclasses import replace
from pathlib import Path as File

from gpu_consumers.memory.topology import Device, Path, Topology

DGX_A100, HGX_H100, PCIE_BOX = "dgx_a100", "hgx_h100", "pcie_box"


def recorded(name: str) -> Topology:
    """One of the machines in `topologies/`: matrices in the letters of `nvidia-smi topo`."""
    content = json.loads((File(__file__).parent / "topologies" / f"{name}.json").read_text())
    return Topology(
        devices=tuple(Device(**device) for device in content["devices"]),
        pcie=tuple(tuple(Path.BOARD if cell == "X" else Path[cell] for cell in row) for row in content["pcie"]),
        nvlink=tuple(tuple(cell.startswith("NV") for cell in row) for row in content["nvlink"]),
    )


def filled(topology: Topology, used_bytes: dict[int, int]) -> Topology:
    """The same machine with memory in use, by device."""
    devices = (replace(device, used_bytes=used_bytes.get(i, 0)) for i, device in enumerate(topology.devices))
    return replace(topology, devices=tuple(devices))
