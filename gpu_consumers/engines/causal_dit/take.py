"""One unbroken take: the state that is carried from segment to segment, and how it is found again from its latents."""

from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import torch
from torch import Tensor

from gpu_consumers.engines.causal_dit.control import ControlVideo
from gpu_consumers.engines.causal_dit.decode import to_frames
from gpu_consumers.engines.causal_dit.grid import frames_of
from gpu_consumers.engines.causal_dit.memory import KvCache
from gpu_consumers.engines.causal_dit.models import Model
from gpu_consumers.engines.causal_dit.sampler import STORED, denoise, generator, recache, take_in
from gpu_consumers.engines.causal_dit.transformer import Context
from gpu_consumers.engines.engine import EngineError
from schemas.records import FailureKind

DECODER_REACH = 40
"""Latents after which a decoder has forgotten its past: enough to warm one up to the last bit (37 by its convolutions)."""


class Take:
    """The cache that attends to what was made, the decoder's memory, and those clean latents that either may need again.

    Its size does not grow with its length; latents lie in host memory. `prompt` is called before the first block and wherever
    the prompt changes.
    """

    def __init__(
        self, model: Model, cache: KvCache, size: tuple[int, int], seed: int, side: "torch.cuda.Stream | None" = None
    ) -> None:
        """`size`: height and width of a latent. `side`: the stream to decode on while the next block is denoised."""
        self._model, self._cache, self._size, self._seed, self._side = model, cache, size, seed, side
        self._context = Context(layers=[])
        self._decoder = model.decode_stream()
        self._control: ControlVideo | None = None
        window = model.config.window
        self._sink: list[Tensor] = []
        self._recent: deque[Tensor] = deque(maxlen=max(window.latents, DECODER_REACH) // window.block + 1)
        self.blocks = 0

    @property
    def frames(self) -> int:
        """Frames from the take's start to the end of the last block."""
        return frames_of(self.blocks * self._model.config.window.block)

    @property
    def last(self) -> Tensor:
        """The clean latents of the last block, [1, 16, block, h, w] float16 in host memory."""
        return self._recent[-1]

    def steer(self, control: ControlVideo) -> None:
        """Called before the first block: each block follows its part of the control."""
        self._control = control

    def prompt(self, context: Context) -> None:
        """From here on the take follows this prompt: the window's keys are computed again under it."""
        self._context = context
        window, block = self._model.config.window, self._model.config.window.block
        ring = (window.latents - window.sink) // block
        sink = self._sink[: max(0, self.blocks - ring)]
        recent = list(self._recent)[-ring:]
        numbers = [*range(len(sink)), *range(self.blocks - len(recent), self.blocks)]
        contexts = map(self._context_of, numbers)
        recache(self._model.transformer, self._cache, zip(contexts, map(self._used, [*sink, *recent]), strict=True))

    def next_block(self, shot: int, variation: int) -> Iterator[Tensor]:
        """Denoise one block; yields the state after every pass, at last the clean latents [1, 16, block, h, w]."""
        self._cache.begin(self._cache.latents)
        noise = self._noise(generator(self._seed, shot, self.blocks, variation))
        model = self._model
        x = next(noise)
        for x in denoise(model.transformer, self._cache, self._context_of(self.blocks), model.config.schedule, noise):
            yield x
        self.remember(x.to(STORED))

    def replay(self, block: Tensor) -> None:
        """Take in a block that was made before: the same state to the last bit."""
        take_in(self._model.transformer, self._cache, self._context_of(self.blocks), self._used(block))
        self.remember(block)

    def remember(self, block: Tensor) -> None:
        """Note a block. Where it is from before the prompt in hand, the prompt's start computes the window's keys anyway."""
        block = block.cpu()
        if self.blocks < self._model.config.window.sink // self._model.config.window.block:
            self._sink.append(block)
        self._recent.append(block)
        self.blocks += 1

    def warm_decoder(self) -> None:
        """Bring the decoder to the end of the replayed blocks, without keeping their frames."""
        reach = -(-DECODER_REACH // self._model.config.window.block)
        for block in list(self._recent)[-reach:]:
            self.decode(block)

    @torch.no_grad()
    def decode(self, latents: Tensor) -> Tensor:
        """[T, H, W, 3] uint8 of the next latents, in host memory. Raises: EngineError (NAN)."""
        with self._beside():
            pixels = self._decoder.decode(self._used(latents))
            if bool(pixels.isnan().any()):
                raise EngineError(FailureKind.NAN, "pixels are not numbers")
            return to_frames(pixels).cpu()

    def _context_of(self, block: int) -> Context:
        return self._context if self._control is None else replace(self._context, control=self._control.block(block))

    def _beside(self) -> AbstractContextManager[object]:
        return torch.cuda.stream(self._side) if self._side else nullcontext()

    def _used(self, stored: Tensor) -> Tensor:
        return stored.to(self._model.device, self._model.dtype)

    def _noise(self, source: torch.Generator) -> Iterator[Tensor]:
        shape = (1, self._model.config.vae.channels, self._model.config.window.block, *self._size)
        while True:
            yield torch.randn(shape, generator=source).to(self._model.device, self._model.dtype)
