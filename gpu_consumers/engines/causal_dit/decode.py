"""Streaming decode: latents in, frames out at once, with a memory that can be tiled in space.

Tiles are exact: the parts that see the whole picture (attention) run untiled at the latents' resolution, the rest are
convolutions, so a tile with a halo as wide as they reach gives the untiled pixels.
"""

from dataclasses import dataclass, field
from itertools import product

import torch
from torch import Tensor

from gpu_consumers.engines.causal_dit.vae import Past, Vae

REACH = 13
"""Latent pixels that one output pixel depends on to each side: 6 convolutions at 1x, 7 at 2x, 7 at 4x, 8 at 8x."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """A rectangle of latent pixels, and the larger one that has to be decoded for it."""

    inner: tuple[slice, slice]
    outer: tuple[slice, slice]


def tiles_of(height: int, width: int, side: int) -> list[Tile]:
    """Tiles of at most `side` latent pixels, with a halo of REACH inside the picture."""
    return [
        Tile(inner=(rows, columns), outer=(_grown(rows, height), _grown(columns, width)))
        for rows, columns in product(_cut(height, side), _cut(width, side))
    ]


@dataclass(slots=True)
class DecodeStream:
    """One take's decoder: remembers between calls what the convolutions have seen. `tile`: side in latent pixels, 0 for none."""

    vae: Vae
    tile: int = 0
    low: Past = field(default_factory=dict)
    high: list[Past] = field(default_factory=list)

    def decode(self, latents: Tensor) -> Tensor:
        """Pixels [B, 3, T, 8h, 8w] in [-1, 1] of the next latents [B, 16, t, h, w]: the take's first gives one frame, others four."""
        return torch.cat([self._one(latent) for latent in latents.split(1, dim=2)], dim=2).clamp(-1, 1)

    def _one(self, latents: Tensor) -> Tensor:
        features = self.vae.decoder.low(self.vae.denormalised(latents), self.low)
        height, width = features.shape[-2:]
        tiles = tiles_of(height, width, self.tile or max(height, width))
        self.high = self.high or [{} for _ in tiles]
        out: Tensor | None = None
        for tile, past in zip(tiles, self.high, strict=True):
            pixels = self.vae.decoder.high(features[..., tile.outer[0], tile.outer[1]], past)
            out = pixels.new_empty(*pixels.shape[:3], height * 8, width * 8) if out is None else out
            rows, columns = (_scaled(i, o.start) for i, o in zip(tile.inner, tile.outer, strict=True))
            out[..., _scaled(tile.inner[0], 0), _scaled(tile.inner[1], 0)] = pixels[..., rows, columns]
        assert out is not None  # noqa: S101 (there is at least one tile)
        return out


def to_frames(pixels: Tensor) -> Tensor:
    """[1, 3, T, H, W] in [-1, 1] to [T, H, W, 3] uint8."""
    return ((pixels[0].permute(1, 2, 3, 0).float() + 1) * 127.5).round().clamp(0, 255).to(torch.uint8)


def _cut(length: int, side: int) -> list[slice]:
    count = -(-length // side)
    return [slice(length * i // count, length * (i + 1) // count) for i in range(count)]


def _grown(part: slice, length: int) -> slice:
    return slice(max(0, part.start - REACH), min(length, part.stop + REACH))


def _scaled(part: slice, origin: int) -> slice:
    return slice((part.start - origin) * 8, (part.stop - origin) * 8)
