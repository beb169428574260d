"""Which attention kernels a machine gives: a pure choice, so that `longtake doctor` says what the engine will take."""

from collections.abc import Collection
from importlib.util import find_spec

FLASH_3, FLASH_2, SDPA = "flash-attn-3", "flash-attn-2", "sdpa"
MODULES = {FLASH_3: "flash_attn_interface", FLASH_2: "flash_attn"}
_KERNELS = {FLASH_3: "flash_attn_interface", FLASH_2: "flash_attn_2_cuda"}
"""What is there only where the package was built with its kernels."""
_NEED = {FLASH_3: (9, 0), FLASH_2: (8, 0)}
"""Compute capability: version 3 is written for Hopper, version 2 for Ampere and later (their READMEs)."""


def choice(capability: tuple[int, int] | None, installed: Collection[str]) -> str:
    """The best of the installed packages for a card. `capability` None: no card."""
    for name, need in _NEED.items():
        # Hopper's kernels do not run on its successors.
        fits = capability is not None and (capability[0] == need[0] if name == FLASH_3 else capability >= need)
        if fits and name in installed:
            return name
    return SDPA


def installed() -> list[str]:
    """The packages that are there with their kernels; nothing is imported."""
    return [name for name, module in _KERNELS.items() if find_spec(module) is not None]
