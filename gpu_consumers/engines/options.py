"""Are engine options right? Asked before a job is accepted, so without any engine's libraries."""

from collections.abc import Mapping

from gpu_consumers.engines.animatic.options import parse_options


def check_options(engine: str, options: Mapping[str, str]) -> None:
    """Raises: BadInputError naming the option and the rule it breaks. An engine that is not known is not checked here."""
    if engine == "animatic":
        parse_options(options)
