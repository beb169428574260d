"""Tiny checkpoints in every layout one can get, with the real names, loaded to the same output."""

import json
from pathlib import Path

import pytest
import torch
from diffusers import WanTransformer3DModel
from safetensors.torch import load_file as load_file_of
from safetensors.torch import save_file
from torch import Tensor

from gpu_consumers.engines.causal_dit.checkpoint import (
    CheckpointError,
    Share,
    load,
    load_file,
    read,
    read_ahead,
    shard_of,
)
from gpu_consumers.engines.causal_dit.config import TINY
from gpu_consumers.engines.causal_dit.lora import finite_lora, merge, read_lora
from gpu_consumers.engines.causal_dit.memory import WholeClip
from gpu_consumers.engines.causal_dit.transformer import Transformer

CPU = torch.device("cpu")


def original() -> Transformer:
    torch.manual_seed(4)
    return Transformer(TINY).eval()


@torch.no_grad()
def output(model: Transformer) -> Tensor:
    source = torch.Generator().manual_seed(9)
    x = torch.randn(1, 16, 2, 4, 6, generator=source)
    text = torch.randn(1, TINY.text_tokens, TINY.text_dim, generator=source)
    return model(x, torch.tensor([500.0]), model.context(text), WholeClip(2, 2, 3, TINY.head_dim))


