"""`python -m gpu_consumers.engines.describe` computes the tables of docs/engines.md anew, between its `<!-- name -->` lines."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch

from gpu_consumers.engines.causal_dit.ledger import predict
from gpu_consumers.engines.causal_dit.models import MODELS
from gpu_consumers.engines.causal_dit.planning import TakePlan, plan

PAGE = Path(__file__).parent.parent.parent / "docs" / "engines.md"
SIZES = ((480, 272), (640, 368), (832, 480), (1280, 720), (1920, 1088))
RATES = (16, 24)
SECONDS = (8, 120)
_CONFIG = "self-forcing-1.3b"
_CARDS = (24, 80)
_MEMORY = "| size | transformer | keys, values | of the prompt | decoder | its memory | activations | all, GB |\n"
_EXTRAS = "| | GB |\n"
_RANK = 32
_ADAPTED = (*(f"{part}_attn.{name}" for part in ("self", "cross") for name in "qkvo"), "ffn.0", "ffn.2")
_TAKES = "| size | fps | seconds | frames | latents | segments | takes at once, 24 GB | 80 GB |\n"


def with_tables(text: str) -> str:
    """The page with its tables computed. Takes seconds per size."""
    memory = "".join(memory_row(size) for size in SIZES)
    takes = "".join(row for size in SIZES for row in take_rows(size))
    text = _replaced(_replaced(text, "memory", _table(_MEMORY, memory)), "takes", _table(_TAKES, takes))
    return _replaced(text, "extras", _table(_EXTRAS, extras_rows()))


def memory_row(size: tuple[int, int]) -> str:
    """What a size needs on the card, by part, in GB."""
    memory = _planned(size, 1, 1, _CARDS[0]).memory
    cache = (memory.kv_cache, memory.cross_kv)
    decoder = (memory.vae_weights, memory.vae_cache)
    parts = (memory.weights, *cache, *decoder, memory.activations, memory.total)
    return _row(_name(size), *(f"{part / 1e9:.2f}" for part in parts))


def extras_rows() -> str:
    """What a job that adds all there is needs on top, at 832x480; the adapter is of rank 32 on all layers of all blocks."""
    config = MODELS[_CONFIG]
    names = (f"blocks.{block}.{name}.weight" for block in range(config.dit.layers) for name in _ADAPTED)
    adapter = tuple((name, _RANK) for name in names)
    dit = replace(config.dit, control_layers=config.control_layers)
    asked = replace(config, dit=dit, adapters=(adapter,), previewed=True)
    memory = predict(asked, 832, 480, torch.bfloat16)
    rows = {
        f"`lora`: one adapter of rank {_RANK}, for each job that has it": memory.lora,
        "`control`: the branch, once": memory.control,
        "its keys and values and its encoder's memory, for each job": memory.control_cache,
        "`decoder=preview`: the preview decoder, once": memory.preview,
        "its memory, for each job, in the place of the full decoder's": memory.vae_cache,
        "activations with all of them": memory.activations,
    }
    return "".join(_row(name, f"{size / 1e9:.2f}") for name, size in rows.items())


def take_rows(size: tuple[int, int]) -> Iterator[str]:
    """Takes of this size, at each rate and length."""
    for rate in RATES:
        for seconds in SECONDS:
            first, second = (_planned(size, rate, seconds, card) for card in _CARDS)
            counts = (f"{count:,}" for count in (first.frames, first.latents, first.segments))
            yield _row(_name(size), str(rate), str(seconds), *counts, str(first.jobs or "-"), str(second.jobs or "-"))


def _planned(size: tuple[int, int], rate: int, seconds: int, card: int) -> TakePlan:
    return plan(MODELS[_CONFIG], *size, rate * seconds, card << 30)


def _name(size: tuple[int, int]) -> str:
    return f"{size[0]}x{size[1]}"


def _table(head: str, rows: str) -> str:
    return head + re.sub(r"[^|\n]+", "---", head) + rows


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |\n"


def _replaced(text: str, name: str, table: str) -> str:
    before, start, rest = text.partition(f"<!-- {name} -->\n")
    _, end, after = rest.partition("<!-- end -->\n")
    return before + start + table + end + after


def main() -> None:
    """Write the page."""
    PAGE.write_text(with_tables(PAGE.read_text()))


if __name__ == "__main__":
    main()
