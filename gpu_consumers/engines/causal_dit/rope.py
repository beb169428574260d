"""Rotary positions in three dimensions, as Wan has them: interleaved pairs, theta 10,000, angles in float64.

The head's pairs are split over time, height and width; a head of 128 gives 44, 42 and 42 channels.
"""

import torch
from torch import Tensor

_THETA = 10_000.0


def split_of(head_dim: int) -> tuple[int, int, int]:
    """Channels of a head that turn with time, height and width."""
    side = 2 * (head_dim // 6)
    return head_dim - 2 * side, side, side


def turns(times: Tensor, height: int, width: int, head_dim: int, dtype: torch.dtype) -> Tensor:
    """By how much each pair of each token turns, as complex numbers [T * height * width, head_dim / 2], for latents at `times` [T].

    Tokens in raster order; angles in float64, numbers for what `rotate` computes in.
    """
    parts = [
        _outer(times, split_of(head_dim)[0])[:, None, None],
        _outer(torch.arange(height, device=times.device), split_of(head_dim)[1])[None, :, None],
        _outer(torch.arange(width, device=times.device), split_of(head_dim)[2])[None, None, :],
    ]
    shape = (len(times), height, width)
    angles = torch.cat([p.expand(*shape, p.shape[-1]) for p in parts], dim=-1).flatten(0, 2)
    return torch.polar(torch.ones_like(angles), angles).to(_wide(dtype).to_complex())


def rotate(x: Tensor, turned: Tensor) -> Tensor:
    """Turn x [B, L, heads, head_dim] by `turns` [L, head_dim / 2]; computed in float32 or better, returned in x's dtype."""
    pairs = torch.view_as_complex(x.to(_wide(x.dtype)).unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * turned[:, None]).flatten(-2).to(x.dtype)


def _wide(dtype: torch.dtype) -> torch.dtype:
    return torch.promote_types(dtype, torch.float32)


def _outer(positions: Tensor, channels: int) -> Tensor:
    exponents = torch.arange(0, channels, 2, dtype=torch.float64, device=positions.device) / channels
    return positions.to(torch.float64)[:, None] * (_THETA**-exponents)[None]
