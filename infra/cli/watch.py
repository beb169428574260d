"""`longtake watch`: longtake.jobs.v1 and longtake.progress.v1 of one job, live, until it has ended."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated

import typer
from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from infra.bus.reader import Reader, event_of
from infra.cli.errors import CliError, Exit
from infra.cli.output import console, duration, now_us, say
from infra.cli.reach import reach
from infra.cli.waiting import Waiting
from infra.settings import Settings
from schemas.codec import to_json
from schemas.records import JobChanged, JobProgress, PromptRefused, Stage
from schemas.topics import Event

FINAL = (Stage.FINISHED, Stage.FAILED, Stage.CANCELLED)
_TURN_S = 0.1

EXAMPLES = """[bold]Examples[/bold]

  longtake watch job-5f2c91aa

  longtake watch job-5f2c91aa --json | jq -r .stage
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Whom to believe and how long to wait for the first word. `content_hash` empty: any job of this id."""

    content_hash: str = ""
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What is known of the job now. `event` is what was just said, None if only time went by."""

    job: JobChanged | None = None
    progress: JobProgress | None = None
    refused: PromptRefused | None = None
    event: Event | None = None
    ahead: int = 0
    """Jobs of its tenant that wait before it, in its partition."""

    @property
    def ended(self) -> bool:
        """Nothing more will come."""
        return self.refused is not None or (self.job is not None and self.job.stage in FINAL)


def watch(
    ctx: typer.Context,
    job_id: Annotated[str, typer.Argument(metavar="JOB")],
    as_json: Annotated[bool, typer.Option("--json", help="One event a line.")] = False,
    patience: Annotated[float, typer.Option(min=0, help="Seconds to wait for a job that is not known yet.")] = 10.0,
) -> None:
    """Follow a job until it has finished, failed or been cancelled."""
    watch_job(reach(ctx, "kafka"), job_id, Patience(seconds=patience), as_json=as_json)


def watch_job(settings: Settings, job_id: str, patience: Patience, *, as_json: bool = False) -> None:
    """Show the job until it has ended. Raises: CliError if it did not finish."""
    sights = sights_of(settings, job_id, patience)
    if as_json:
        last = _print_events(sights)
    elif console().is_terminal:
        last = _show_live(sights, job_id)
    else:
        last = _print_changes(sights, job_id)
    _judge(last, job_id)


def sights_of(settings: Settings, job_id: str, patience: Patience) -> Iterator[Sight]:
    """The job as it changes, and ten times a second. Raises: CliError if nobody says a word about it for `patience`."""
    deadline = time.monotonic() + patience.seconds
    sight = Sight()
    waiting = Waiting()
    said = Reader.from_beginning(settings, [JobChanged.topic, PromptRefused.topic])
    moving = Reader.from_now(settings, [JobProgress.topic])
    with said, moving:
        for message in said.to_end():  # what is said later may change an end: a retry
            waiting.saw(message)
            if message.job_id == job_id:
                sight = _seen(sight, event_of(message), patience.content_hash)
        sight = replace(sight, ahead=waiting.ahead_of(job_id))
        yield sight
        while not sight.ended:
            for reader in (said, moving):
                while (message := reader.poll(_TURN_S / 2)) is not None:
                    waiting.saw(message)
                    if message.job_id == job_id:
                        sight = _seen(sight, event_of(message), patience.content_hash)
                        sight = replace(sight, ahead=waiting.ahead_of(job_id))
                        yield sight
                        if sight.ended:
                            return
            sight = replace(sight, event=None, ahead=waiting.ahead_of(job_id))
            yield sight
            if sight.job is None and time.monotonic() > deadline:
                raise CliError(Exit.NOT_FOUND, f"nobody knows a job {job_id!r}: 'longtake jobs' lists all")


def line_of(sight: Sight, job_id: str) -> Text:
    """The job in one line of text."""
    job = sight.job
    if job is None:
        return Text(f"{job_id}  waiting for the director")
    colour = {Stage.FINISHED: "green", Stage.FAILED: "red", Stage.CANCELLED: "yellow"}.get(job.stage, "cyan")
    if job.stage is Stage.QUEUED:
        return Text.assemble(
            (job_id, "bold"), "  ", (job.stage.value, colour), f"  {sight.ahead} of {job.tenant} before it"
        )
    text = Text.assemble(
        (job_id, "bold"),
        "  ",
        (job.stage.value, colour),
        f"  segments {job.segments_generated}/{job.segments}  pieces {job.pieces_checked}/{job.segments}",
    )
    if job.attempts:
        text.append(f"  again {job.attempts}", "yellow")
    if sight.progress and job.stage is Stage.GENERATING:
        text.append(f"  {sight.progress.generate_fps:.0f} fps")
    if not sight.ended:
        text.append(f"  left {duration(_left_s(sight))}")
    return text


def done_share(job: JobChanged) -> float:
    """From 0 to 1: generated and checked count the same, the rest is short."""
    if job.stage is Stage.FINISHED:
        return 1.0
    return 0.98 * (job.segments_generated + job.pieces_checked) / max(2 * job.segments, 1)


def _seen(sight: Sight, event: Event, content_hash: str) -> Sight:
    match event:
        case JobChanged() if content_hash in ("", event.content_hash):
            return replace(sight, job=event, refused=None, event=event)
        case JobProgress():
            return replace(sight, progress=event, event=event)
        case PromptRefused() if event.content_hash == content_hash or (not content_hash and sight.job is None):
            return replace(sight, refused=event, event=event)
        case _:
            return sight


def _left_s(sight: Sight) -> float | None:
    progress = sight.progress
    if progress is None or progress.remaining_s is None:
        return None
    return max(0.0, progress.remaining_s - (now_us() - progress.updated_us) / 1e6)


def _show_live(sights: Iterator[Sight], job_id: str) -> Sight:
    sight = Sight()
    with Live(console=console(), auto_refresh=False, transient=False) as live:
        for sight in sights:
            share = done_share(sight.job) if sight.job else 0.0
            row = Table.grid(padding=(0, 1))
            row.add_row(ProgressBar(total=1.0, completed=share, width=40), Text(f"{share:4.0%}"))
            live.update(Group(line_of(sight, job_id), row), refresh=True)
    return sight


def _print_changes(sights: Iterator[Sight], job_id: str) -> Sight:
    sight, last = Sight(), None
    for sight in sights:
        job = sight.job
        state = job and (job.stage, job.segments_generated, job.pieces_checked, job.attempts, sight.ahead)
        if state and state != last:
            say(line_of(sight, job_id).plain)
        last = state
    return sight


def _print_events(sights: Iterator[Sight]) -> Sight:
    sight = Sight()
    for sight in sights:
        if sight.event:
            say(to_json(sight.event).decode())
    return sight


def _judge(sight: Sight, job_id: str) -> None:
    if sight.refused:
        refused = sight.refused
        raise CliError(Exit.REFUSED, f"{job_id} was refused: {refused.field}: {refused.message} [{refused.rule}]")
    if sight.job and sight.job.stage is not Stage.FINISHED:
        raise CliError(Exit.FAILED, f"{job_id} {sight.job.stage.value}: {sight.job.reason}")
