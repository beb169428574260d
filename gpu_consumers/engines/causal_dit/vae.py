"""Wan 2.1's video autoencoder as a stream: what each convolution remembers is kept between latents and between segments.

The first latent is one frame, every other one four. Clearing the memory in the middle of a take loses three frames and shows;
so a stream's memory lives as long as its take. Parameter names are those of diffusers' AutoencoderKLWan.

Axes: latents [B, 16, t, h, w] as the transformer makes them (normalised); pixels [B, 3, T, 8h, 8w] in [-1, 1].
"""

from dataclasses import dataclass
from itertools import pairwise

import torch
import torch.nn.functional as nn_functional
from torch import Tensor, nn

Past = dict[nn.Module, Tensor]
"""The last frames that each convolution of a stream has seen; empty at its start."""

_MEAN = (-0.7571, -0.7089, -0.9113, 0.1075, -0.1745, 0.9653, -0.1517, 1.5508, 0.4134, -0.0715, 0.5517, -0.3632, -0.1922, -0.9497, 0.2503, -0.2921)  # fmt: skip
_STD = (2.8184, 1.4541, 2.3275, 2.6558, 1.2196, 1.7708, 2.6052, 2.0743, 3.2687, 2.1526, 2.8652, 1.5579, 1.6382, 1.1253, 2.8251, 1.9160)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class VaeConfig:
    """Wan 2.1's sizes by default: 8x8 in space, 4 in time."""

    dim: int = 96
    channels: int = 16
    widths: tuple[int, ...] = (1, 2, 4, 4)
    blocks: int = 2
    halves_time: tuple[bool, ...] = (False, True, True)
    """Per halving of the picture, from the full size down."""
    mean: tuple[float, ...] = _MEAN
    std: tuple[float, ...] = _STD


class CausalConv(nn.Conv3d):
    """A convolution over time that looks back only: zeros before the start, then what it remembers."""

    def __init__(self, into: int, out: int, kernel: tuple[int, int, int]) -> None:
        super().__init__(into, out, kernel)
        self.behind = kernel[0] - 1
        self.around = kernel[1] // 2

    def stream(self, x: Tensor, past: Past) -> Tensor:
        """The next frames x [B, C, T, H, W] of the stream."""
        if not self.behind:
            return self(x)
        # Past, frames and border in one buffer: a convolution that pads by itself is slow on the CPU.
        b, c, t, h, w = x.shape
        a = self.around
        padded = x.new_zeros(b, c, self.behind + t, h + 2 * a, w + 2 * a)
        inner = padded[..., a : a + h, a : a + w]
        if self in past:
            inner[:, :, : self.behind] = past[self]
        inner[:, :, self.behind :] = x
        past[self] = inner[:, :, -self.behind :].clone()
        return self(padded)


class RmsNorm(nn.Module):
    """Unit length over the channels, times a learned scale. `axes`: of the picture, 3 with time, 2 without."""

    def __init__(self, channels: int, axes: int = 3) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(channels, *(1,) * axes))

    def forward(self, x: Tensor) -> Tensor:
        work = x.to(torch.promote_types(x.dtype, torch.float32))
        return nn_functional.normalize(work, dim=1).to(x.dtype) * x.shape[1] ** 0.5 * self.gamma


