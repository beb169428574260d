"""The memory that is predicted against the memory that is used, part by part, and against the published sizes."""

from dataclasses import fields, replace
from itertools import repeat
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from gpu_consumers.engines.causal_dit.control import ControlVideo
from gpu_consumers.engines.causal_dit.extras import Additions, asked_config
from gpu_consumers.engines.causal_dit.ledger import Ledger, bytes_of, predict
from gpu_consumers.engines.causal_dit.live import LiveBytes
from gpu_consumers.engines.causal_dit.memory import device_cache
from gpu_consumers.engines.causal_dit.models import MODELS, build
from gpu_consumers.engines.causal_dit.sampler import denoise, generator
from gpu_consumers.engines.causal_dit.transformer import Transformer
from gpu_consumers.engines.causal_options import CausalOptions, causal_options

SIZE = (96, 64)


def test_live_bytes_are_those_of_tensors_that_something_refers_to() -> None:
    before = torch.zeros(1000)
    with LiveBytes() as live:
        a = torch.ones(250)
        view = a[:10]
        assert live.now == 1000
        b = before + 1
        del a
        assert live.now == 5000
        del b
        view = view + 1
        before.add_(1)
        assert (live.now, live.peak) == (40, 5000)


TINY = MODELS["tiny"]
PARTS = tuple(field.name for field in fields(Ledger))


def with_everything(folder: Path) -> CausalOptions:
    """Two adapters, a control video, the preview decoder."""
    for number, names in enumerate((["blocks.0.self_attn.q", "blocks.1.ffn.0"], ["blocks.0.ffn.2"])):
        tensors: dict[str, torch.Tensor] = {}
        for name in names:
            out, into = Transformer(TINY.dit).state_dict()[f"{name}.weight"].shape
            tensors[f"{name}.lora_A.weight"] = torch.zeros(4 + number, into)
            tensors[f"{name}.lora_B.weight"] = torch.zeros(out, 4 + number)
        save_file(tensors, folder / f"{number}.safetensors")
    (folder / "pose.mkv").touch()
    options = {"lora": "0.safetensors,1.safetensors:0.5", "control": "pose.mkv", "decoder": "preview"}
    return causal_options({"config": "tiny", **options})


@torch.no_grad()
def measured(options: CausalOptions, folder: Path) -> Ledger:
    plain = build(TINY, folder, torch.device("cpu"))
    config, size = asked_config(options, folder), (SIZE[1] // 8, SIZE[0] // 8)
    with LiveBytes() as loading:
        model = Additions(plain, folder).applied(options.extras)
        loaded = loading.now
    lora = sum(lora.size_bytes for lora in model.loras)
    preview = 0 if model.preview is None else bytes_of(model.preview)

    def noise() -> torch.Tensor:
        return torch.randn(1, 16, 3, *size, generator=generator(1, 0, 0, 0))

    with LiveBytes() as caches:
        cache = device_cache(config.dit, config.window, (size[0] // 2, size[1] // 2), torch.zeros(1))
        kv = caches.now - 4
        context = model.transformer.context(model.text("a fox")[None])
    cross = sum(t.numel() * 4 for layer in context.layers for pair in layer for t in pair)
    steering, held, control = LiveBytes(), 0, None
    with steering:
        if options.extras.control:
            control = ControlVideo(model.vae, repeat(torch.zeros(3, *SIZE[::-1])), config.window)
            for number in range(6):
                context = replace(context, control=control.block(number))
            held = steering.now
    block = torch.empty(0)
    with LiveBytes() as denoising:
        for _ in range(6):
            cache.begin(cache.latents)
            *_, block = denoise(model.transformer, cache, context, config.schedule, iter(noise, None))
    stream = model.decode_stream()
    with LiveBytes() as decoding:
        for _ in range(3):
            stream.decode(block)
        kept = decoding.now
    branch = len(config.dit.control_layers) / config.dit.attention_layers
    return Ledger(
        weights=bytes_of(plain.transformer),
        lora=lora,
        control=loaded - lora - preview,
        kv_cache=round(kv * (1 - branch)),
        cross_kv=round(cross * (1 - branch)),
        control_cache=round((kv + cross) * branch) + held,
        vae_weights=bytes_of(model.vae),
        preview=preview,
        vae_cache=kept,
        activations=max(denoising.peak, steering.peak - held) + decoding.peak - kept,
    )


@pytest.mark.parametrize("wish", ["plain", "everything"])
def test_the_prediction_is_within_five_percent_of_a_run(wish: str, tmp_path: Path) -> None:
    options = with_everything(tmp_path) if wish == "everything" else causal_options({"config": "tiny"})
    predicted = predict(asked_config(options, tmp_path), *SIZE, torch.float32)
    used = measured(options, tmp_path)
    for part in (*PARTS, "total"):
        assert getattr(predicted, part) == pytest.approx(getattr(used, part), rel=0.05), part
    added = {"lora", "control", "control_cache", "preview"}
    assert {part for part in PARTS if not getattr(used, part)} == (set() if wish == "everything" else added)


def test_the_model_of_1_3_billion_has_its_published_sizes() -> None:
    ledger = predict(MODELS["self-forcing-1.3b"], 832, 480, torch.bfloat16)
    assert ledger.weights == 2 * 1_418_996_800
    assert ledger.kv_cache == 12 * 1560 * 1536 * 30 * 2 * 2
    assert ledger.cross_kv == pytest.approx(94e6, rel=0.01)
    assert ledger.vae_weights == pytest.approx(0.25e9, rel=0.05)
    assert ledger.jobs_on(8 << 30) == 0
    assert ledger.jobs_on(80 << 30) > ledger.jobs_on(24 << 30) >= 1
