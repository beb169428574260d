"""The options of the engines that make a clip at a time, `diffusers` and `veo`. Read without their libraries.

| engine | option | value | |
|---|---|---|---|
| `diffusers` | `model` | folder | the pipeline, in diffusers' layout; of the folder of models (`LONGTAKE_MODELS`), like the others |
| | `opening` | folder | a text-to-video pipeline for the first segment of each take, where `model` continues pictures |
| | `image` | file | the picture that the first take begins with |
| | `steps` | 1 .. 500 | denoising steps (the pipeline's own number) |
| | `guidance` | 0 .. 50 | guidance scale (the pipeline's own) |
| `veo` | `model` | name | of the API (`veo-3.1-generate-preview`) |
| | `people` | see the API | its `personGeneration` (its own choice) |
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from schemas.errors import BadInputError

_PATH = re.compile(r"[\w.-]+(/[\w.-]+)*")
_NAME = re.compile(r"[\w.-]+")
_NUMBER = re.compile(r"\d{1,4}(\.\d{1,6})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffusersOptions:
    """None: not said. Paths are relative, without a way out of the folder of models."""

    model: str
    opening: str | None = None
    image: str | None = None
    steps: int | None = None
    guidance: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VeoOptions:
    """Passed on to the API."""

    model: str = "veo-3.1-generate-preview"
    people: str | None = None


def diffusers_options(options: Mapping[str, str]) -> DiffusersOptions:
    """Raises: BadInputError naming the option and the rule it breaks."""
    _only("diffusers", options, {"model", "opening", "image", "steps", "guidance"})
    if "model" not in options:
        raise _wrong("model", "required", "the folder of a diffusers pipeline, under the folder of models")
    for name in ("model", "opening", "image"):
        if name in options and (not _PATH.fullmatch(options[name]) or ".." in options[name].split("/")):
            raise _wrong(name, "path", "a relative path under the folder of models, without '..'")
    return DiffusersOptions(
        model=options["model"],
        opening=options.get("opening"),
        image=options.get("image"),
        steps=round(_number("steps", options["steps"], 1, 500)) if "steps" in options else None,
        guidance=_number("guidance", options["guidance"], 0, 50) if "guidance" in options else None,
    )


def veo_options(options: Mapping[str, str]) -> VeoOptions:
    """Raises: BadInputError naming the option and the rule it breaks."""
    _only("veo", options, {"model", "people"})
    for name, value in options.items():
        if not _NAME.fullmatch(value):
            raise _wrong(name, "characters", "letters, digits, '.', '_' and '-'")
    return VeoOptions(**options)


def _only(engine: str, options: Mapping[str, str], known: set[str]) -> None:
    for name in options:
        if name not in known:
            raise _wrong(name, "unknown_option", f"the {engine} engine knows {', '.join(sorted(known))}")


def _number(name: str, text: str, low: float, high: float) -> float:
    if not _NUMBER.fullmatch(text):
        raise _wrong(name, "type", f"a number, not {text[:40]!r}")
    if not low <= float(text) <= high:
        raise _wrong(name, "range", f"between {low} and {high}")
    return float(text)


def _wrong(name: str, rule: str, message: str) -> BadInputError:
    return BadInputError(field=f"engine_options.{name}", rule=rule, message=message)
