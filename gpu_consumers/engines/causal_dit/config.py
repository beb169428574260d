"""Sizes of the transformer and of its causal window, as frozen records. Facts: docs/engine.md."""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class DitConfig:
    """Wan 2.1's transformer. `dim` is split evenly over `heads`."""

    layers: int
    dim: int
    ffn_dim: int
    heads: int
    in_channels: int = 16
    """More than `out_channels` where a conditioning latent is concatenated (I2V, control)."""
    out_channels: int = 16
    text_dim: int = 4096
    text_tokens: int = 512
    freq_dim: int = 256
    patch: tuple[int, int, int] = (1, 2, 2)
    eps: float = 1e-6
    image_dim: int | None = None
    """Width of CLIP's image features in I2V checkpoints; None: text only."""
    control_layers: tuple[int, ...] = ()
    """Blocks behind which VACE's control branch adds its hints, one block of the branch for each; none: no branch."""
    control_channels: int = 96
    """Latents of what stays and of what is to change, and the mask's 8x8 pixels."""

    @property
    def attention_layers(self) -> int:
        """Layers that keep keys and values: the transformer's, then the control branch's."""
        return self.layers + len(self.control_layers)

    @property
    def head_dim(self) -> int:
        """Channels of one head."""
        return self.dim // self.heads

    def tokens(self, height: int, width: int) -> int:
        """Tokens of one latent frame of `height` x `width` latent pixels."""
        return (height // self.patch[1]) * (width // self.patch[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What a block of latents may attend to: the first `sink` latents, and the newest ones up to `latents` in all.

    Both counts include whole blocks; `latents` includes the sink and the block in hand. `latents` = 0: everything so far.
    """

    block: int = 3
    latents: int = 12
    sink: int = 3

    def __post_init__(self) -> None:
        if self.latents and (self.latents < self.sink + self.block or (self.latents - self.sink) % self.block):
            raise ValueError(
                f"a window of {self.latents} does not hold a sink of {self.sink} and blocks of {self.block}"
            )


class Precision(StrEnum):
    """How an element of the cache is kept."""

    FULL = "full"
    """As the engine computes."""
    FP8 = "fp8"
    INT8 = "int8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """How and where keys and values are kept. `offload`: layers fetched at a time from host memory; 0: all are on the device."""

    precision: Precision = Precision.FULL
    offload: int = 0


AS_COMPUTED = Kept()

WAN_1_3B = DitConfig(layers=30, dim=1536, ffn_dim=8960, heads=12)
TINY = DitConfig(layers=2, dim=48, ffn_dim=96, heads=2, text_dim=32, text_tokens=8, freq_dim=32)
