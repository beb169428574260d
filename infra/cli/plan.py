"""`longtake plan`: what a take of the native engine needs, before anything is loaded."""

import math
import os
import re
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated

import typer

from gpu_consumers.engines.causal_options import causal_options
from infra.cli.errors import CliError, Exit
from infra.cli.output import console, print_json, say, table
from schemas.errors import BadInputError

if TYPE_CHECKING:
    from gpu_consumers.engines.causal_dit.models import ModelConfig
    from gpu_consumers.engines.causal_dit.planning import TakePlan

EXAMPLES = """[bold]Examples[/bold]

  longtake plan --size 832x480 --fps 16 --duration 120

  longtake plan --size 1280x720 --duration 60 --gpu 80GB --json

  longtake plan --option control=poses.mp4 --option lora=styles/ink:0.8
"""
_SIZE = re.compile(r"(\d{1,5})x(\d{1,5})")
_GPU = re.compile(r"(\d{1,6}(?:\.\d{1,3})?) ?(?:GB|GiB|G)?", re.IGNORECASE)
_SIDE = 16
_PARTS = {
    "weights": "transformer",
    "lora": "adapters",
    "control": "control branch",
    "kv_cache": "keys and values",
    "cross_kv": "keys and values of the prompt",
    "control_cache": "control's keys, values, encoder",
    "vae_weights": "decoder",
    "preview": "preview decoder",
    "vae_cache": "decoder's memory",
    "activations": "activations",
}


def plan(
    size: Annotated[str, typer.Option(help="Width x height, multiples of 16.")] = "832x480",
    fps: Annotated[float, typer.Option(min=1, max=120, help="Frames per second.")] = 16.0,
    duration: Annotated[float, typer.Option(min=0.1, max=3600, help="Seconds.")] = 120.0,
    config: Annotated[str, typer.Option(help="Of the causal_dit engine.")] = "self-forcing-1.3b",
    gpu: Annotated[str, typer.Option(help="The card's memory; GB as on its box, 1024^3.")] = "24GB",
    option: Annotated[list[str] | None, typer.Option(help="key=value of the engine, as for submit; repeat.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Say how many frames, latents and segments a take has, what memory it needs, and what to change. Exit code 1: it does not fit."""
    width, height = _size(size)
    match = _GPU.fullmatch(gpu)
    if not match:
        raise CliError(Exit.USAGE, f"--gpu is written 24GB, at most 6 digits and 3 behind the point, not {gpu!r:.40}")
    for name, value in (("--fps", fps), ("--duration", duration)):
        if not math.isfinite(value):
            raise CliError(Exit.USAGE, f"{name} is a number, not {value}")
    asked, planning = _asked({"config": config, **_options(option or [])}), _engine("planning")
    card = round(float(match[1]) * (1 << 30))
    found = planning.plan(asked, width, height, max(1, round(duration * fps)), card)
    if as_json:
        print_json(found)
    else:
        _print(found, f"{fps:g} fps, {duration:g} s, {config}", match[1])
    if not found.jobs:
        raise CliError(Exit.FAILED, f"{found.total_bytes / 1e9:.1f} GB do not fit on a card of {match[1]} GB")


def _size(text: str) -> tuple[int, int]:
    match = _SIZE.fullmatch(text)
    if not match:
        raise CliError(Exit.USAGE, f"--size is written 832x480, not {text!r}")
    width, height = int(match[1]), int(match[2])
    up = tuple(max(1, -(-side // _SIDE)) * _SIDE for side in (width, height))
    if up != (width, height):
        raise CliError(Exit.USAGE, f"--size: both sides are multiples of {_SIDE}; {up[0]}x{up[1]} is")
    return width, height


def _options(given: list[str]) -> dict[str, str]:
    pairs = [option.partition("=") for option in given]
    for key, equals, value in pairs:
        if not key or not equals:
            raise CliError(Exit.USAGE, f"--option is written key=value, not {key + equals + value!r}")
    return {key: value for key, _, value in pairs}


def _asked(options: dict[str, str]) -> "ModelConfig":
    """The configuration with what a job would add to it: adapters are measured in their files."""
    extras, checkpoint = _engine("extras"), _engine("checkpoint")
    folder = Path(os.environ.get("LONGTAKE_MODELS", "models"))
    try:
        return extras.asked_config(causal_options(options), folder)
    except (BadInputError, checkpoint.CheckpointError) as error:
        raise CliError(Exit.USAGE, str(error)) from error


def _engine(module: str) -> ModuleType:
    try:
        return import_module(f"gpu_consumers.engines.causal_dit.{module}")
    except ModuleNotFoundError as error:
        raise CliError(Exit.FAILED, f"plan needs {error.name}: pip install 'longtake[gpu]'") from error


def _print(found: "TakePlan", wish: str, card: str) -> None:
    say(f"{found.width}x{found.height}, {wish}")
    say(f"{found.frames:,} frames, {found.latents:,} latents, {found.segments:,} segments")
    sizes = [(name, getattr(found.memory, part) / 1e9) for part, name in _PARTS.items()]
    rows = [(name, size) for name, size in sizes if size]
    console().print(table("\nOn the card", ("part", "GB"), [*rows, ("all", found.total_bytes / 1e9)]))
    if found.jobs:
        say(f"\nfits on a card of {card} GB: {found.jobs} job{'' if found.jobs == 1 else 's'} at once")
        return
    changes = [(r.change, r.total_bytes / 1e9, "yes" if r.fits else "no") for r in found.remedies]
    console().print(table("\nWhat to change, each on top of those before; a size alone", ("", "GB", "fits"), changes))
