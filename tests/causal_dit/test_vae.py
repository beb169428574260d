"""The streaming autoencoder against diffusers' whole-clip one, in float64 with the same random weights."""

from itertools import pairwise

import pytest
import torch
from diffusers import AutoencoderKLWan
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from gpu_consumers.engines.causal_dit.decode import REACH, DecodeStream, tiles_of, to_frames
from gpu_consumers.engines.causal_dit.vae import Past, Vae, VaeConfig

CONFIG = VaeConfig(dim=4)


@pytest.fixture(autouse=True)
def in_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tensor, "float", Tensor.double)


def reference() -> AutoencoderKLWan:
    torch.manual_seed(5)
    model = AutoencoderKLWan(base_dim=CONFIG.dim).double()
    for name, parameter in model.named_parameters():
        if not name.endswith("gamma"):
            torch.nn.init.normal_(parameter, std=parameter[0].numel() ** -0.5 if parameter.ndim > 1 else 0.1)
    return model.eval()


REFERENCE = reference()
VAE = Vae(CONFIG).double().eval()
VAE.load_state_dict(REFERENCE.state_dict())


def latents(count: int, height: int = 4, width: int = 5) -> Tensor:
    return torch.randn(1, 16, count, height, width, dtype=torch.float64, generator=torch.Generator().manual_seed(2))


@torch.no_grad()
def expected_pixels(z: Tensor) -> Tensor:
    shape = (1, -1, 1, 1, 1)
    mean, std = (torch.tensor(v, dtype=torch.float64).view(shape) for v in (CONFIG.mean, CONFIG.std))
    return REFERENCE.decode(z * std + mean).sample


@torch.no_grad()
def streamed(z: Tensor, cuts: list[int], tile: int = 0) -> Tensor:
    stream = DecodeStream(VAE, tile)
    borders = sorted({0, *cuts, z.shape[2]})
    return torch.cat([stream.decode(z[:, :, a:b]) for a, b in pairwise(borders)], dim=2)


Z = latents(7)
EXPECTED = expected_pixels(Z)


@given(st.lists(st.integers(1, 6), max_size=4))
@settings(max_examples=6, deadline=None)
def test_decoding_in_any_segments_equals_the_whole_clip(cuts: list[int]) -> None:
    out = streamed(Z, cuts)
    assert out.shape == (1, 3, 25, 32, 40)
    assert (out - EXPECTED).abs().max() < 1e-6 < EXPECTED.std()


@torch.no_grad()
@pytest.mark.parametrize("chunks", [[1, 4, 4, 4], [1, 12], [1, 8, 4]], ids=str)
def test_encoding_in_any_segments_equals_the_whole_clip(chunks: list[int]) -> None:
    x = torch.rand(1, 3, 13, 32, 40, dtype=torch.float64) * 2 - 1
    shape = (1, -1, 1, 1, 1)
    mean, std = (torch.tensor(v, dtype=torch.float64).view(shape) for v in (CONFIG.mean, CONFIG.std))
    expected = (REFERENCE.encode(x).latent_dist.mode() - mean) / std
    past: Past = {}
    out = torch.cat([VAE.encode(part, past) for part in x.split(chunks, dim=2)], dim=2)
    assert out.shape == (1, 16, 4, 4, 5)
    assert (out - expected).abs().max() < 1e-6


def test_a_stream_cut_without_its_memory_shows_and_a_warm_up_hides_most_of_it() -> None:
    with torch.no_grad():
        cold = DecodeStream(VAE).decode(Z[:, :, 4:])
        warm = DecodeStream(VAE)
        warm.decode(Z[:, :, :4])
        warmed = warm.decode(Z[:, :, 4:])
    truth = EXPECTED[:, :, 13:]
    assert cold.shape[2] == truth.shape[2] - 3
    assert (warmed - truth).abs().max() < 1e-6 < (cold[:, :, -4:] - truth[:, :, -4:]).abs().max()


def test_tiles_have_no_borders() -> None:
    z = latents(2, height=3, width=44)
    whole, tiled = streamed(z, [1]), streamed(z, [1], tile=15)
    assert len(tiles_of(3, 44, 15)) == 3
    assert (whole - tiled).abs().max() <= 1e-9
    assert (to_frames(whole).int() - to_frames(tiled).int()).abs().max() <= 1


def test_the_halo_is_as_wide_as_the_convolutions_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpu_consumers.engines.causal_dit.decode.REACH", REACH - 2)
    z = latents(2, height=3, width=44)
    assert (streamed(z, []) - streamed(z, [], tile=15)).abs().max() > 1e-9


def test_every_latent_pixel_is_in_one_tile() -> None:
    seen = torch.zeros(40, 44)
    for tile in tiles_of(40, 44, 16):
        seen[tile.inner] += 1
        assert all(o.start <= i.start < i.stop <= o.stop for i, o in zip(tile.inner, tile.outer, strict=True))
    assert (seen == 1).all()


def test_the_memory_of_a_stream_does_not_grow() -> None:
    stream = DecodeStream(VAE)

    def held() -> int:
        return sum(t.numel() for past in (stream.low, *stream.high) for t in past.values())

    with torch.no_grad():
        stream.decode(Z[:, :, :2])
        before = held()
        for _ in range(3):
            stream.decode(Z)
    assert held() == before
