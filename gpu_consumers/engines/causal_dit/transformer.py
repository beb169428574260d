"""The transformer of Wan 2.1 with the original's parameter names. What it attends to is the memory's affair."""

import math
from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as nn_functional
from torch import Tensor, nn

from gpu_consumers.engines.causal_dit.attention import attend
from gpu_consumers.engines.causal_dit.config import DitConfig
from gpu_consumers.engines.causal_dit.memory import Memory

Pairs = list[tuple[Tensor, Tensor]]
"""Keys and values [B, L, heads, d] that a layer's cross-attention sees: of the text, and of the image if there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a block of latents is made after."""

    layers: list[Pairs]
    """By layer; those of the control branch behind the transformer's own."""
    control: Tensor | None = None
    """[B or 1, control_channels, T, H, W] for the block in hand."""
    control_weight: float = 1.0


def wide(x: Tensor) -> Tensor:
    """At least float32: norms and modulation are computed there, as in the original."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


class Norm(nn.LayerNorm):
    """LayerNorm computed wide, returned in the input's dtype."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 (torch's name)
        affine = self.elementwise_affine
        weight, bias = (wide(self.weight), wide(self.bias)) if affine else (None, None)
        return nn_functional.layer_norm(wide(input), self.normalized_shape, weight, bias, self.eps).to(input.dtype)


