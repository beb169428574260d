"""The tiny decoder for previews, in TAEHV's layout (https://github.com/madebyollin/taehv, MIT; `taew2_1` for Wan 2.1).

It takes latents as the transformer makes them, without the normalisation of the full decoder. Each of its blocks remembers one
frame, so that a stream decodes as a whole clip would. Parameter names are those of its checkpoints; their encoder is not read.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
import torch.nn.functional as nn_functional
from torch import Tensor, nn

from gpu_consumers.engines.causal_dit.vae import Past

_GROWTH = (1, 2, 2)
"""Frames that one becomes at each doubling of the size."""
_TRIMMED = 3
"""The first latent is one frame: its first three are those before the start."""
_BLOCKS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewConfig:
    """TAEHV's sizes by default."""

    channels: int = 16
    widths: tuple[int, int, int, int] = (256, 128, 64, 64)


TAEHV = PreviewConfig()


class SoftClamp(nn.Module):
    """Latents softly into (-3, 3)."""

    def forward(self, x: Tensor) -> Tensor:
        """Any shape."""
        return torch.tanh(x / 3) * 3


class MemoryBlock(nn.Module):
    """Convolutions over a frame and the one before it, beside a shortcut."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        first = nn.Conv2d(2 * channels, channels, 3, padding=1)
        second, third = (nn.Conv2d(channels, channels, 3, padding=1) for _ in range(2))
        self.conv = nn.Sequential(first, nn.ReLU(), second, nn.ReLU(), third)

    def stream(self, x: Tensor, past: Past) -> Tensor:
        """The next frames x [T, C, H, W]."""
        before = past.get(self, torch.zeros_like(x[:1]))
        past[self] = x[-1:].clone()
        return nn_functional.relu(self.conv(torch.cat((x, torch.cat((before, x[:-1]))), dim=1)) + x)


class Grow(nn.Module):
    """One frame to `times` frames."""

    def __init__(self, channels: int, times: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels * times, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """[T, C, H, W] to [times * T, C, H, W]."""
        return self.conv(x).reshape(-1, *x.shape[1:])


class PreviewDecoder(nn.Module):
    """Latents to pixels, 8x8 in space and 4 in time."""

    def __init__(self, config: PreviewConfig) -> None:
        super().__init__()
        widths = config.widths
        parts: list[nn.Module] = [SoftClamp(), nn.Conv2d(config.channels, widths[0], 3, padding=1), nn.ReLU()]
        for times, into, out in zip(_GROWTH, widths[:-1], widths[1:], strict=True):
            parts += [*(MemoryBlock(into) for _ in range(_BLOCKS)), nn.Upsample(scale_factor=2.0), Grow(into, times)]
            parts.append(nn.Conv2d(into, out, 3, padding=1, bias=False))
        self.decoder = nn.Sequential(*parts, nn.ReLU(), nn.Conv2d(widths[-1], 3, 3, padding=1))

    def stream(self, x: Tensor, past: Past) -> Tensor:
        """Pixels [4 T, 3, 8h, 8w] about [0, 1] of the next latents [T, 16, h, w]; the stream's first three are of no use."""
        for part in self.decoder:
            x = part.stream(x, past) if isinstance(part, MemoryBlock) else part(x)
        return x


@dataclass(slots=True)
class PreviewStream:
    """One take's preview decoder, in the place of a DecodeStream."""

    decoder: PreviewDecoder
    past: Past = field(default_factory=dict)

    def decode(self, latents: Tensor) -> Tensor:
        """Pixels [1, 3, T, 8h, 8w] in [-1, 1] of the next latents [1, 16, t, h, w]: the take's first gives one frame, others four."""
        first = 0 if self.past else _TRIMMED
        frames = [self.decoder.stream(latent[0].transpose(0, 1), self.past) for latent in latents.split(1, dim=2)]
        return (torch.cat(frames)[first:].clamp(0, 1) * 2 - 1).transpose(0, 1)[None]


def preview_weights(decoder: PreviewDecoder, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Of a checkpoint the decoder's tensors. One that grows more frames than this one does gives the newest of them, as in TAEHV."""
    shapes = {name: t.shape for name, t in decoder.state_dict().items()}
    own = {name: t for name, t in tensors.items() if not name.startswith("encoder.")}
    grows = {f"decoder.{i}.conv.weight" for i, part in enumerate(decoder.decoder) if isinstance(part, Grow)}
    return {name: t[-shapes[name][0] :] if name in grows else t for name, t in own.items()}
