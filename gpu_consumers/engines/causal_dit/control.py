"""A control video as what VACE's branch takes: latents of what stays, of what is to change, and the mask, block by block.

The branch was trained with whole clips; here it is as causal as the transformer: its blocks attend to the same window through
rows of their own in the cache, each block of latents gets its own part of the control, in every pass (the clean one at t = 0
too), and the encoder's memory is kept between blocks. So block by block equals one masked run over the whole.
The mask is 1 everywhere: all of the picture is to be made, steered by the control. Behind the control video's end its frames
are grey, which is VACE's way to say that nothing is asked.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from gpu_consumers.engines.causal_dit.config import Window
from gpu_consumers.engines.causal_dit.vae import Past, Vae

_MASK_CHANNELS = 64
"""The 8x8 pixels of the mask that a latent pixel covers."""


class ControlVideo:
    """The control of one take. Blocks are encoded in order as they are asked for; kept are those that a new prompt needs again."""

    def __init__(self, vae: Vae, frames: Iterator[Tensor], window: Window) -> None:
        """`frames`: one [3, H, W] in [-1, 1] for each frame of the take from its start, without end."""
        self._vae, self._frames, self._window = vae, frames, window
        self._like = next(vae.parameters())
        self._stays: Past = {}
        self._asked: Past = {}
        self._made = 0
        self._blocks: dict[int, Tensor] = {}

    def block(self, index: int) -> Tensor:
        """[1, 96, block, h, w] for the take's block of that number: the sink's, one of the window's or the next."""
        window = self._window
        while self._made <= index:
            self._blocks[self._made] = self._encoded()
            oldest = self._made - (window.latents - window.sink) // window.block
            if oldest >= window.sink // window.block:
                self._blocks.pop(oldest, None)
            self._made += 1
        return self._blocks[index]

    @torch.no_grad()
    def _encoded(self) -> Tensor:
        parts: list[Tensor] = []
        for _ in range(self._window.block):
            count = 4 if self._asked else 1
            asked = torch.stack([next(self._frames) for _ in range(count)], dim=1)[None].to(self._like)
            # One after the other: side by side they would double the encoder's activations, the largest there are.
            pair = [self._vae.encode(torch.zeros_like(asked), self._stays), self._vae.encode(asked, self._asked)]
            mask = asked.new_ones(1, _MASK_CHANNELS, *pair[0].shape[2:])
            parts.append(torch.cat((*pair, mask), dim=1))
        return torch.cat(parts, dim=2)
