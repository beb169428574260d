"""What a release changes, as it is said on the command line. Pure."""

import math
from collections.abc import Iterable

from gpu_consumers.engines.options import check_options
from schemas.engines import ENGINES
from schemas.errors import BadInputError

PRESETS = ("ultrafast", "superfast", "veryfast", "faster", "fast", "medium", "slow", "slower", "veryslow")
MAX_CRF = 51.0


def changes(engine: str, said: Iterable[str]) -> tuple[str, dict[str, str], float, str]:
    """New engine, options, CRF and preset of `KEY=VALUE` each. Raises: BadInputError; ValueError for what is no change at all."""
    new_engine, options, crf, preset = "", dict[str, str](), 0.0, ""
    for each in said:
        key, equals, value = each.partition("=")
        if not equals or not value:
            raise ValueError(f"{each!r:.80} is not KEY=VALUE")
        if key == "engine" and value in ENGINES:
            new_engine = value
        elif key.startswith("options."):
            options[key.removeprefix("options.")] = value
        elif key == "crf" and _is_crf(value):
            crf = float(value)
        elif key == "preset" and value in PRESETS:
            preset = value
        else:
            raise BadInputError(field=key[:80], rule="change", message=f"cannot be {value!r:.80}")
    if not (new_engine or options or crf or preset):
        raise ValueError("a release changes something: --set KEY=VALUE")
    try:
        check_options(new_engine or engine, options)
    except BadInputError as error:
        if error.rule != "required":  # that the jobs bring themselves
            raise
    return new_engine, options, crf, preset


def _is_crf(value: str) -> bool:
    try:
        crf = float(value)
    except ValueError:
        return False
    return math.isfinite(crf) and 0 < crf <= MAX_CRF
