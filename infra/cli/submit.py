"""`longtake submit`: a wish onto longtake.prompts.v1, from text, a file, standard input or a storyboard."""

import re
import secrets
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from infra.bus.writer import publish
from infra.cli.errors import CliError, Exit
from infra.cli.output import now_us, print_json, say
from infra.cli.reach import reach
from infra.cli.waiting import waiting_before
from infra.cli.watch import Patience, watch_job
from schemas.codec import content_hash
from schemas.errors import BadInputError
from schemas.headers import trace_id, trace_root
from schemas.records import PromptSubmitted
from streams.prompts.storyboard import parse_storyboard

_SIZE = re.compile(r"(\d{1,5})x(\d{1,5})")
_MAX_CHARS = 1_000_000

EXAMPLES = """[bold]Examples[/bold]

  longtake submit "A lighthouse in a storm, slow push in, dusk" --duration 20 --follow

  longtake submit --storyboard harbour.yaml --size 1280x720

  cat prompt.txt | longtake submit --json
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """Options that replace what the text or storyboard says; None: not given."""

    duration_s: float | None
    size: str | None
    fps: float | None
    engine: str | None
    seed: int | None
    job_id: str | None
    negative: list[str]
    options: list[str]
    renditions: list[str]


def submit(  # the options are the parameters: typer reads them from here
    ctx: typer.Context,
    text: Annotated[str | None, typer.Argument(help="What is to be seen; '-' or nothing: standard input.")] = None,
    *,
    file: Annotated[Path | None, typer.Option(help="Read the text from this file.")] = None,
    storyboard: Annotated[Path | None, typer.Option(help="Shots in YAML or JSON.")] = None,
    duration: Annotated[float | None, typer.Option(help="Seconds.")] = None,
    size: Annotated[str | None, typer.Option(help="Width x height, for example 1280x720.")] = None,
    fps: Annotated[float | None, typer.Option(help="Frames per second; 23.976 means 24000/1001.")] = None,
    engine: Annotated[str | None, typer.Option(help="Engine to generate with.")] = None,
    config: Annotated[str | None, typer.Option(help="Model of the engine, short for --option config=NAME.")] = None,
    negative: Annotated[list[str] | None, typer.Option(help="What must not be seen (repeat).")] = None,
    seed: Annotated[int | None, typer.Option(help="Same prompt, other picture.")] = None,
    job_id: Annotated[str | None, typer.Option(help="Name the job: the same id runs once.")] = None,
    option: Annotated[list[str] | None, typer.Option(help="Engine option key=value (repeat).")] = None,
    rendition: Annotated[list[str] | None, typer.Option(help="Encode for this device, too (repeat).")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Watch until it has ended.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Submit a prompt or storyboard as a job."""
    overrides = Overrides(
        duration_s=duration,
        size=size,
        fps=fps,
        engine=engine,
        seed=seed,
        job_id=job_id,
        negative=negative or [],
        options=[*([] if config is None else [f"config={config}"]), *(option or [])],
        renditions=rendition or [],
    )
    prompt = _overridden(_wish(text, file, storyboard), overrides)
    digest = _hash(prompt)
    settings = reach(ctx, "kafka")
    traceparent = trace_root(secrets.token_hex(16))
    publish(settings, [prompt], traceparent)
    if as_json:
        print_json({"job_id": prompt.job_id, "content_hash": digest, "trace_id": trace_id(traceparent)})
    elif follow:
        say(f"submitted {prompt.job_id}")
    else:
        ahead = waiting_before(settings, prompt.job_id, prompt.tenant)
        queue = f", {ahead} jobs of {prompt.tenant} wait before it" if ahead else ""
        say(f"submitted {prompt.job_id}{queue}; see 'longtake watch {prompt.job_id}'")
    if follow:
        watch_job(settings, prompt.job_id, Patience(content_hash=digest, seconds=60), as_json=as_json)


def _wish(text: str | None, file: Path | None, storyboard: Path | None) -> PromptSubmitted:
    if sum(source is not None for source in (text, file, storyboard)) > 1:
        raise CliError(Exit.USAGE, "give one of: a text, --file, --storyboard")
    new_id = f"job-{secrets.token_hex(4)}"
    if storyboard:
        try:
            return parse_storyboard(_read(storyboard), new_id)
        except BadInputError as error:
            raise CliError(Exit.USAGE, f"{storyboard}: {error}") from error
    if text is None or text == "-":
        text = _read(file) if file else _stdin()
    if not text.strip():
        raise CliError(Exit.USAGE, "the prompt is empty: say what is to be seen")
    return PromptSubmitted(job_id=new_id, text=text.strip())


def _overridden(prompt: PromptSubmitted, overrides: Overrides) -> PromptSubmitted:
    given: dict[str, Any] = {
        name: value
        for name in ("duration_s", "fps", "engine", "seed", "job_id")
        if (value := getattr(overrides, name)) is not None
    }
    if overrides.size:
        match = _SIZE.fullmatch(overrides.size)
        if not match:
            raise CliError(Exit.USAGE, f"--size is written 1280x720, not {overrides.size!r}")
        given |= {"width": int(match[1]), "height": int(match[2])}
    options = dict(prompt.engine_options)
    for option in overrides.options:
        key, equals, value = option.partition("=")
        if not equals:
            raise CliError(Exit.USAGE, f"--option is written key=value, not {option!r}")
        options[key] = value
    given |= {
        "negative": (*prompt.negative, *overrides.negative),
        "renditions": (*prompt.renditions, *overrides.renditions),
    }
    return replace(prompt, **given, engine_options=options, submitted_us=now_us())


def _hash(prompt: PromptSubmitted) -> str:
    """What no record can hold never reaches the line, which would say what is wrong."""
    try:
        return content_hash(prompt)
    except (ValueError, OverflowError) as error:
        raise CliError(Exit.USAGE, f"the prompt cannot be written as a record: {error}") from error


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CliError(Exit.USAGE, f"{file} cannot be read: {error}") from error


def _stdin() -> str:
    if sys.stdin.isatty():
        raise CliError(Exit.USAGE, "no prompt: give a text, --file, --storyboard, or pipe one in")
    try:
        return sys.stdin.read(_MAX_CHARS)
    except UnicodeDecodeError as error:
        raise CliError(Exit.USAGE, f"standard input is not UTF-8: {error}") from error
