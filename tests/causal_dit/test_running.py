"""What a job says of how it runs: refused by field and rule at the prompt's edge, honoured by the engine, made smaller by a retry."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from gpu_consumers.engines.causal_dit import ahead
from gpu_consumers.engines.causal_dit.compiling import compiled
from gpu_consumers.engines.causal_dit.config import TINY, Kept, Precision, Window
from gpu_consumers.engines.causal_dit.engine import CausalDitEngine
from gpu_consumers.engines.causal_dit.kernels import FLASH_2, FLASH_3, SDPA, choice
from gpu_consumers.engines.causal_dit.memory import device_cache
from gpu_consumers.engines.causal_dit.models import MODELS, build
from gpu_consumers.engines.causal_dit.take import Take
from gpu_consumers.engines.causal_dit.transformer import Transformer
from gpu_consumers.engines.causal_options import GUIDED
from gpu_consumers.engines.causal_running import Compile, Running, offloaded, running_options, smaller
from gpu_consumers.engines.options import check_options
from gpu_consumers.warm import warm_request, warmed
from schemas.errors import BadInputError
from schemas.records import SegmentRequested
from tests.causal_dit.test_engine import request, shot


def test_what_is_said_is_what_runs() -> None:
    said = {"kv": "int8", "offload": "2", "window": "9", "compile": "on", "embedding": "near"}
    assert running_options(said) == Running(
        kept=Kept(precision=Precision.INT8, offload=2),
        window=Window(latents=9, sink=3),
        compile=Compile.ON,
        similarity=0.9,
    )
    assert running_options({"config": "tiny"}) == Running()
    assert running_options({"sink": "0"}).window == Window(latents=12, sink=0)


@pytest.mark.parametrize(
    ("options", "field", "rule"),
    [
        ({"kv": "int4"}, "kv", "choice"),
        ({"offload": "0"}, "offload", "range"),
        ({"offload": "many"}, "offload", "type"),
        ({"window": "24"}, "window", "range"),
        ({"window": "10"}, "window", "block"),
        ({"sink": "2"}, "sink", "block"),
        ({"window": "6", "sink": "6"}, "window", "sink"),
        ({"compile": "yes"}, "compile", "choice"),
        ({"embedding": "any"}, "embedding", "choice"),
        ({"similarity": "0.9"}, "similarity", "without"),
        ({"embedding": "near", "similarity": "0.1"}, "similarity", "range"),
        ({"speed": "9"}, "speed", "unknown_option"),
    ],
)
def test_what_cannot_be_is_refused_by_field_and_rule(options: dict[str, str], field: str, rule: str) -> None:
    with pytest.raises(BadInputError) as caught:
        check_options("causal_dit", options)
    assert (caught.value.field, caught.value.rule) == (f"engine_options.{field}", rule)


def test_a_retry_goes_from_offload_to_int8_to_a_small_window_and_no_further() -> None:
    options = offloaded({"config": "tiny"})
    assert options == {"config": "tiny", "offload": "3"}
    assert offloaded({"offload": "1"}) == {"offload": "1"}
    first = smaller(options)
    assert first == {**options, "kv": "int8"}
    second = smaller(first)
    assert second == {**first, "window": "9", "sink": "3"}
    assert smaller(second) is None
    check_options("causal_dit", second)


def made(**options: str) -> np.ndarray:
    wanted = replace(request(0), engine_options={"config": "tiny", **options})
    latents = [chunk for chunk in CausalDitEngine().restore(wanted, []).denoise(wanted) if len(chunk)]
    return np.concatenate(latents).astype(np.float64)


def test_offloading_changes_no_bit_and_each_other_choice_changes_some() -> None:
    plain = made()
    assert np.array_equal(made(offload="1"), plain)
    for options in ({"kv": "int8"}, {"kv": "fp8"}, {"window": "6", "sink": "0"}):
        other = made(**options)
        assert 0 < np.linalg.norm(other - plain) < 0.2 * np.linalg.norm(plain)


@torch.no_grad()
def test_compiled_blocks_share_the_weights_and_make_the_same_flow_with_several_sizes() -> None:
    torch.manual_seed(3)
    model = Transformer(TINY).double().eval()
    faster = compiled(model, Compile.ON, "eager")
    assert faster.blocks[0].ffn[0].weight is model.blocks[0].ffn[0].weight
    context = model.context(torch.randn(1, TINY.text_tokens, TINY.text_dim, dtype=torch.float64))
    for grid in ((2, 3), (3, 2)):
        x = torch.randn(1, 16, 3, 2 * grid[0], 2 * grid[1], dtype=torch.float64)
        flows = []
        for which in (model, faster):
            cache = device_cache(TINY, Window(), grid, torch.zeros(1, dtype=torch.float64))
            for _ in range(3):
                cache.begin(cache.latents)
                flow = which(x, torch.full((1,), 500.0), context, cache)
            flows.append(flow)
        assert torch.allclose(flows[0], flows[1], atol=1e-10)


def test_a_nearly_equal_prompt_lends_its_embedding_on_request_only_and_the_segment_says_so() -> None:
    first = "A red fox runs over the deep snow at dawn, slow push in."
    almost = "a red fox runs over the deep snow at dawn, slow push in"
    engine = CausalDitEngine()

    def asked(text: str, **options: str) -> SegmentRequested:
        near = replace(request(0), shots=(shot(0, 0, text),))
        return replace(near, engine_options={"config": "tiny", **options})

    lender = asked(first)
    latents, _ = run_with(engine, lender)
    exact, notes = run_with(engine, asked(almost))
    assert notes == {}
    assert not np.array_equal(exact, latents)
    engine = CausalDitEngine()
    run_with(engine, lender)
    lent, notes = run_with(engine, asked(almost, embedding="near"))
    assert notes == {"embedding of shot 0": first}
    assert np.array_equal(lent, latents)


def run_with(engine: CausalDitEngine, wanted: SegmentRequested) -> tuple[np.ndarray, dict[str, str]]:
    state = engine.restore(wanted, [])
    return np.concatenate(list(state.denoise(wanted))), state.notes


@pytest.mark.parametrize(
    ("capability", "there", "expected"),
    [
        (None, [FLASH_3, FLASH_2], SDPA),
        ((9, 0), [FLASH_3, FLASH_2], FLASH_3),
        ((9, 0), [FLASH_2], FLASH_2),
        ((8, 0), [FLASH_3, FLASH_2], FLASH_2),
        ((10, 0), [FLASH_3, FLASH_2], FLASH_2),
        ((7, 5), [FLASH_2], SDPA),
        ((9, 0), [], SDPA),
    ],
)
def test_attention_has_the_kernels_that_card_and_packages_allow(
    capability: tuple[int, int] | None, there: list[str], expected: str
) -> None:
    assert choice(capability, there) == expected


def test_a_long_take_keeps_what_it_may_need_and_no_more() -> None:
    model = build(MODELS["tiny"], Path("none"), torch.device("cpu"))
    take = Take(model, device_cache(TINY, Window(), (1, 2), torch.zeros(1)), (2, 4), seed=1)
    for number in range(25):
        take.remember(torch.full((1, 16, 3, 2, 4), float(number)))
    assert take.blocks == 25
    assert [int(block[0, 0, 0, 0, 0]) for block in take._sink] == [0]
    assert [int(block[0, 0, 0, 0, 0]) for block in take._recent] == list(range(11, 25))


def test_an_engine_is_warmed_by_a_block_of_the_wanted_size() -> None:
    said = warmed(CausalDitEngine(), warm_request("causal_dit 32x16 config=tiny kv=int8"))
    assert "warmed at 32x16: loaded in" in said
    assert "not warmed" in warmed(CausalDitEngine(), warm_request("causal_dit 32x16 config=wan-1.3b"))
    for text in ("causal_dit", "causal_dit 32 16", "painter 32x16", "causal_dit 32x16 kv=int4"):
        with pytest.raises(BadInputError):
            warm_request(text)


def test_the_models_that_heed_negatives_are_those_with_guidance() -> None:
    assert {name for name, config in MODELS.items() if config.schedule.guidance > 1} == GUIDED


def test_all_that_a_model_is_loaded_from_is_read_ahead() -> None:
    for name, config in MODELS.items():
        files = [config.transformer, *(file for file, _ in config.loras), config.decoder, config.text]
        assert list(ahead.FILES.get(name, ())) == [file for file in files if file]
