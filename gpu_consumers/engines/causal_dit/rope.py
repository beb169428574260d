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


def angles(times: Tensor, height: int, width: int, head_dim: int) -> Tensor:
    """Angles [T * height * width, head_dim / 2] float64 for latents at `times` [T], tokens in raster order."""
    parts = [
        _outer(times, split_of(head_dim)[0])[:, None, None],
        _outer(torch.arange(height, device=times.device), split_of(head_dim)[1])[None, :, None],
        _outer(torch.arange(width, device=times.device), split_of(head_dim)[2])[None, None, :],
    ]
    shape = (len(times), height, width)
    return torch.cat([p.expand(*shape, p.shape[-1]) for p in parts], dim=-1).flatten(0, 2)


def rotate(x: Tensor, turn: Tensor) -> Tensor:
    """Turn x [B, L, heads, head_dim] by the angles [L, head_dim / 2]; computed in float32 or better, returned in x's dtype."""
    work = torch.promote_types(x.dtype, torch.float32)
    cos, sin = turn.cos().to(work)[:, None], turn.sin().to(work)[:, None]
    even, odd = x.to(work).unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2).to(x.dtype)


def _outer(positions: Tensor, channels: int) -> Tensor:
    exponents = torch.arange(0, channels, 2, dtype=torch.float64, device=positions.device) / channels
    return positions.to(torch.float64)[:, None] * (_THETA**-exponents)[None]
