"""One unbroken take: the state that is carried from segment to segment, and how it is found again from its latents."""

from collections.abc import Iterator

import torch
from torch import Tensor

from gpu_consumers.engines.causal_dit.decode import DecodeStream, to_frames
from gpu_consumers.engines.causal_dit.grid import frames_of
from gpu_consumers.engines.causal_dit.memory import KvCache
from gpu_consumers.engines.causal_dit.models import Model
from gpu_consumers.engines.causal_dit.sampler import STORED, Context, denoise, generator, recache, take_in

DECODER_REACH = 40
"""Latents after which a decoder has forgotten its past: enough to warm one up to the last bit (37 by its convolutions)."""


class Take:
    """Clean latents so far, the cache that attends to them, and the decoder's memory.

    `prompt` is called before the first block and wherever the prompt changes.
    """

    def __init__(self, model: Model, cache: KvCache, size: tuple[int, int], seed: int) -> None:
        """`size`: height and width of a latent."""
        self._model, self._cache, self._size, self._seed = model, cache, size, seed
        self._context: Context = []
        self._decoder = DecodeStream(model.vae)
        self.blocks: list[Tensor] = []

    @property
    def frames(self) -> int:
        """Frames from the take's start to the end of the last block."""
        return frames_of(len(self.blocks) * self._model.config.window.block)

    def prompt(self, context: Context) -> None:
        """From here on the take follows this prompt: the window's keys are computed again under it."""
        self._context = context
        window, block = self._model.config.window, self._model.config.window.block
        sink, ring = window.sink // block, (window.latents - window.sink) // block
        held = self.blocks if len(self.blocks) <= sink + ring else [*self.blocks[:sink], *self.blocks[-ring:]]
        recache(self._model.transformer, self._cache, context, map(self._used, held))

    def next_block(self, shot: int, variation: int) -> Iterator[Tensor]:
        """Denoise one block; yields the state after every pass, at last the clean latents [1, 16, block, h, w]."""
        self._cache.begin(self._cache.latents)
        noise = self._noise(generator(self._seed, shot, len(self.blocks), variation))
        model = self._model
        x = next(noise)
        for x in denoise(model.transformer, self._cache, self._context, model.config.schedule, noise):
            yield x
        self.blocks.append(x.to(STORED))

    def replay(self, block: Tensor) -> None:
        """Take in a block that was made before: the same state to the last bit."""
        take_in(self._model.transformer, self._cache, self._context, self._used(block))
        self.blocks.append(block)

    def remember(self, block: Tensor) -> None:
        """Note a block from before the prompt in hand: the prompt's start computes the window's keys anyway."""
        self.blocks.append(block)

    def warm_decoder(self) -> None:
        """Bring the decoder to the end of the replayed blocks, without keeping their frames."""
        reach = -(-DECODER_REACH // self._model.config.window.block)
        for block in self.blocks[-reach:]:
            self.decode(block)

    @torch.no_grad()
    def decode(self, latents: Tensor) -> Tensor:
        """[T, H, W, 3] uint8 of the next block."""
        return to_frames(self._decoder.decode(self._used(latents)))

    def _used(self, stored: Tensor) -> Tensor:
        return stored.to(self._model.device, self._model.dtype)

    def _noise(self, source: torch.Generator) -> Iterator[Tensor]:
        shape = (1, self._model.config.vae.channels, self._model.config.window.block, *self._size)
        while True:
            yield torch.randn(shape, generator=source).to(self._model.device, self._model.dtype)
