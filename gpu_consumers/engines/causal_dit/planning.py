"""What a take will be before anything is loaded: frames, latents, segments, memory by part, and what to change if it does not fit."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

import torch

from gpu_consumers.engines.causal_dit.config import Kept, Precision, Window
from gpu_consumers.engines.causal_dit.grid import blocks_for
from gpu_consumers.engines.causal_dit.ledger import RESERVE, Ledger, predict
from gpu_consumers.engines.causal_dit.memory import storage_shape
from gpu_consumers.engines.causal_dit.models import ModelConfig
from gpu_consumers.engines.causal_dit.storage import DeviceStorage
from gpu_consumers.engines.causal_running import CHUNK_LAYERS, SMALL_WINDOW
from schemas.engines import ENGINES

_LIMITS = ENGINES["causal_dit"]
SIZES = ((1280, 720), (832, 480), (640, 368), (480, 272))
"""In the order in which a smaller one is proposed; also the other way round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """A change, on top of those before it (a size by itself), and the memory that is needed then."""

    change: str
    total_bytes: int
    fits: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TakePlan:
    """`frames` of the video; `latents` in whole blocks, so some frames behind the end are dropped. `jobs` fit on the card at once."""

    config: str
    width: int
    height: int
    frames: int
    latents: int
    segments: int
    memory: Ledger
    total_bytes: int
    jobs: int
    remedies: tuple[Remedy, ...]
    """Empty if it fits. In order, the harmless ones first; the last one that is needed is the last here."""


def plan(config: ModelConfig, width: int, height: int, frames: int, card_bytes: int) -> TakePlan:
    """The plan for one take in bf16, as on a GPU. Takes seconds: the model is run without its numbers."""
    ledger = _predicted(config, width, height)
    blocks = blocks_for(frames, config.window)
    jobs = ledger.jobs_on(card_bytes)
    return TakePlan(
        config=config.name,
        width=width,
        height=height,
        frames=frames,
        latents=blocks * config.window.block,
        segments=-(-blocks // (_LIMITS.max_segment_frames // _LIMITS.block_frames)),
        memory=ledger,
        total_bytes=ledger.total,
        jobs=jobs,
        remedies=() if jobs else tuple(_remedies(config, (width, height), card_bytes)),
    )


def _remedies(config: ModelConfig, size: tuple[int, int], card_bytes: int) -> Iterator[Remedy]:
    """Changes until it fits, each on top of those before; at last smaller pictures, each by itself."""
    room = card_bytes * (1 - RESERVE)
    offloaded = Kept(offload=CHUNK_LAYERS)
    int8 = replace(offloaded, precision=Precision.INT8)
    steps = [
        (
            f"offload={CHUNK_LAYERS}",
            "keys and values in host memory: the same bits, slower",
            replace(config, kept=offloaded),
        ),
        ("kv=int8", "in half the bytes: nearly the same picture", replace(config, kept=int8)),
        (
            f"window={SMALL_WINDOW}",
            "of latents: another picture, sooner forgotten",
            replace(config, kept=int8, window=Window(latents=SMALL_WINDOW)),
        ),
    ]
    for option, effect, changed in steps:
        total = _predicted(changed, *size).total
        yield Remedy(change=f"--option {option}: {effect}", total_bytes=total, fits=total <= room)
        if total <= room:
            return
    for width, height in SIZES:
        if width * height < size[0] * size[1]:
            oriented = (width, height) if size[0] >= size[1] else (height, width)
            total = _predicted(config, *oriented).total
            yield Remedy(change="x".join(map(str, oriented)), total_bytes=total, fits=total <= room)
            if total <= room:
                return


@cache
def _predicted(config: ModelConfig, width: int, height: int) -> Ledger:
    return predict(config, width, height, torch.bfloat16)


def kv_bytes(config: ModelConfig, size: tuple[int, int], precision: Precision) -> int:
    """Keys and values of a picture's window, all layers. `size`: width and height in pixels."""
    batch = 2 if config.schedule.guidance > 1 else 1
    shape = storage_shape(config.dit, config.window.latents, (size[1] // 16, size[0] // 16), batch)
    return DeviceStorage(shape, precision, torch.bfloat16, torch.device("meta")).device_bytes
