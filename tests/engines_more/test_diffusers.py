"""The diffusers engine with tiny random Wan pipelines, saved and loaded as real ones are."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from diffusers import (
    AutoencoderKLWan,
    FlowMatchEulerDiscreteScheduler,
    WanImageToVideoPipeline,
    WanPipeline,
    WanTransformer3DModel,
)
from numpy.typing import NDArray
from PIL import Image
from safetensors.torch import load_file
from transformers import ByT5Tokenizer, UMT5Config, UMT5EncoderModel

from gpu_consumers.engines.diffusers import DiffusersEngine
from gpu_consumers.engines.engine import EngineError, create
from schemas.records import FailureKind, SegmentRequested
from tests.engines_more.requests import clip_request, planned_shot

Segment = tuple[NDArray[np.generic], NDArray[np.uint8]]
TEXT = {"model": "tiny-t2v", "steps": "2"}
IMAGE = {"model": "tiny-i2v", "opening": "tiny-t2v", "steps": "2"}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of models with a text-to-video and an image-to-video pipeline."""
    folder = tmp_path_factory.mktemp("models")
    torch.manual_seed(5)
    vae = AutoencoderKLWan(
        base_dim=3, z_dim=16, dim_mult=[1, 1, 1, 1], num_res_blocks=1, temperal_downsample=[False, True, True]
    )
    text = UMT5EncoderModel(UMT5Config(vocab_size=384, d_model=32, d_kv=8, d_ff=32, num_layers=1, num_heads=2))
    shared = {"vae": vae, "text_encoder": text, "tokenizer": ByT5Tokenizer()}
    scheduler = FlowMatchEulerDiscreteScheduler(shift=3.0)
    WanPipeline(**shared, scheduler=scheduler, transformer=transformer(16)).save_pretrained(folder / "tiny-t2v")
    image = WanImageToVideoPipeline(**shared, scheduler=scheduler, transformer=transformer(36))
    image.save_pretrained(folder / "tiny-i2v")
    Image.new("RGB", (64, 48), (200, 30, 30)).save(folder / "red.png")
    return folder


def transformer(in_channels: int) -> WanTransformer3DModel:
    return WanTransformer3DModel(
        patch_size=(1, 2, 2),
        num_attention_heads=2,
        attention_head_dim=12,
        in_channels=in_channels,
        out_channels=16,
        text_dim=32,
        freq_dim=16,
        ffn_dim=32,
        num_layers=1,
        cross_attn_norm=True,
        qk_norm="rms_norm_across_heads",
        rope_max_seq_len=32,
    )


@pytest.fixture
def engine(models: Path, monkeypatch: pytest.MonkeyPatch) -> DiffusersEngine:
    monkeypatch.setenv("LONGTAKE_MODELS", str(models))
    made = create("diffusers")
    assert isinstance(made, DiffusersEngine)
    return made


def run(engine: DiffusersEngine, request: SegmentRequested, before: Sequence[NDArray[np.generic]] = ()) -> Segment:
    state = engine.restore(request, before)
    chunks = list(state.denoise(request))
    (pictures,) = [chunk for chunk in chunks if len(chunk)]
    assert len(chunks) == 1 + 2, "a heartbeat for each of two steps"
    return pictures, state.decode(request, pictures)


def refusal(engine: DiffusersEngine, request: SegmentRequested, before: Sequence[NDArray[np.generic]] = ()) -> str:
    with pytest.raises(EngineError) as caught:
        run(engine, request, before)
    assert caught.value.kind is FailureKind.ENGINE
    assert not caught.value.retryable
    return caught.value.reason


def test_text_becomes_the_pictures_that_were_asked_for(engine: DiffusersEngine) -> None:
    request = clip_request("diffusers", options=TEXT, frames=7, size=(48, 32))
    pictures, frames = run(engine, request)
    assert (frames.shape, frames.dtype) == ((7, 32, 48, 3), np.uint8)
    assert np.array_equal(pictures.transpose(0, 2, 3, 1), frames)
    assert frames.std() > 1
    again, _ = run(engine, request)
    assert np.array_equal(again, pictures)


def test_another_seed_or_variation_or_text_is_another_picture(engine: DiffusersEngine) -> None:
    first, _ = run(engine, clip_request("diffusers", options=TEXT))
    for change in (
        clip_request("diffusers", options=TEXT, seed=12),
        clip_request("diffusers", options=TEXT, variation=1),
        clip_request("diffusers", options=TEXT, shots=(planned_shot("the sea at night"),)),
        clip_request("diffusers", options=TEXT, negative=("rain",)),
    ):
        assert not np.array_equal(run(engine, change)[0], first)


def test_an_image_pipeline_goes_on_from_the_last_picture(engine: DiffusersEngine) -> None:
    first, _ = run(engine, clip_request("diffusers", 0, options=IMAGE))
    second, frames = run(engine, clip_request("diffusers", 1, options=IMAGE), [first])
    assert frames.shape == (5, 32, 32, 3)
    other_end = np.concatenate((first[:-1], 255 - first[-1:]))
    assert not np.array_equal(run(engine, clip_request("diffusers", 1, options=IMAGE), [other_end])[0], second)
    other_begin = np.concatenate((255 - first[:-1], first[-1:]))
    assert np.array_equal(run(engine, clip_request("diffusers", 1, options=IMAGE), [other_begin])[0], second)


