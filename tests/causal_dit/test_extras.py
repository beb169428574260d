"""What jobs add to one loaded model, through the engine: adapters, a control video, the preview decoder."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file

from gpu_consumers.engines.causal_dit.engine import CausalDitEngine, CausalDitState
from gpu_consumers.engines.causal_options import causal_options
from gpu_consumers.engines.engine import EngineError
from schemas.errors import BadInputError
from schemas.records import SegmentRequested
from tests.causal_dit.test_control import video
from tests.causal_dit.test_engine import request

WEIGHTS = {"blocks.0.self_attn.q": (48, 48), "blocks.1.ffn.0": (96, 48), "text_embedding.0": (48, 32)}
Latents = NDArray[np.generic]


def adapter(folder: Path, seed: int) -> None:
    source = torch.Generator().manual_seed(seed)
    folder.mkdir()
    tensors = {}
    for name, (out, into) in WEIGHTS.items():
        tensors[f"base_model.model.{name}.lora_A.weight"] = torch.randn(4, into, generator=source)
        tensors[f"base_model.model.{name}.lora_B.weight"] = torch.randn(out, 4, generator=source) / 4
    save_file(tensors, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text(json.dumps({"lora_alpha": 4, "r": 4}))


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CausalDitEngine:
    models = tmp_path / "models"
    models.mkdir()
    for seed, name in enumerate(("ink", "oil")):
        adapter(models / name, seed)
    video(models / "pose.mkv", frames=80, rate=16, size=(32, 16))
    (tmp_path / "outside.safetensors").write_bytes(b"")
    (models / "link.safetensors").symlink_to(tmp_path / "outside.safetensors")
    torch.save({}, models / "adapter.pt")
    monkeypatch.setenv("LONGTAKE_MODELS", str(models))
    return CausalDitEngine()


def asked(segment: int = 0, **options: str) -> SegmentRequested:
    return replace(request(segment), engine_options={"config": "tiny", **options})


def latents(state: CausalDitState, wanted: SegmentRequested) -> Latents:
    return np.concatenate(list(state.denoise(wanted)))


def made(engine: CausalDitEngine, **options: str) -> Latents:
    wanted = asked(**options)
    return latents(engine.restore(wanted, []), wanted)


def test_jobs_with_different_adapters_on_one_model_do_not_mix(engine: CausalDitEngine) -> None:
    wishes = [{}, {"lora": "ink:0.8"}, {"lora": "ink:0.8,oil:-0.4"}, {"lora": "ink:0.3"}]
    alone = [made(engine, **wish) for wish in wishes]
    assert len({take.tobytes() for take in alone}) == len(wishes)
    requests = [asked(**wish) for wish in wishes]
    states = [engine.restore(wanted, []) for wanted in requests]
    takes = [state.denoise(wanted) for state, wanted in zip(states, requests, strict=True)]
    together = zip(*takes, strict=True)  # a pass of each in turn
    for expected, chunks in zip(alone, zip(*together, strict=True), strict=True):
        assert np.array_equal(np.concatenate(chunks), expected)
    assert np.array_equal(made(engine), alone[0])


def test_an_adapter_is_on_the_device_once_and_only_while_a_job_has_it(engine: CausalDitEngine) -> None:
    states = [engine.restore(asked(lora=wish), []) for wish in ("ink", "ink:0.5,oil")]
    held = engine._models["tiny"].additions._loras
    first, second = (state._model.loras for state in states)
    assert first[0] is second[0]
    assert set(held) == {"ink", "oil"}
    del states, second
    del first
    assert not held


def test_a_controlled_take_is_found_again_to_the_last_bit(engine: CausalDitEngine) -> None:
    """Across a change of prompt, for which the window's control is needed again."""
    options = {"control": "pose.mkv", "control_weight": "0.7", "lora": "oil"}
    state = engine.restore(asked(**options), [])
    whole = [latents(state, asked(segment, **options)) for segment in range(4)]
    again = engine.restore(asked(3, **options), whole[:3])
    assert np.array_equal(latents(again, asked(3, **options)), whole[3])
    assert not np.array_equal(made(engine, lora="oil"), whole[0])
    assert not np.array_equal(made(engine, **{**options, "control_weight": "0.2"}), whole[0])


def test_the_preview_decoder_changes_the_frames_and_not_the_latents(engine: CausalDitEngine) -> None:
    full, quick = asked(), asked(decoder="preview")
    states = engine.restore(full, []), engine.restore(quick, [])
    chunks = [[c for c in s.denoise(r) if len(c)] for s, r in zip(states, (full, quick), strict=True)]
    assert all(np.array_equal(a, b) for a, b in zip(*chunks, strict=True))
    frames, preview = (
        np.concatenate([s.decode(full, c) for c in given]) for s, given in zip(states, chunks, strict=True)
    )
    assert frames.shape == preview.shape == (33, 16, 32, 3)
    assert not np.array_equal(frames, preview)
    after = asked(1, decoder="preview")
    again = engine.restore(after, [np.concatenate(chunks[1])])
    chunk = next(c for c in states[1].denoise(after) if len(c))
    assert np.array_equal(states[1].decode(after, chunk), again.decode(after, chunk))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"lora": "none"}, r"none: not there"),
        ({"lora": "link.safetensors"}, "is not in"),
        ({"lora": "adapter.pt"}, "an adapter is"),
        ({"lora": "pose.mkv"}, "an adapter is"),
        ({"control": "none.mkv"}, "not there"),
        ({"control": "ink"}, "one of"),
    ],
)
def test_a_file_that_is_not_there_or_not_that_is_refused_for_good(
    engine: CausalDitEngine, options: dict[str, str], said: str
) -> None:
    with pytest.raises(EngineError, match=said) as caught:
        engine.restore(asked(**options), [])
    assert not caught.value.retryable


def test_options_are_read() -> None:
    extras = causal_options({"lora": "a/b.safetensors:0.8,c:-1.5,d", "control": "p.mp4", "decoder": "preview"}).extras
    assert extras.loras == (("a/b.safetensors", 0.8), ("c", -1.5), ("d", 1.0))
    assert (extras.control, extras.control_weight, extras.preview) == ("p.mp4", 1.0, True)
    assert not causal_options({}).extras.preview


@pytest.mark.parametrize(
    ("options", "field", "rule"),
    [
        ({"lora": "../a"}, "lora", "path"),
        ({"lora": "/a"}, "lora", "path"),
        ({"lora": ""}, "lora", "path"),
        ({"lora": "a:x"}, "lora", "type"),
        ({"lora": "a:9"}, "lora", "range"),
        ({"lora": "a,a:2"}, "lora", "twice"),
        ({"lora": "a,b,c,d,e,f,g,h,i"}, "lora", "count"),
        ({"control": "a//b"}, "control", "path"),
        ({"control": "a", "control_weight": "3"}, "control_weight", "range"),
        ({"control_weight": "1"}, "control_weight", "without"),
        ({"decoder": "tiny"}, "decoder", "choice"),
        ({"config": "A b"}, "config", "characters"),
        ({"shift": "1"}, "shift", "unknown_option"),
    ],
)
def test_a_wrong_option_is_refused_by_name(options: dict[str, str], field: str, rule: str) -> None:
    with pytest.raises(BadInputError) as caught:
        causal_options(options)
    assert (caught.value.field, caught.value.rule) == (f"engine_options.{field}", rule)