class SelfAttention(nn.Module):
    """Queries, keys and values of the block in hand; RMSNorm over all channels, before the split into heads."""

    def __init__(self, config: DitConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.q, self.k, self.v, self.o = (nn.Linear(config.dim, config.dim) for _ in range(4))
        self.norm_q, self.norm_k = (nn.RMSNorm(config.dim, eps=config.eps) for _ in range(2))

    def forward(self, x: Tensor, layer: int, memory: Memory) -> Tensor:
        """x [B, L, dim]."""
        q, k, v = (
            t.unflatten(2, (self.heads, -1)) for t in (self.norm_q(self.q(x)), self.norm_k(self.k(x)), self.v(x))
        )
        return self.o(memory.attend(layer, q, k, v).flatten(2))


class CrossAttention(nn.Module):
    """Attention to the prompt, and in I2V checkpoints to the first frame's image features."""

    def __init__(self, config: DitConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.q, self.k, self.v, self.o = (nn.Linear(config.dim, config.dim) for _ in range(4))
        self.norm_q, self.norm_k = (nn.RMSNorm(config.dim, eps=config.eps) for _ in range(2))
        if config.image_dim:
            self.k_img, self.v_img = (nn.Linear(config.dim, config.dim) for _ in range(2))
            self.norm_k_img = nn.RMSNorm(config.dim, eps=config.eps)

    def keys_values(self, text: Tensor, image: Tensor | None) -> Pairs:
        """Once per prompt."""
        pairs = [(self.norm_k(self.k(text)), self.v(text))]
        if image is not None:
            pairs.append((self.norm_k_img(self.k_img(image)), self.v_img(image)))
        return [(k.unflatten(2, (self.heads, -1)), v.unflatten(2, (self.heads, -1))) for k, v in pairs]

    def forward(self, x: Tensor, context: Pairs) -> Tensor:
        """x [B, L, dim]."""
        q = self.norm_q(self.q(x)).unflatten(2, (self.heads, -1))
        out = [attend(q, k, v).flatten(2) for k, v in context]
        return self.o(out[0] if len(out) == 1 else out[0] + out[1])


class Block(nn.Module):
    """Self-attention, cross-attention, feed-forward, modulated by the time."""

    def __init__(self, config: DitConfig) -> None:
        super().__init__()
        dim, eps = config.dim, config.eps
        self.norm1, self.norm2 = (Norm(dim, eps=eps, elementwise_affine=False) for _ in range(2))
        self.norm3 = Norm(dim, eps=eps)
        self.self_attn = SelfAttention(config)
        self.cross_attn = CrossAttention(config)
        self.ffn = nn.Sequential(nn.Linear(dim, config.ffn_dim), nn.GELU("tanh"), nn.Linear(config.ffn_dim, dim))
        self.modulation = nn.Parameter(torch.randn(1, 6, dim) / dim**0.5)

    def forward(self, x: Tensor, time: Tensor, context: Pairs, layer: int, memory: Memory) -> Tensor:
        """x [B, L, dim], time [B, 6, dim]."""
        shift, scale, gate, ffn_shift, ffn_scale, ffn_gate = (wide(self.modulation) + wide(time)).chunk(6, dim=1)
        mixed = self.self_attn(modulate(self.norm1(wide(x)), shift, scale).to(x.dtype), layer, memory)
        x = (wide(x) + mixed * gate).to(x.dtype)
        x = x + self.cross_attn(self.norm3(x), context)
        fed = self.ffn(modulate(self.norm2(wide(x)), ffn_shift, ffn_scale).to(x.dtype))
        return (wide(x) + wide(fed) * ffn_gate).to(x.dtype)


class ControlBlock(Block):
    """A block of the control branch: what comes out of it goes on, and as a hint to one block of the transformer."""

    def __init__(self, config: DitConfig, *, first: bool) -> None:
        super().__init__(config)
        self.before_proj = nn.Linear(config.dim, config.dim) if first else None
        self.after_proj = nn.Linear(config.dim, config.dim)


class Head(nn.Module):
    """Tokens back to patches of latents."""

    def __init__(self, config: DitConfig) -> None:
        super().__init__()
        self.norm = Norm(config.dim, eps=config.eps, elementwise_affine=False)
        self.head = nn.Linear(config.dim, config.out_channels * math.prod(config.patch))
        self.modulation = nn.Parameter(torch.randn(1, 2, config.dim) / config.dim**0.5)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        """x [B, L, dim], time [B, dim]."""
        shift, scale = (wide(self.modulation) + wide(time)[:, None]).chunk(2, dim=1)
        return self.head(modulate(self.norm(wide(x)), shift, scale).to(x.dtype))


class ImageEmbedding(nn.Module):
    """CLIP's image features to the transformer's width."""

    def __init__(self, config: DitConfig) -> None:
        super().__init__()
        width = config.image_dim or 0
        self.proj = nn.Sequential(
            nn.LayerNorm(width),
            nn.Linear(width, width),
            nn.GELU(),
            nn.Linear(width, config.dim),
            nn.LayerNorm(config.dim),
        )

    def forward(self, features: Tensor) -> Tensor:
        """features [B, 257, image_dim]."""
        return self.proj(features)


class Transformer(nn.Module):
    """The flow field of a block of latents, given time, prompt and what it may attend to."""

    def __init__(self, config: DitConfig) -> None:
        super().__init__()
        self.config = config
        dim = config.dim
        self.patch_embedding = nn.Conv3d(config.in_channels, dim, kernel_size=config.patch, stride=config.patch)
        self.text_embedding = nn.Sequential(nn.Linear(config.text_dim, dim), nn.GELU("tanh"), nn.Linear(dim, dim))
        self.time_embedding = nn.Sequential(nn.Linear(config.freq_dim, dim), nn.SiLU(), nn.Linear(dim, dim))
        self.time_projection = nn.Sequential(nn.SiLU(), nn.Linear(dim, 6 * dim))
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.head = Head(config)
        if config.image_dim:
            self.img_emb = ImageEmbedding(config)
        if config.control_layers:
            patch, channels = config.patch, config.control_channels
            self.vace_patch_embedding = nn.Conv3d(channels, dim, kernel_size=patch, stride=patch)
            self.vace_blocks = nn.ModuleList(
                ControlBlock(config, first=i == 0) for i in range(len(config.control_layers))
            )

    def context(self, text: Tensor, image: Tensor | None = None) -> Context:
        """Cross-attention's keys and values of every layer, once per prompt.

        text [B, text_tokens, text_dim], zero-padded without a mask, as the model was trained; image [B, 257, image_dim].
        """
        text = self.text_embedding(text)
        image = None if image is None else self.img_emb(image)
        blocks = (*self.blocks, *(self.vace_blocks if self.config.control_layers else ()))
        return Context(layers=[cast(Block, block).cross_attn.keys_values(text, image) for block in blocks])

    def forward(self, x: Tensor, time: Tensor, context: Context, memory: Memory) -> Tensor:
        """x [B, C, T, H, W] latents, time [B] in [0, 1000]. Returns the flow, same shape with `out_channels`."""
        _, _, t, h, w = x.shape
        embedded = self.time_embedding(sinusoid(time, self.config.freq_dim).to(x.dtype))
        projected = self.time_projection(embedded).unflatten(1, (6, -1))
        x = self.patch_embedding(x).flatten(2).transpose(1, 2)
        hints = self._hints(x, projected, context, memory)
        for layer, block in enumerate(self.blocks):
            x = block(x, projected, context.layers[layer], layer, memory)
            if layer in hints:
                x = x + hints[layer] * context.control_weight
        return self._unpatch(self.head(x, embedded), t, h, w)

    def _hints(self, x: Tensor, projected: Tensor, context: Context, memory: Memory) -> dict[int, Tensor]:
        """What the control branch adds behind each of its layers (VACE, https://arxiv.org/abs/2503.07598).

        The branch attends like the transformer, so its layers have rows of their own in the memory, behind the others.
        """
        hints: dict[int, Tensor] = {}
        if context.control is None:
            return hints
        control = self.vace_patch_embedding(context.control).flatten(2).transpose(1, 2).expand_as(x)
        for number, (layer, module) in enumerate(zip(self.config.control_layers, self.vace_blocks, strict=True)):
            block = cast(ControlBlock, module)
            if block.before_proj is not None:
                control = block.before_proj(control) + x
            index = self.config.layers + number
            control = block(control, projected, context.layers[index], index, memory)
            hints[layer] = block.after_proj(control)
        return hints

    def _unpatch(self, x: Tensor, t: int, h: int, w: int) -> Tensor:
        pt, ph, pw = self.config.patch
        x = x.unflatten(2, (pt, ph, pw, -1)).unflatten(1, (t // pt, h // ph, w // pw))
        return x.permute(0, 7, 1, 4, 2, 5, 3, 6).reshape(x.shape[0], -1, t, h, w)


def modulate(x: Tensor, shift: Tensor, scale: Tensor) -> Tensor:
    """x * (1 + scale) + shift."""
    return x * (1 + scale) + shift


def sinusoid(time: Tensor, channels: int) -> Tensor:
    """[B] -> [B, channels]: cos then sin of the time at frequencies from 1 down to 1/10,000, in float64."""
    half = channels // 2
    frequencies = torch.exp(torch.arange(half, dtype=torch.float64, device=time.device) * (-math.log(10_000) / half))
    turn = time.to(torch.float64)[:, None] * frequencies[None]
    return torch.cat((turn.cos(), turn.sin()), dim=-1)