def test_a_held_state_and_a_restored_one_go_on_alike(engine: DiffusersEngine) -> None:
    held = engine.restore(clip_request("diffusers", 0, options=IMAGE), [])
    *_, first = held.denoise(clip_request("diffusers", 0, options=IMAGE))
    *_, continued = held.denoise(clip_request("diffusers", 1, options=IMAGE))
    assert np.array_equal(continued, run(engine, clip_request("diffusers", 1, options=IMAGE), [first])[0])


def test_the_first_frame_after_a_join_is_not_the_last_one_again(engine: DiffusersEngine) -> None:
    """The pipeline is asked for one frame more than wanted, and its first, the given picture, is left out."""
    first, _ = run(engine, clip_request("diffusers", 0, options=IMAGE))
    request = clip_request("diffusers", 1, options=IMAGE, frames=8, start=5)
    whole: list[NDArray[np.float32]] = []
    pipeline = engine.pipeline("tiny-i2v")
    original = pipeline.video_processor.postprocess_video

    def postprocess(video: torch.Tensor, **kwargs: str) -> NDArray[np.float32]:
        whole.append(original(video, **kwargs))
        return whole[-1]

    pipeline.video_processor.postprocess_video = postprocess
    pictures, _ = run(engine, request, [first])
    made = (whole[0][0] * 255).round().astype(np.uint8).transpose(0, 3, 1, 2)
    assert len(made) == 9
    assert np.array_equal(pictures, made[1:])


def test_a_picture_of_the_users_own_begins_the_first_take(engine: DiffusersEngine) -> None:
    options = {"model": "tiny-i2v", "image": "red.png", "steps": "2"}
    pictures, _ = run(engine, clip_request("diffusers", options=options))
    assert len(pictures) == 5
    shots = (planned_shot("the sea", 5, 100, number=1),)
    assert "opening=FOLDER" in refusal(engine, clip_request("diffusers", 1, options=options, shots=shots), [pictures])


def test_a_text_pipeline_cannot_go_on_with_a_take_but_begins_one_at_a_cut(engine: DiffusersEngine) -> None:
    first, _ = run(engine, clip_request("diffusers", 0, options=TEXT))
    assert "takes no picture" in refusal(engine, clip_request("diffusers", 1, options=TEXT), [first])
    cut = clip_request("diffusers", 1, options=TEXT, shots=(planned_shot("the sea", 5, 100, number=1),))
    assert len(run(engine, cut, [first])[0]) == 5


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"model": "none"}, "no diffusers pipeline"),
        ({"model": "../models"}, "relative path"),
        ({"model": "tiny-i2v"}, "begins with a picture"),
        ({"model": "tiny-i2v", "image": "blue.png"}, "cannot be read"),
        ({}, "required"),
        ({"model": "tiny-t2v", "speed": "9"}, "knows guidance, image, model, opening, steps"),
    ],
)
def test_what_cannot_be_is_refused_by_name(engine: DiffusersEngine, options: dict[str, str], why: str) -> None:
    assert why in refusal(engine, clip_request("diffusers", options=options))


def test_a_size_that_the_pipeline_cannot_make_is_refused_in_its_words(engine: DiffusersEngine) -> None:
    assert "divisible by 16" in refusal(engine, clip_request("diffusers", options=TEXT, size=(40, 32)))


def test_a_link_out_of_the_folder_of_models_is_not_followed(
    engine: DiffusersEngine, models: Path, tmp_path: Path
) -> None:
    (models / "out").unlink(missing_ok=True)
    (models / "out").symlink_to(tmp_path)
    assert "is not in" in refusal(engine, clip_request("diffusers", options={"model": "out"}))


def test_pickled_weights_are_not_loaded(engine: DiffusersEngine, models: Path) -> None:
    shutil.copytree(models / "tiny-t2v", models / "pickled")
    weights = models / "pickled" / "vae" / "diffusion_pytorch_model.safetensors"
    torch.save(load_file(weights), weights.with_suffix(".bin"))
    weights.unlink()
    reason = refusal(engine, clip_request("diffusers", options={"model": "pickled"}))
    assert "diffusion_pytorch_model.safetensors" in reason


def test_pictures_that_are_not_numbers_are_a_failure(engine: DiffusersEngine) -> None:
    pipeline = engine.pipeline("tiny-t2v")
    with torch.no_grad():
        pipeline.transformer.proj_out.bias.fill_(float("nan"))
    with pytest.raises(EngineError) as caught:
        run(engine, clip_request("diffusers", options=TEXT))
    assert caught.value.kind is FailureKind.NAN
    assert caught.value.retryable


def test_without_the_picture_before_the_state_is_missing(engine: DiffusersEngine) -> None:
    with pytest.raises(EngineError) as caught:
        engine.restore(clip_request("diffusers", 1, options=IMAGE), [])
    assert caught.value.kind is FailureKind.STATE_MISSING
    with pytest.raises(EngineError, match="not pictures"):
        engine.restore(clip_request("diffusers", 1, options=IMAGE), [np.zeros((3, 16, 4, 4), np.float16)])
