"""The options of `causal_dit`: the model, how it runs (causal_running.py), and what a job has on top. Read without its libraries.

| option | value | |
|---|---|---|
| `config` | name | the model and its checkpoint (`self-forcing-1.3b`) |
| `lora` | `FILE:WEIGHT,...` | adapters, each with its weight (1 if not said): safetensors, or a folder in peft's layout |
| `control` | file | a video that steers the structure of the picture (poses, depth, edges), through VACE's control branch |
| `control_weight` | 0 .. 2 | how strongly (1) |
| `decoder` | `full`, `preview` | `preview`: the tiny decoder, quick and coarse (`full`) |

Files are given relative to the folder of models (`LONGTAKE_MODELS`), without a way out of it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from gpu_consumers.engines.causal_running import RUNNING, Running, running_options
from schemas.errors import BadInputError

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_PATH = re.compile(r"[\w.-]+(/[\w.-]+)*")
_NUMBER = re.compile(r"-?\d(\.\d{1,6})?")
_DECODERS = ("full", "preview")
_MOST_LORAS = 8
_DEFAULT_CONFIG = "self-forcing-1.3b"
GUIDED = frozenset({"wan-1.3b"})
"""Models that are asked for the prompt and for the negative one; distilled ones are not, and make nothing of it."""
_KNOWN = ("config", "lora", "control", "control_weight", "decoder", *RUNNING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extras:
    """What a job has on top of its model. Paths are relative, without a way out of the folder of models."""

    loras: tuple[tuple[str, float], ...] = ()
    """Adapters with their weights: what each layer computes grows by their sum."""
    control: str | None = None
    control_weight: float = 1.0
    preview: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CausalOptions:
    """All that a job says to the engine."""

    config: str
    running: Running
    extras: Extras


def causal_options(options: Mapping[str, str]) -> CausalOptions:
    """Raises: BadInputError naming the option and the rule it breaks."""
    for name in options:
        if name not in _KNOWN:
            raise _wrong(name, "unknown_option", f"the causal_dit engine knows {', '.join(_KNOWN)}")
    config = options.get("config", _DEFAULT_CONFIG)
    if not _NAME.fullmatch(config):
        raise _wrong("config", "characters", "the name of a model: docs/engines.md lists them")
    return CausalOptions(config=config, running=running_options(options), extras=_extras(options))


def distilled(options: Mapping[str, str]) -> str | None:
    """The job's model, if it makes nothing of negative constraints."""
    config = options.get("config", _DEFAULT_CONFIG)
    return None if config in GUIDED else config


def _extras(options: Mapping[str, str]) -> Extras:
    if options.get("decoder", "full") not in _DECODERS:
        raise _wrong("decoder", "choice", f"one of {', '.join(_DECODERS)}")
    if "control_weight" in options and "control" not in options:
        raise _wrong("control_weight", "without", "only with a control video")
    return Extras(
        loras=_loras(options["lora"]) if "lora" in options else (),
        control=_path("control", options["control"]) if "control" in options else None,
        control_weight=_number("control_weight", options.get("control_weight", "1"), 0, 2),
        preview=options.get("decoder") == "preview",
    )


def _loras(text: str) -> tuple[tuple[str, float], ...]:
    parts = [part.partition(":") for part in text.split(",")]
    found = tuple(
        (_path("lora", name), _number("lora", weight if colon else "1", -4, 4)) for name, colon, weight in parts
    )
    if len(found) > _MOST_LORAS:
        raise _wrong("lora", "count", f"at most {_MOST_LORAS} adapters")
    if len(dict(found)) != len(found):
        raise _wrong("lora", "twice", "each adapter once")
    return found


def _path(name: str, text: str) -> str:
    if not _PATH.fullmatch(text) or ".." in text.split("/"):
        raise _wrong(name, "path", "a relative path under the folder of models, without '..'")
    return text


def _number(name: str, text: str, low: float, high: float) -> float:
    if not _NUMBER.fullmatch(text):
        raise _wrong(name, "type", f"a number, not {text[:40]!r}")
    if not low <= float(text) <= high:
        raise _wrong(name, "range", f"between {low} and {high}")
    return float(text)


def _wrong(name: str, rule: str, message: str) -> BadInputError:
    return BadInputError(field=f"engine_options.{name}", rule=rule, message=message)
