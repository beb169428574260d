"""VACE's control branch against diffusers' own model and pipeline in float64, and its causal form against a masked run."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import av
import numpy as np
import pytest
import torch
from diffusers import AutoencoderKLWan, WanVACEPipeline, WanVACETransformer3DModel
from torch import Tensor

from gpu_consumers.engines.causal_dit.config import TINY, Window
from gpu_consumers.engines.causal_dit.control import ControlVideo
from gpu_consumers.engines.causal_dit.footage import FootageError, check_footage, footage
from gpu_consumers.engines.causal_dit.layouts import original_names
from gpu_consumers.engines.causal_dit.memory import WholeClip, device_cache
from gpu_consumers.engines.causal_dit.transformer import Context, Transformer, sinusoid
from gpu_consumers.engines.causal_dit.vae import Vae, VaeConfig

CONFIG = replace(TINY, layers=3, control_layers=(0, 2))
GRID = (3, 4)
LATENTS = 12


@pytest.fixture(autouse=True)
def in_float64(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """diffusers casts to float32 by `.float()` wherever the original does: for parity in float64 that cast is double."""
    monkeypatch.setattr(Tensor, "float", Tensor.double)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def reference() -> WanVACETransformer3DModel:
    torch.manual_seed(7)
    model = WanVACETransformer3DModel(
        num_attention_heads=CONFIG.heads,
        attention_head_dim=CONFIG.head_dim,
        text_dim=CONFIG.text_dim,
        freq_dim=CONFIG.freq_dim,
        ffn_dim=CONFIG.ffn_dim,
        num_layers=CONFIG.layers,
        vace_layers=list(CONFIG.control_layers),
        vace_in_channels=CONFIG.control_channels,
    ).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    # Its sinusoid is float32 whatever the model's type; ours is float64 as in the original.
    model.condition_embedder.timesteps_proj.forward = lambda t: sinusoid(t, CONFIG.freq_dim)
    return model.eval()


def ours(model: WanVACETransformer3DModel) -> Transformer:
    made = Transformer(CONFIG).double().eval()
    made.load_state_dict(original_names(model.state_dict()))
    return made


def inputs() -> tuple[Tensor, Tensor, Tensor]:
    """Latents, text, control."""
    torch.manual_seed(3)
    size = (LATENTS, GRID[0] * 2, GRID[1] * 2)
    x, control = torch.randn(1, 16, *size), torch.randn(1, CONFIG.control_channels, *size)
    return x, torch.randn(1, CONFIG.text_tokens, CONFIG.text_dim), control


def controlled(context: Context, control: Tensor) -> Context:
    return replace(context, control=control, control_weight=0.7)


@torch.no_grad()
def test_the_branch_equals_diffusers_to_1e_10() -> None:
    theirs = reference()
    model, (x, text, control) = ours(theirs), inputs()
    time, scale = torch.tensor([625.0]), torch.full((2,), 0.7)
    expected = theirs(x, time, text, None, control, scale, return_dict=False)[0]
    memory = WholeClip(LATENTS, *GRID, CONFIG.head_dim)
    out = model(x, time, controlled(model.context(text), control), memory)
    assert (out - expected).abs().max() < 1e-10 < expected.abs().max()
    assert (model(x, time, model.context(text), memory) - expected).abs().max() > 1e-3


@torch.no_grad()
@pytest.mark.parametrize("passes", [1, 2])
def test_block_by_block_with_the_cache_equals_one_masked_run(passes: int) -> None:
    model, (x, text, control) = ours(reference()), inputs()
    time, context, window = torch.zeros(1), model.context(text), Window(latents=0, sink=0)
    memory = WholeClip(LATENTS, *GRID, CONFIG.head_dim, block=3)
    expected = model(x, time, controlled(context, control), memory)
    cache = device_cache(CONFIG, window, GRID, like=x, capacity=LATENTS)
    outs: list[Tensor] = []
    for start in range(0, LATENTS, 3):
        cache.begin(start)
        here = slice(start, start + 3)
        given = controlled(context, control[:, :, here])
        for _ in range(passes - 1):
            model(torch.randn_like(x[:, :, here]), torch.full((1,), 800.0), given, cache)
        outs.append(model(x[:, :, here], time, given, cache))
    assert (torch.cat(outs, dim=2) - expected).abs().max() < 1e-10


VAE = VaeConfig(dim=4)


def autoencoders() -> tuple[AutoencoderKLWan, Vae]:
    torch.manual_seed(5)
    theirs = AutoencoderKLWan(base_dim=VAE.dim).double().eval()
    mine = Vae(VAE).double().eval()
    mine.load_state_dict(theirs.state_dict())
    return theirs, mine


@torch.no_grad()
def test_the_control_latents_are_those_of_diffusers_pipeline() -> None:
    theirs, mine = autoencoders()
    video = torch.rand(1, 3, 33, 32, 48) * 2 - 1
    patch = SimpleNamespace(config=SimpleNamespace(patch_size=(1, 2, 2)))
    pipeline = SimpleNamespace(
        vae=theirs, transformer=patch, vae_scale_factor_spatial=8, vae_scale_factor_temporal=4, _execution_device="cpu"
    )
    mask = torch.ones_like(video)
    latents = WanVACEPipeline.prepare_video_latents(pipeline, video, mask, [[]])
    expected = torch.cat([latents, WanVACEPipeline.prepare_masks(pipeline, mask, [[]])], dim=1)
    control = ControlVideo(mine, iter(video[0].unbind(1)), Window())
    out = torch.cat([control.block(index) for index in range(3)], dim=2)
    assert out.shape == expected.shape == (1, 96, 9, 4, 6)
    assert (out - expected).abs().max() < 1e-6  # the pipeline's mean and deviation are float32


def grey() -> Iterator[Tensor]:
    while True:
        yield torch.zeros(3, 16, 16)


@torch.no_grad()
def test_what_a_new_prompt_needs_again_is_kept_and_no_more() -> None:
    window = Window(latents=9)
    control = ControlVideo(autoencoders()[1], grey(), window)
    made = [control.block(index) for index in range(6)]
    assert all(torch.equal(control.block(index), made[index]) for index in (0, 4, 5))
    assert len(control._blocks) == 3
    with pytest.raises(KeyError):
        control.block(2)


def video(path: Path, frames: int, rate: int, size: tuple[int, int] = (48, 32)) -> Path:
    """Frame i has the grey level 5 i, modulo 256; lossless."""
    with av.open(path, "w") as container:
        stream = container.add_stream("ffv1", rate=rate, options={"threads": "1"})
        stream.width, stream.height, stream.pix_fmt = *size, "bgr0"
        for index in range(frames):
            picture = np.full((size[1], size[0], 3), 5 * index % 256, np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())
    return path


def levels(path: Path, rate: int, start: int, count: int) -> list[int]:
    shown = islice(footage(path, (16, 24), Fraction(rate), start), count)
    return [round((float(picture.mean()) + 1) * 127.5 / 5) for picture in shown]


def test_the_control_is_what_the_file_shows_at_the_frames_time(tmp_path: Path) -> None:
    path = video(tmp_path / "pose.mkv", frames=6, rate=8)
    assert levels(path, 16, 0, 6) == [0, 0, 1, 1, 2, 2]
    assert levels(path, 8, 2, 3) == [2, 3, 4]
    assert levels(path, 4, 0, 3) == [0, 2, 4]


def test_behind_the_files_end_nothing_is_asked(tmp_path: Path) -> None:
    path = video(tmp_path / "pose.mkv", frames=2, rate=8)
    *_, behind = islice(footage(path, (16, 24), Fraction(8), 0), 5)
    assert torch.equal(behind, torch.zeros(3, 16, 24))


def test_a_file_that_cannot_steer_is_refused_by_name(tmp_path: Path) -> None:
    path = video(tmp_path / "pose.mkv", frames=1, rate=8)
    check_footage(path, (320, 480))
    with pytest.raises(FootageError, match=r"pose\.mkv is 48x32, the job 48x48"):
        check_footage(path, (48, 48))
    with pytest.raises(FootageError, match="one of"):
        check_footage(tmp_path / "list.m3u8", (32, 48))
    (tmp_path / "list.mkv").write_text("#EXTM3U\nfile:///etc/passwd\n")
    for name in ("list.mkv", "none.mp4"):
        with pytest.raises(FootageError, match="cannot be read"):
            check_footage(tmp_path / name, (32, 48))
