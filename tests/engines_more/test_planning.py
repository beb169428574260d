"""Plans of takes: the arithmetic of frames and latents, and changes that make a take fit."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from gpu_consumers.engines.causal_dit.grid import frames_of
from gpu_consumers.engines.causal_dit.ledger import RESERVE
from gpu_consumers.engines.causal_dit.models import MODELS
from gpu_consumers.engines.causal_dit.planning import TakePlan, kv_bytes, plan
from gpu_consumers.engines.causal_dit.storage import Precision
from infra.cli.errors import CliError, Exit
from infra.cli.plan import plan as command
from schemas.engines import ENGINES
from schemas.records import Transition
from streams.timeline import cut

TINY = replace(MODELS["tiny"], dit=replace(MODELS["tiny"].dit, layers=8))
"""Layers enough that keys and values weigh something."""
SIZE = (480, 832)


@pytest.fixture(scope="module")
def need() -> int:
    """Bytes of the tiny model at SIZE."""
    return planned(1, 1 << 50).total_bytes


def card(total: int) -> int:
    """The smallest card on which this much fits."""
    return round(total / (1 - RESERVE)) + 100


def planned(frames: int, card_bytes: int) -> TakePlan:
    return plan(TINY, *SIZE, frames, card_bytes)


def test_two_minutes_at_sixteen_frames_are_483_latents(need: int) -> None:
    found = planned(1920, card(need))
    assert (found.frames, found.latents, found.segments) == (1920, 483, 41)
    assert frames_of(found.latents) >= 1920 > frames_of(found.latents - 3)


@pytest.mark.parametrize("frames", [1, 9, 45, 46, 57, 93, 94, 141, 1920])
def test_the_segments_are_those_that_the_director_cuts(frames: int) -> None:
    cut_by_director = cut((0, frames), (Transition.CUT,), ENGINES["causal_dit"])
    assert planned(frames, 1 << 50).segments == len(cut_by_director)


def test_what_fits_needs_no_change(need: int) -> None:
    found = planned(100, card(need))
    assert (found.jobs, found.remedies, found.total_bytes) == (1, (), need)


def test_what_does_not_fit_is_offloaded_first_because_that_changes_no_bit(need: int) -> None:
    found = planned(100, card(need) - 1000)
    assert found.jobs == 0
    (remedy,) = found.remedies
    assert remedy.change.startswith("--option offload=3:")
    assert remedy.fits
    full = kv_bytes(TINY, SIZE, Precision.FULL)
    assert remedy.total_bytes == need - full + round(full * 6 / 8)


def test_changes_add_up_until_it_fits(need: int) -> None:
    by_offload = planned(100, card(need) - 1000).remedies[0].total_bytes
    found = planned(100, card(by_offload) - 1000)
    assert [remedy.fits for remedy in found.remedies] == [*[False] * (len(found.remedies) - 1), True]
    totals = [remedy.total_bytes for remedy in found.remedies]
    assert totals == sorted(totals, reverse=True)
    assert "int8" in found.remedies[1].change


def test_at_last_a_smaller_picture_is_proposed_the_same_way_round(need: int) -> None:
    hopeless = planned(100, need // 50)
    assert hopeless.jobs == 0
    assert not any(remedy.fits for remedy in hopeless.remedies)
    assert [remedy.change for remedy in hopeless.remedies[-2:]] == ["368x640", "272x480"]
    smallest = hopeless.remedies[-1].total_bytes
    found = planned(100, card(smallest)).remedies[-1]
    assert (found.change, found.fits) == ("272x480", True)


def test_int8_keys_and_values_are_half_plus_their_scales() -> None:
    full, int8, fp8 = (kv_bytes(TINY, SIZE, precision) for precision in Precision)
    assert (full / 2 + full / TINY.dit.head_dim * 2, int8) == (int8, fp8)


def test_the_command_prints_the_plan_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    command(config="tiny", size="64x32", duration=10, as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert (found["frames"], found["latents"]) == (160, 42)
    assert found["total_bytes"] == sum(found["memory"].values())


def test_what_a_job_adds_is_in_the_plan(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGTAKE_MODELS", str(tmp_path))
    pair = {
        "blocks.0.self_attn.q.lora_A.weight": torch.ones(4, 48),
        "blocks.0.self_attn.q.lora_B.weight": torch.ones(48, 4),
    }
    save_file(pair, tmp_path / "ink.safetensors")
    command(config="tiny", size="64x32", duration=10, option=["lora=ink.safetensors", "decoder=preview"], as_json=True)
    memory = json.loads(capsys.readouterr().out)["memory"]
    assert memory["lora"] == 2 * (4 * 48 + 48 * 4)
    assert memory["preview"] > 0
    assert memory["control"] == memory["control_cache"] == 0


@pytest.mark.parametrize(
    ("option", "said"), [("lora", "key=value"), ("lora=none", "none: not there"), ("lora=../x", "without '..'")]
)
def test_an_addition_that_cannot_be_is_one_line(option: str, said: str) -> None:
    with pytest.raises(CliError, match=said) as caught:
        command(config="tiny", size="64x32", option=[option])
    assert caught.value.code is Exit.USAGE


def test_the_command_says_what_to_change_and_fails(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CliError, match=r"do not fit on a card of 0\.001 GB") as caught:
        command(config="tiny", size="64x32", duration=10, gpu="0.001GB")
    assert caught.value.code is Exit.FAILED
    assert "--option offload=3: keys and values" in capsys.readouterr().out


def test_without_torch_the_command_says_what_to_install() -> None:
    code = "import sys; sys.modules['torch'] = None; sys.argv = ['longtake', 'plan']; from infra.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "longtake: plan needs torch: pip install 'longtake[gpu]'\n"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("size", "1920x1080", "--size: both sides are multiples of 16"),
        ("size", "big", "--size is written"),
        ("gpu", "much", "--gpu is written"),
        ("gpu", "9" * 400, "--gpu is written 24GB, at most 6 digits"),
        ("fps", float("nan"), "--fps is a number"),
        ("duration", float("nan"), "--duration is a number"),
        ("config", "huge", "no config 'huge'"),
    ],
)
def test_a_wrong_wish_is_one_line_that_says_which(name: str, value: Any, said: str) -> None:
    with pytest.raises(CliError, match=said) as caught:
        command(**{name: value})
    assert caught.value.code is Exit.USAGE
    assert len(str(caught.value)) < 200
    assert "\n" not in str(caught.value)