def in_diffusers_names(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """By diffusers' own converter, so that the names are theirs and not our idea of them."""
    from diffusers.loaders.single_file_utils import convert_wan_transformer_to_diffusers

    names = convert_wan_transformer_to_diffusers(dict(weights))
    reference = WanTransformer3DModel(
        num_attention_heads=TINY.heads,
        attention_head_dim=TINY.head_dim,
        text_dim=TINY.text_dim,
        freq_dim=TINY.freq_dim,
        ffn_dim=TINY.ffn_dim,
        num_layers=TINY.layers,
    )
    assert names.keys() == reference.state_dict().keys()
    return names


def wrapped(weights: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {f"{prefix}{name}": t for name, t in weights.items()}


def write(folder: Path, layout: str) -> Path:
    weights = {name: t.clone() for name, t in original().state_dict().items()}
    match layout:
        case "wan":
            save_file(weights, folder / "model.safetensors")
        case "diffusers":
            save_file(in_diffusers_names(weights), folder / "diffusion_pytorch_model.safetensors")
        case "shards":
            names = list(weights)
            save_file({n: weights[n] for n in names[::2]}, folder / "model-00001-of-00002.safetensors")
            save_file({n: weights[n] for n in names[1::2]}, folder / "model-00002-of-00002.safetensors")
        case "self-forcing":
            torch.save({"generator_ema": wrapped(weights, "model.")}, folder / "self_forcing_dmd.pt")
            return folder / "self_forcing_dmd.pt"
        case "fsdp":
            inner = {name.replace("blocks.0.", "blocks.0._fsdp_wrapped_module."): t for name, t in weights.items()}
            noise = {name: torch.zeros_like(t) for name, t in inner.items()}
            content = {"generator": noise, "generator_ema": wrapped(inner, "model._fsdp_wrapped_module."), "step": 7}
            torch.save(content, folder / "longlive_base.pt")
            return folder / "longlive_base.pt"
        case _:
            raise AssertionError(layout)
    return folder


LAYOUTS = ["wan", "diffusers", "shards", "self-forcing", "fsdp"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_loads_to_the_same_output(layout: str, tmp_path: Path) -> None:
    path = write(tmp_path, layout)
    assert read_ahead(path) > 10_000
    with torch.device("meta"):
        model = Transformer(TINY)
    load_file(model, path, dtype=torch.float32, device=CPU)
    assert torch.equal(output(model.eval()), output(original()))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_ranks_load_is_together_the_whole_each_tensor_once(layout: str, tmp_path: Path) -> None:
    path = write(tmp_path, layout)
    together: dict[str, Tensor] = {}
    loads: list[int] = []
    for rank in range(3):
        with torch.device("meta"):
            model = Transformer(TINY)
        load_file(model, path, dtype=torch.float32, device=CPU, share=Share(rank=rank, ranks=3))
        own = {name: t for name, t in model.state_dict().items() if not t.is_meta}
        assert not own.keys() & together.keys()
        loads.append(sum(t.numel() for t in own.values()))
        together |= own
    assert max(loads) < 1.05 * min(loads)
    with torch.device("meta"):
        model = Transformer(TINY)
    model.load_state_dict(together, assign=True)
    assert torch.equal(output(model.eval()), output(original()))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_weights_that_are_no_numbers_are_refused_by_tensor_file_and_rule(value: float, tmp_path: Path) -> None:
    weights = {name: t.clone() for name, t in original().state_dict().items()}
    weights["blocks.1.ffn.2.weight"][5, 7] = value
    save_file(weights, tmp_path / "bad.safetensors")
    model = Transformer(TINY).eval()
    before = output(model)
    with pytest.raises(CheckpointError, match=r"bad\.safetensors: NaN or infinity in: blocks\.1\.ffn\.2\.weight$"):
        load_file(model, tmp_path / "bad.safetensors", dtype=torch.float32, device=CPU)
    assert torch.equal(output(model), before)


def test_weights_of_whole_numbers_are_refused_by_tensor_and_type() -> None:
    weights = dict(original().state_dict())
    weights["head.head.weight"] = weights["head.head.weight"].to(torch.int8)
    with pytest.raises(CheckpointError, match=r"^no floating point: head\.head\.weight is int8$"):
        load(Transformer(TINY), weights, dtype=torch.float32, device=CPU)


def test_what_is_wrong_is_listed_by_name(tmp_path: Path) -> None:
    weights = dict(original().state_dict())
    weights["blocks.0.ffn.0.weight"] = torch.zeros(3, 3)
    weights["blocks.9.ffn.0.weight"] = torch.zeros(1)
    del weights["head.modulation"]
    model = Transformer(TINY).eval()
    before = output(model)
    with pytest.raises(CheckpointError) as caught:
        load(model, weights, dtype=torch.float32, device=CPU)
    said = str(caught.value)
    assert "missing: head.modulation" in said
    assert "left over: blocks.9.ffn.0.weight" in said
    assert "blocks.0.ffn.0.weight (3, 3) instead of (96, 48)" in said
    assert torch.equal(output(model), before)


def test_a_pickle_that_runs_code_is_refused(tmp_path: Path) -> None:
    torch.save({"generator": Path("/etc/passwd")}, tmp_path / "bad.pt")
    with pytest.raises(CheckpointError, match=r"bad\.pt cannot be read: [Ww]eights.only"):
        read(tmp_path / "bad.pt")
    with pytest.raises(CheckpointError, match="no checkpoint"):
        read(tmp_path / "none.safetensors")


@pytest.mark.parametrize("name", ["broken.pt", "broken.safetensors"])
@pytest.mark.parametrize("content", [b"", b"PK\x03\x04" + b"x" * 100, b"\xff" * 64])
def test_a_file_that_is_broken_is_refused_by_name(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CheckpointError, match=f"{name} cannot be read"):
        read(tmp_path / name)


def test_two_tensors_of_one_name_are_refused() -> None:
    weights = dict(original().state_dict())
    weights["model.head.modulation"] = weights["head.modulation"]
    with pytest.raises(CheckpointError, match="the same name"):
        load(Transformer(TINY), weights, dtype=torch.float32, device=CPU)


def lora_folder(
    folder: Path, alpha: float, names: tuple[str, ...] = ("blocks.0.self_attn.q", "blocks.1.ffn.2")
) -> Path:
    folder.mkdir()
    weights = original().state_dict()
    source = torch.Generator().manual_seed(8)
    tensors: dict[str, Tensor] = {}
    for name in names:
        out, into = weights[f"{name}.weight"].shape
        tensors[f"base_model.model.{name}.lora_A.weight"] = torch.randn(4, into, generator=source)
        tensors[f"base_model.model.{name}.lora_B.weight"] = torch.randn(out, 4, generator=source)
    save_file(tensors, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text(json.dumps({"lora_alpha": alpha, "r": 4}))
    return folder


def test_a_lora_is_what_peft_says_it_is(tmp_path: Path) -> None:
    lora = read_lora(lora_folder(tmp_path / "a", alpha=8))
    assert set(lora.scales.values()) == {2.0}
    assert lora.size_bytes == 4 * 4 * (48 + 48 + 96 + 48)
    model = original()
    merge(model, lora, 0.5)
    down, up = lora.pairs["blocks.0.self_attn.q.weight"]
    expected = original().blocks[0].self_attn.q.weight + 0.5 * 2.0 * up @ down
    assert torch.allclose(model.blocks[0].self_attn.q.weight, expected, atol=1e-5)
    assert not torch.allclose(output(model), output(original()))


def test_a_lora_in_longlives_own_file_is_the_same(tmp_path: Path) -> None:
    folder = lora_folder(tmp_path / "a", alpha=4)
    torch.save(
        {"generator_lora": load_file_of(folder / "adapter_model.safetensors"), "step": 3000}, tmp_path / "lora.pt"
    )
    found, same = read_lora(tmp_path / "lora.pt"), read_lora(folder)
    assert found.scales == same.scales == dict.fromkeys(same.pairs, 1.0)
    assert found.pairs.keys() == same.pairs.keys()
    for name, (down, up) in found.pairs.items():
        assert torch.equal(up @ down, same.pairs[name][1] @ same.pairs[name][0])


def test_two_loras_add_up_and_one_can_be_taken_out(tmp_path: Path) -> None:
    first = read_lora(lora_folder(tmp_path / "a", alpha=4))
    second = read_lora(lora_folder(tmp_path / "b", alpha=1, names=("blocks.1.cross_attn.o",)))
    both, alone = original(), original()
    merge(both, first, 0.7)
    merge(both, second, 0.3)
    merge(both, first, -0.7)
    merge(alone, second, 0.3)
    assert torch.allclose(output(both), output(alone), atol=1e-4)


def test_an_adapter_for_another_model_is_refused(tmp_path: Path) -> None:
    lora = read_lora(lora_folder(tmp_path / "a", alpha=4))
    with pytest.raises(CheckpointError, match=r"blocks\.0\.self_attn\.q\.weight"):
        merge(torch.nn.Linear(2, 2), lora, 1.0)


def test_an_adapter_with_a_nan_or_whole_numbers_is_refused_by_tensor_and_file(tmp_path: Path) -> None:
    file = lora_folder(tmp_path / "a", alpha=4) / "adapter_model.safetensors"
    good = load_file_of(file)
    name = "base_model.model.blocks.1.ffn.2.lora_B.weight"
    save_file({**good, name: good[name] * float("nan")}, file)
    with pytest.raises(CheckpointError, match=r"a: NaN or infinity in: blocks\.1\.ffn\.2\.lora_B\.weight$"):
        finite_lora(tmp_path / "a")
    save_file({**good, name: good[name].to(torch.int64)}, file)
    with pytest.raises(
        CheckpointError, match=r"adapter_model\.safetensors: no floating point: .*lora_B\.weight is int64"
    ):
        read_lora(tmp_path / "a")


def test_ranks_share_the_reading_evenly() -> None:
    sizes = {f"t{i}": 100 + 13 * i for i in range(40)}
    shards = [shard_of(sizes, Share(rank=rank, ranks=4)) for rank in range(4)]
    assert sorted(name for shard in shards for name in shard) == sorted(sizes)
    loads = [sum(sizes[name] for name in shard) for shard in shards]
    assert max(loads) - min(loads) < 0.05 * max(loads)