class Residual(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, into: int, out: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = RmsNorm(into), RmsNorm(out)
        self.conv1, self.conv2 = CausalConv(into, out, (3, 3, 3)), CausalConv(out, out, (3, 3, 3))
        self.conv_shortcut = CausalConv(into, out, (1, 1, 1)) if into != out else nn.Identity()

    def stream(self, x: Tensor, past: Past) -> Tensor:
        """The next frames."""
        shortcut = self.conv_shortcut(x)
        x = self.conv1.stream(nn_functional.silu(self.norm1(x)), past)
        return self.conv2.stream(nn_functional.silu(self.norm2(x)), past) + shortcut


class FrameAttention(nn.Module):
    """One head of attention within each frame."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = RmsNorm(channels, axes=2)
        self.to_qkv = nn.Conv2d(channels, 3 * channels, 1)
        self.proj = nn.Conv2d(channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        b, _, _, h, w = x.shape
        flat = x.transpose(1, 2).flatten(0, 1)
        q, k, v = self.to_qkv(self.norm(flat)).flatten(2).transpose(1, 2)[:, None].chunk(3, dim=-1)
        seen = nn_functional.scaled_dot_product_attention(q, k, v).squeeze(1).transpose(1, 2)
        return x + self.proj(seen.unflatten(2, (h, w))).unflatten(0, (b, -1)).transpose(1, 2)


class Middle(nn.Module):
    """Residual, attention, residual at the lowest resolution."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.resnets = nn.ModuleList(Residual(channels, channels) for _ in range(2))
        self.attentions = nn.ModuleList([FrameAttention(channels)])

    def stream(self, x: Tensor, past: Past) -> Tensor:
        """The next frames."""
        first, second = self.resnets
        return _stream(second, self.attentions[0](_stream(first, x, past)), past)


class Upsample(nn.Module):
    """Twice the size, and with `time` twice the frames: except the stream's first, which stays one."""

    def __init__(self, channels: int, *, time: bool) -> None:
        super().__init__()
        enlarge = nn.Upsample(scale_factor=(2.0, 2.0), mode="nearest-exact")
        self.resample = nn.Sequential(enlarge, nn.Conv2d(channels, channels // 2, 3, padding=1))
        self.time_conv = CausalConv(channels, 2 * channels, (3, 1, 1)) if time else None

    def stream(self, x: Tensor, past: Past) -> Tensor:
        """The next frames; the first call has one frame only."""
        if self.time_conv is not None and self not in past:
            past[self] = x.new_empty(0)
        elif self.time_conv is not None:
            x = self.time_conv.stream(x, past).unflatten(1, (2, -1)).permute(0, 2, 3, 1, 4, 5).flatten(2, 3)
        return _each_frame(self.resample, x)


class Downsample(nn.Module):
    """Half the size, and with `time` half the frames: except the stream's first, which stays one."""

    def __init__(self, channels: int, *, time: bool) -> None:
        super().__init__()
        self.resample = nn.Sequential(nn.ZeroPad2d((0, 1, 0, 1)), nn.Conv2d(channels, channels, 3, stride=2))
        self.time_conv = nn.Conv3d(channels, channels, (3, 1, 1), stride=(2, 1, 1)) if time else None

    def stream(self, x: Tensor, past: Past) -> Tensor:
        """The next frames: one at first, then even numbers."""
        x = _each_frame(self.resample, x)
        if self.time_conv is None:
            return x
        before = past.get(self)
        past[self] = x[:, :, -1:].clone()
        return x if before is None else self.time_conv(torch.cat((before, x), dim=2))


class UpBlock(nn.Module):
    """Residuals, then an enlargement where there is one."""

    def __init__(self, into: int, out: int, blocks: int, upsample: Upsample | None) -> None:
        super().__init__()
        self.resnets = nn.ModuleList(Residual(into if i == 0 else out, out) for i in range(blocks + 1))
        self.upsamplers = None if upsample is None else nn.ModuleList([upsample])

    def stream(self, x: Tensor, past: Past) -> Tensor:
        """The next frames."""
        for part in (*self.resnets, *(self.upsamplers or ())):
            x = _stream(part, x, past)
        return x


class Decoder(nn.Module):
    """Latents to pixels. `low` is all at the latents' resolution, `high` only convolutions: so `high` can be tiled exactly."""

    def __init__(self, config: VaeConfig) -> None:
        super().__init__()
        widths = [config.dim * w for w in (config.widths[-1], *reversed(config.widths))]
        self.conv_in = CausalConv(config.channels, widths[0], (3, 3, 3))
        self.mid_block = Middle(widths[0])
        self.up_blocks = nn.ModuleList()
        for i, (into, out) in enumerate(pairwise(widths)):
            more = i < len(config.widths) - 1
            upsample = Upsample(out, time=config.halves_time[::-1][i]) if more else None
            self.up_blocks.append(UpBlock(into // 2 if i else into, out, config.blocks, upsample))
        self.norm_out = RmsNorm(widths[-1])
        self.conv_out = CausalConv(widths[-1], 3, (3, 3, 3))

    def low(self, x: Tensor, past: Past) -> Tensor:
        """The latents' features."""
        return self.mid_block.stream(self.conv_in.stream(x, past), past)

    def high(self, x: Tensor, past: Past) -> Tensor:
        """Features to pixels."""
        for block in self.up_blocks:
            x = _stream(block, x, past)
        return self.conv_out.stream(nn_functional.silu(self.norm_out(x)), past)


class Encoder(nn.Module):
    """Pixels to the moments of latents."""

    def __init__(self, config: VaeConfig) -> None:
        super().__init__()
        widths = [config.dim * w for w in (1, *config.widths)]
        self.conv_in = CausalConv(3, widths[0], (3, 3, 3))
        self.down_blocks = nn.ModuleList()
        for i, (into, out) in enumerate(pairwise(widths)):
            self.down_blocks.extend(Residual(into if j == 0 else out, out) for j in range(config.blocks))
            if i < len(config.widths) - 1:
                self.down_blocks.append(Downsample(out, time=config.halves_time[i]))
        self.mid_block = Middle(widths[-1])
        self.norm_out = RmsNorm(widths[-1])
        self.conv_out = CausalConv(widths[-1], 2 * config.channels, (3, 3, 3))

    def stream(self, x: Tensor, past: Past) -> Tensor:
        """The next frames: one at first, then multiples of four."""
        x = self.conv_in.stream(x, past)
        for part in (*self.down_blocks, self.mid_block):
            x = _stream(part, x, past)
        return self.conv_out.stream(nn_functional.silu(self.norm_out(x)), past)


class Vae(nn.Module):
    """Encoder and decoder with Wan's normalisation of latents."""

    def __init__(self, config: VaeConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder, self.decoder = Encoder(config), Decoder(config)
        self.quant_conv = CausalConv(2 * config.channels, 2 * config.channels, (1, 1, 1))
        self.post_quant_conv = CausalConv(config.channels, config.channels, (1, 1, 1))

    def denormalised(self, latents: Tensor) -> Tensor:
        """Latents as the decoder's first convolution wants them."""
        mean, std = self._moments(latents)
        return self.post_quant_conv(latents * std + mean)

    def encode(self, pixels: Tensor, past: Past) -> Tensor:
        """The next latents of a stream of pixels: first one frame, then multiples of four. The mean, not a sample."""
        mean, std = self._moments(pixels)
        moments = self.quant_conv(self.encoder.stream(pixels, past))
        return (moments[:, : self.config.channels] - mean) / std

    def _moments(self, like: Tensor) -> tuple[Tensor, Tensor]:
        shape = (1, -1, 1, 1, 1)
        mean, std = (torch.tensor(v, dtype=like.dtype, device=like.device) for v in (self.config.mean, self.config.std))
        return mean.view(shape), std.view(shape)


def _each_frame(module: nn.Module, x: Tensor) -> Tensor:
    return module(x.transpose(1, 2).flatten(0, 1)).unflatten(0, (x.shape[0], -1)).transpose(1, 2)


def _stream(module: nn.Module, x: Tensor, past: Past) -> Tensor:
    assert isinstance(module, Residual | Upsample | Downsample | UpBlock | Middle)  # noqa: S101 (narrows a ModuleList's type)
    return module.stream(x, past)
