"""What a forward pass attends to. Keys are kept without their rotation and turned by positions inside the window.

Relative positions make a take of any length possible: the rotation never sees a number above the window's length, where
absolute ones would leave the 1,024 positions the model was trained with after 256 s (Infinity-RoPE).
"""

from typing import Protocol

import torch
from torch import Tensor

from gpu_consumers.engines.causal_dit import rope
from gpu_consumers.engines.causal_dit.attention import attend
from gpu_consumers.engines.causal_dit.config import DitConfig, Window


class Memory(Protocol):
    """Self-attention's other half: sees un-rotated q, k and v [B, L, heads, d] of every layer, in order."""

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """The attention's output [B, L, heads, d]."""
        ...


class WholeClip:
    """Every token sees every other (the original, non-causal model), or with `block` > 0 all blocks up to its own."""

    def __init__(self, latents: int, height: int, width: int, head_dim: int, block: int = 0) -> None:
        self._turn = rope.angles(torch.arange(latents), height, width, head_dim)
        self._mask: Tensor | None = None
        if block:
            of = torch.arange(latents).repeat_interleave(height * width) // block
            self._mask = of[:, None] >= of[None, :]

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:  # noqa: ARG002 (the protocol's)
        turn = self._turn.to(q.device)
        mask = None if self._mask is None else self._mask.to(q.device)
        return attend(rope.rotate(q, turn), rope.rotate(k, turn), v, mask)


class KvCache:
    """Keys and values of sink and window for one job, allocated once: a ring behind the sink, no growth, no copies.

    The block in hand is written over the oldest one when `begin` is called, and again in each of its passes, so the last pass
    (clean, at t = 0) is what later blocks see. Size: layers x 2 x batch x latents x tokens x dim elements.
    """

    def __init__(self, dit: DitConfig, window: Window, grid: tuple[int, int], like: Tensor, capacity: int = 0) -> None:
        """`grid`: height and width of a latent in tokens. `like`: dtype, device. `capacity`: latents, if the window is unbounded."""
        self._window, self._grid, self._head_dim = window, grid, dit.head_dim
        self._tokens = grid[0] * grid[1]
        self._capacity = window.latents or capacity
        shape = (dit.layers, like.shape[0], self._capacity * self._tokens, dit.heads, dit.head_dim)
        self.k = torch.zeros(shape, dtype=like.dtype, device=like.device)
        self.v = torch.zeros(shape, dtype=like.dtype, device=like.device)
        self._start = 0
        self._slots: list[int] = []
        self._turn = self._angles([])
        self._query = self._turn

    @property
    def latents(self) -> int:
        """Latents seen so far, those in hand included."""
        return self._start + self._window.block if self._slots else 0

    @property
    def size_bytes(self) -> int:
        """What the cache occupies, whatever was written."""
        return 2 * self.k.numel() * self.k.element_size()

    def begin(self, start: int) -> None:
        """Take in hand the block of latents [start, start + block). Raises: ValueError if the cache is full or a block is left out."""
        block, sink = self._window.block, self._window.sink if self._window.latents else 0
        if start not in (0 if not self._slots else self._start + block, self._start if self._slots else 0):
            raise ValueError(f"block at {start} does not follow the one at {self._start}")
        if not self._window.latents and start + block > self._capacity:
            raise ValueError(f"latent {start + block} is beyond the cache's {self._capacity}: give a window")
        self._start = start
        held = [i for i in range(start + block) if i < sink or i >= start + block - (self._capacity - sink)]
        slot_of = {i: i if i < sink else sink + (i - sink) % (self._capacity - sink) for i in held}
        self._slots = [slot_of[i] for i in range(start, start + block)]
        order = {slot: rank for rank, slot in enumerate(slot_of.values())}
        self._turn = self._angles([order[slot] for slot in range(len(order))])
        self._query = self._angles([order[slot] for slot in self._slots])

    def reset(self) -> None:
        """Forget everything; the next block is block 0. The storage stays."""
        self._start, self._slots = 0, []

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Write the block's k and v into their slots, then attend to all that is held."""
        for index, slot in enumerate(self._slots):
            to = slice(slot * self._tokens, (slot + 1) * self._tokens)
            of = slice(index * self._tokens, (index + 1) * self._tokens)
            self.k[layer, :, to] = k[:, of]
            self.v[layer, :, to] = v[:, of]
        held = len(self._turn)
        keys = rope.rotate(self.k[layer, :, :held], self._turn)
        return attend(rope.rotate(q, self._query), keys, self.v[layer, :, :held])

    def _angles(self, times: list[int]) -> Tensor:
        return rope.angles(torch.tensor(times, dtype=torch.long, device=self.k.device), *self._grid, self._head_dim)
