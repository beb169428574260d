"""The tiny decoder as a stream against a plain whole-clip decode, and its checkpoint's layout."""

from itertools import pairwise
from pathlib import Path

import pytest
import torch
import torch.nn.functional as nn_functional
from safetensors.torch import save_file
from torch import Tensor

from gpu_consumers.engines.causal_dit.checkpoint import CheckpointError, load, read
from gpu_consumers.engines.causal_dit.preview import PreviewConfig, PreviewDecoder, PreviewStream, preview_weights

CONFIG = PreviewConfig(widths=(8, 6, 5, 4))


def checkpoint(config: PreviewConfig = CONFIG) -> dict[str, Tensor]:
    """Names and shapes of TAEHV's file: numbers count its layers, the encoder is in it too."""
    source = torch.Generator().manual_seed(3)

    def conv(out: int, into: int, side: int = 3) -> Tensor:
        return torch.randn(out, into, side, side, generator=source) * (into * side * side) ** -0.5

    first, second, third, fourth = config.widths
    tensors = {
        "encoder.0.weight": conv(64, 3),
        "decoder.1.weight": conv(first, 16),
        "decoder.1.bias": torch.ones(first),
    }
    for start, width in ((3, first), (9, second), (15, third)):
        for block in range(start, start + 3):
            for layer, into in ((0, 2 * width), (2, width), (4, width)):
                tensors[f"decoder.{block}.conv.{layer}.weight"] = conv(width, into)
                tensors[f"decoder.{block}.conv.{layer}.bias"] = torch.full((width,), 0.1)
    for layer, width, times in ((7, first, 1), (13, second, 2), (19, third, 2)):
        tensors[f"decoder.{layer}.conv.weight"] = conv(width * times, width, 1)
    for layer, into, out in ((8, first, second), (14, second, third), (20, third, fourth)):
        tensors[f"decoder.{layer}.weight"] = conv(out, into)
    return {**tensors, "decoder.22.weight": conv(3, fourth), "decoder.22.bias": torch.full((3,), 0.5)}


def whole_clip(weights: dict[str, Tensor], latents: Tensor) -> Tensor:
    """Straight from the description: all frames at once, each block sees a clip and the same clip one frame later."""

    def conv(name: str, x: Tensor) -> Tensor:
        weight = weights[f"decoder.{name}.weight"]
        return nn_functional.conv2d(x, weight, weights.get(f"decoder.{name}.bias"), padding=weight.shape[-1] // 2)

    x = torch.relu(conv("1", torch.tanh(latents[0].transpose(0, 1) / 3) * 3))
    for start, times in ((3, 1), (9, 2), (15, 2)):
        for block in range(start, start + 3):
            y = torch.cat((x, torch.cat((torch.zeros_like(x[:1]), x[:-1]))), dim=1)
            y = torch.relu(conv(f"{block}.conv.2", torch.relu(conv(f"{block}.conv.0", y))))
            x = torch.relu(conv(f"{block}.conv.4", y) + x)
        x = x.repeat_interleave(2, dim=2).repeat_interleave(2, dim=3)
        grown = conv(f"{start + 4}.conv", x)
        x = torch.cat([frame for one in grown.split(1) for frame in one.chunk(times, dim=1)])
        x = conv(str(start + 5), x)
    return (conv("22", torch.relu(x))[3:].clamp(0, 1) * 2 - 1).transpose(0, 1)[None]


def loaded(tensors: dict[str, Tensor], config: PreviewConfig = CONFIG) -> PreviewDecoder:
    decoder = PreviewDecoder(config)
    load(decoder, preview_weights(decoder, tensors), dtype=torch.float64, device=torch.device("cpu"))
    return decoder.eval().requires_grad_(False)


def latents(count: int) -> Tensor:
    return 2 * torch.randn(1, 16, count, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(2))


@pytest.mark.parametrize("cuts", [(), (1,), (3, 6), (1, 2, 3, 4, 5, 6)], ids=str)
def test_decoding_in_any_segments_equals_the_whole_clip(cuts: tuple[int, ...]) -> None:
    tensors, z = checkpoint(), latents(7)
    stream = PreviewStream(loaded(tensors))
    out = torch.cat([stream.decode(z[:, :, a:b]) for a, b in pairwise((0, *cuts, 7))], dim=2)
    expected = whole_clip({name: t.double() for name, t in tensors.items()}, z)
    assert out.shape == (1, 3, 25, 24, 32)
    assert (out - expected).abs().max() < 1e-12 < expected.std()


def test_a_stream_cut_without_its_memory_shows() -> None:
    decoder, z = loaded(checkpoint()), latents(7)
    warm = PreviewStream(decoder)
    warm.decode(z[:, :, :3])
    cold = PreviewStream(decoder).decode(z[:, :, 3:])
    assert (warm.decode(z[:, :, 3:])[:, :, -4:] - cold[:, :, -4:]).abs().max() > 1e-6


def test_its_memory_does_not_grow() -> None:
    stream = PreviewStream(loaded(checkpoint()))
    stream.decode(latents(1))
    held = sum(t.numel() for t in stream.past.values())
    stream.decode(latents(7))
    assert sum(t.numel() for t in stream.past.values()) == held


@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
def test_both_kinds_of_file_are_read_and_only_the_decoder_is_taken(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"taew2_1{suffix}"
    (torch.save if suffix == ".pth" else save_file)(checkpoint(), path)
    out = PreviewStream(loaded(read(path))).decode(latents(2))
    assert torch.equal(out, PreviewStream(loaded(checkpoint())).decode(latents(2)))


def test_a_file_that_grows_more_frames_gives_the_newest_as_taehv_does() -> None:
    tensors = checkpoint()
    wider = {**tensors, "decoder.7.conv.weight": torch.cat((torch.zeros(8, 8, 1, 1), tensors["decoder.7.conv.weight"]))}
    assert torch.equal(
        PreviewStream(loaded(wider)).decode(latents(2)), PreviewStream(loaded(tensors)).decode(latents(2))
    )


def test_another_models_file_is_refused_by_name() -> None:
    tensors = checkpoint()
    del tensors["decoder.22.bias"]
    with pytest.raises(CheckpointError, match=r"missing: decoder\.22\.bias"):
        loaded(tensors)


def test_the_published_file_has_the_sizes_of_the_default() -> None:
    assert loaded(checkpoint(PreviewConfig()), PreviewConfig()).decoder[3].conv[0].weight.shape == (256, 512, 3, 3)
