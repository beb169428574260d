"""Adapters live beside the weights against the same adapters merged into them, in float64."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from gpu_consumers.engines.causal_dit.checkpoint import CheckpointError
from gpu_consumers.engines.causal_dit.config import TINY
from gpu_consumers.engines.causal_dit.lora import Lora, merge, read_lora, with_loras
from gpu_consumers.engines.causal_dit.memory import WholeClip
from gpu_consumers.engines.causal_dit.transformer import Transformer

FIRST = ("blocks.0.self_attn.q", "blocks.0.cross_attn.k", "blocks.1.ffn.2", "time_embedding.0")
SECOND = ("blocks.0.self_attn.q", "blocks.1.cross_attn.o", "text_embedding.2", "head.head")


def original() -> Transformer:
    torch.manual_seed(4)
    return Transformer(TINY).double().eval().requires_grad_(False)


@torch.no_grad()
def output(model: Transformer) -> Tensor:
    source = torch.Generator().manual_seed(9)
    x = torch.randn(1, 16, 2, 4, 6, generator=source).double()
    text = torch.randn(1, TINY.text_tokens, TINY.text_dim, generator=source).double()
    return model(x, torch.tensor([500.0]), model.context(text), WholeClip(2, 2, 3, TINY.head_dim))


def adapter(folder: Path, names: tuple[str, ...], alpha: float = 8, prefix: str = "base_model.model.") -> Path:
    """A folder in peft's layout, rank 4."""
    folder.mkdir()
    weights = original().state_dict()
    source = torch.Generator().manual_seed(len(folder.name))
    tensors: dict[str, Tensor] = {}
    for name in names:
        out, into = weights[f"{name}.weight"].shape
        tensors[f"{prefix}{name}.lora_A.weight"] = torch.randn(4, into, generator=source)
        tensors[f"{prefix}{name}.lora_B.weight"] = torch.randn(out, 4, generator=source)
    save_file(tensors, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text(json.dumps({"lora_alpha": alpha, "r": 4}))
    return folder


def placed(path: Path) -> Lora:
    return read_lora(path).to(torch.device("cpu"), torch.float64)


def test_live_adapters_are_the_merged_ones_and_several_add_up(tmp_path: Path) -> None:
    first, second = placed(adapter(tmp_path / "a", FIRST)), placed(adapter(tmp_path / "bb", SECOND, alpha=2))
    model, merged = original(), original()
    live = with_loras(model, [(first, 0.8), (second, -0.4)])
    merge(merged, first, 0.8)
    merge(merged, second, -0.4)
    difference = (output(live) - output(merged)).abs().max()
    assert difference < 1e-10 < (output(model) - output(merged)).abs().max()


def test_jobs_with_different_adapters_on_one_model_do_not_mix(tmp_path: Path) -> None:
    first, second = placed(adapter(tmp_path / "a", FIRST)), placed(adapter(tmp_path / "bb", SECOND))
    model = original()
    bare = output(model)
    one, other = with_loras(model, [(first, 1.0)]), with_loras(model, [(second, 1.0)])
    first_alone, second_alone = output(one), output(other)
    assert not torch.equal(first_alone, second_alone)
    for live, alone in ((one, first_alone), (other, second_alone), (one, first_alone)):
        assert torch.equal(output(live), alone)
    assert torch.equal(output(model), bare)


def test_a_live_adapter_adds_only_its_own_bytes(tmp_path: Path) -> None:
    lora = placed(adapter(tmp_path / "a", FIRST))
    model = original()
    live = with_loras(model, [(lora, 1.0)])
    assert {id(p) for p in live.parameters()} == {id(p) for p in model.parameters()}
    assert lora.size_bytes == 8 * sum(4 * sum(model.state_dict()[f"{name}.weight"].shape) for name in FIRST)


@pytest.mark.parametrize("prefix", ["base_model.model.", "diffusion_model.", "transformer."])
def test_the_prefixes_of_other_trainers_are_read(prefix: str, tmp_path: Path) -> None:
    assert read_lora(adapter(tmp_path / "a", FIRST, prefix=prefix)).pairs.keys() == {f"{n}.weight" for n in FIRST}


def test_an_adapter_in_diffusers_names_is_the_same(tmp_path: Path) -> None:
    folder = adapter(tmp_path / "a", ("blocks.0.self_attn.q", "blocks.1.ffn.2"))
    theirs = {
        name.replace("base_model.model.", "transformer.")
        .replace("self_attn.q", "attn1.to_q")
        .replace("ffn.2", "ffn.net.2"): t
        for name, t in load_file(folder / "adapter_model.safetensors").items()
    }
    save_file(theirs, tmp_path / "theirs.safetensors")
    assert read_lora(tmp_path / "theirs.safetensors").pairs.keys() == read_lora(folder).pairs.keys()


def test_rank_stabilised_scales_and_what_is_not_supported(tmp_path: Path) -> None:
    folder = adapter(tmp_path / "a", FIRST)
    config = {"lora_alpha": 8, "r": 4, "use_rslora": True}
    (folder / "adapter_config.json").write_text(json.dumps(config))
    assert set(read_lora(folder).scales.values()) == {4.0}
    (folder / "adapter_config.json").write_text(json.dumps({**config, "use_dora": True}))
    with pytest.raises(CheckpointError, match="use_dora"):
        read_lora(folder)


@pytest.mark.parametrize("config", [None, "{", "[]", "{}", '{"lora_alpha": "8"}'])
def test_a_config_that_says_no_alpha_is_refused(config: str | None, tmp_path: Path) -> None:
    folder = adapter(tmp_path / "a", FIRST)
    (folder / "adapter_config.json").unlink()
    if config is not None:
        (folder / "adapter_config.json").write_text(config)
    with pytest.raises(CheckpointError, match=r"adapter_config\.json"):
        read_lora(folder)


def test_a_pair_that_is_no_matrices_or_of_rank_0_is_refused(tmp_path: Path) -> None:
    names = ("blocks.0.self_attn.q.lora_A.weight", "blocks.0.self_attn.q.lora_B.weight")
    save_file({name: torch.tensor(1.0) for name in names}, tmp_path / "scalar.safetensors")
    with pytest.raises(CheckpointError, match="no matrices"):
        read_lora(tmp_path / "scalar.safetensors")
    folder = adapter(tmp_path / "a", FIRST)
    save_file(
        dict(zip(names, (torch.zeros(0, 48), torch.zeros(48, 0)), strict=True)), folder / "adapter_model.safetensors"
    )
    with pytest.raises(CheckpointError, match="rank is 0"):
        read_lora(folder)


def test_what_does_not_fit_is_named_and_nothing_is_changed(tmp_path: Path) -> None:
    lora = placed(adapter(tmp_path / "a", FIRST))
    model = original()
    before = output(model)
    down, up = lora.pairs["blocks.1.ffn.2.weight"]
    misshapen = replace(lora, pairs={**lora.pairs, "blocks.1.ffn.2.weight": (down[:, :5], up)})
    unknown = replace(lora, pairs={**lora.pairs, "blocks.9.ffn.2.weight": (down, up)})
    for wrong, said in ((misshapen, r"blocks\.1\.ffn\.2\.weight has down \(4, 5\)"), (unknown, r"blocks\.9\.ffn\.2")):
        with pytest.raises(CheckpointError, match=said):
            with_loras(model, [(wrong, 1.0)])
        with pytest.raises(CheckpointError, match=said):
            merge(model, wrong, 1.0)
    assert torch.equal(output(model), before)


def test_tensors_that_are_no_pair_are_named(tmp_path: Path) -> None:
    folder = adapter(tmp_path / "a", FIRST)
    tensors = load_file(folder / "adapter_model.safetensors")
    save_file(
        {**tensors, "base_model.model.blocks.0.self_attn.q.magnitude": torch.ones(3)}, tmp_path / "more.safetensors"
    )
    with pytest.raises(CheckpointError, match=r"peft's layout: blocks\.0\.self_attn\.q\.magnitude"):
        read_lora(tmp_path / "more.safetensors")
    half = {name: t for name, t in tensors.items() if "blocks.0.self_attn.q.lora_B" not in name}
    save_file(half, tmp_path / "half.safetensors")
    with pytest.raises(CheckpointError, match=r"blocks\.0\.self_attn\.q has lora_A and no lora_B"):
        read_lora(tmp_path / "half.safetensors")
