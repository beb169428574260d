"""Are engine options right? Asked before a job is accepted, so without any engine's libraries."""

from collections.abc import Callable, Mapping

from gpu_consumers.engines.animatic.options import parse_options
from gpu_consumers.engines.causal_options import causal_options, distilled
from gpu_consumers.engines.clip_options import diffusers_options, veo_options

_PARSERS: Mapping[str, Callable[[Mapping[str, str]], object]] = {
    "animatic": parse_options,
    "causal_dit": causal_options,
    "diffusers": diffusers_options,
    "veo": veo_options,
}


def check_options(engine: str, options: Mapping[str, str]) -> None:
    """Raises: BadInputError naming the option and the rule it breaks. The options of other packages' engines are not checked here."""
    if engine in _PARSERS:
        _PARSERS[engine](options)


def negative_unused(engine: str, options: Mapping[str, str]) -> str | None:
    """Why the engine makes nothing of negative constraints; None: it does, or nobody here knows."""
    model = distilled(options) if engine == "causal_dit" else None
    return f"{model} is distilled and makes pictures without guidance" if model else None
