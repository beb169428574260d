"""What a forward pass attends to. Keys are kept without their rotation and turned by positions inside the window.

Relative positions make a take of any length possible: the rotation never sees a number above the window's length, where
absolute ones would leave the 1,024 positions the model was trained with after 256 s (Infinity-RoPE).
"""

from typing import Protocol

import torch
from torch import Tensor

from gpu_consumers.engines.causal_dit import rope
from gpu_consumers.engines.causal_dit.attention import attend
from gpu_consumers.engines.causal_dit.config import AS_COMPUTED, DitConfig, Kept, Window
from gpu_consumers.engines.causal_dit.storage import Rows, Shape, storage_for


class Memory(Protocol):
    """Self-attention's other half: sees un-rotated q, k and v [B, L, heads, d] of every layer, in order."""

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """The attention's output [B, L, heads, d]."""
        ...


class Storage(Protocol):
    """Where a cache's keys and values lie (storage.py)."""

    @property
    def device_bytes(self) -> int:
        """What it occupies on the device."""
        ...

    def layer(self, index: int) -> Rows:
        """One layer's rows, on the device."""
        ...

    def written(self, index: int, rows: slice) -> None:
        """Rows of a layer were changed."""
        ...


class WholeClip:
    """Every token sees every other (the original, non-causal model), or with `block` > 0 all blocks up to its own."""

    def __init__(self, latents: int, height: int, width: int, head_dim: int, block: int = 0) -> None:
        self._of = (torch.arange(latents), height, width, head_dim)
        self._turns: Tensor | None = None
        self._mask: Tensor | None = None
        if block:
            of = torch.arange(latents).repeat_interleave(height * width) // block
            self._mask = of[:, None] >= of[None, :]

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:  # noqa: ARG002 (the protocol's)
        if self._turns is None:
            self._turns = rope.turns(*self._of, q.dtype).to(q.device)
        mask = None if self._mask is None else self._mask.to(q.device)
        return attend(rope.rotate(q, self._turns), rope.rotate(k, self._turns), v, mask)


class KvCache:
    """Keys and values of sink and window for one job, allocated once: a ring behind the sink, no growth, no copies.

    The block in hand is written over the oldest one when `begin` is called, and again in each of its passes, so the last pass
    (clean, at t = 0) is what later blocks see.
    """

    def __init__(self, storage: Storage, window: Window, grid: tuple[int, int], capacity: int) -> None:
        """`grid`: height and width of a latent in tokens. `capacity`: latents that the storage has rows for."""
        self.storage = storage
        self._window, self._grid, self._capacity = window, grid, capacity
        self._tokens = grid[0] * grid[1]
        self._start = 0
        self._slots: list[int] = []
        self._times: list[int] = []
        self._turns: tuple[Tensor, Tensor] | None = None
        """Of the block in hand and of all that is held: the same in every layer and pass."""

    @property
    def latents(self) -> int:
        """Latents seen so far, those in hand included."""
        return self._start + self._window.block if self._slots else 0

    @property
    def times(self) -> list[int]:
        """Positions inside the window by slot: what the rotation sees."""
        return self._times

    def begin(self, start: int) -> None:
        """Take in hand the block of latents [start, start + block). Raises: ValueError if the cache is full or a block is left out."""
        block, sink = self._window.block, self._window.sink if self._window.latents else 0
        if start not in (0 if not self._slots else self._start + block, self._start if self._slots else 0):
            raise ValueError(f"block at {start} does not follow the one at {self._start}")
        if not self._window.latents and start + block > self._capacity:
            raise ValueError(f"latent {start + block} is beyond the cache's {self._capacity}: give a window")
        self._start = start
        ring = self._capacity - sink
        held = [i for i in range(start + block) if i < sink or i >= start + block - ring]
        slots = [i if i < sink else sink + (i - sink) % ring for i in held]
        self._slots = slots[-block:]
        order = {slot: rank for rank, slot in enumerate(slots)}
        self._times = [order[slot] for slot in range(len(slots))]
        self._turns = None

    def reset(self) -> None:
        """Forget everything; the next block is block 0. The storage stays."""
        self._start, self._slots, self._times = 0, [], []

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Write the block's k and v into their slots, then attend to all that is held."""
        rows = self.storage.layer(layer)
        for index, slot in enumerate(self._slots):
            to = slice(slot * self._tokens, (slot + 1) * self._tokens)
            of = slice(index * self._tokens, (index + 1) * self._tokens)
            rows.put(to, k[:, of], v[:, of])
            self.storage.written(layer, to)
        keys, values = rows.get(len(self._times) * self._tokens, q.dtype)
        if self._turns is None:
            self._turns = self._turned([self._times[slot] for slot in self._slots], q), self._turned(self._times, q)
        return attend(rope.rotate(q, self._turns[0]), rope.rotate(keys, self._turns[1]), values)

    def _turned(self, times: list[int], like: Tensor) -> Tensor:
        return rope.turns(torch.tensor(times, device=like.device), *self._grid, like.shape[-1], like.dtype)


def device_cache(
    dit: DitConfig, window: Window, grid: tuple[int, int], like: Tensor, capacity: int = 0, kept: Kept = AS_COMPUTED
) -> KvCache:
    """A cache for `like`'s device, precision and batch. `capacity`: latents, if the window is unbounded."""
    latents = window.latents or capacity
    storage = storage_for(storage_shape(dit, latents, grid, like.shape[0]), kept, like.dtype, like.device)
    return KvCache(storage, window, grid, latents)


def storage_shape(dit: DitConfig, latents: int, grid: tuple[int, int], batch: int) -> Shape:
    """The storage's size for a number of latents."""
    rows = latents * grid[0] * grid[1]
    return Shape(layers=dit.attention_layers, batch=batch, rows=rows, heads=dit.heads, head_dim=dit.head_dim)
