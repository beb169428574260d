"""`longtake release`: a new engine configuration or encoder preset for a share of the jobs, compared, widened or rolled back."""

import time
from typing import Annotated

import typer

from infra.bus.writer import publish
from infra.cli.errors import CliError, Exit
from infra.cli.output import Cell, console, moment, now_us, print_json, say, table
from infra.cli.reach import reach
from infra.clickhouse import connect
from infra.settings import Settings
from schemas.errors import BadInputError
from schemas.headers import trace_root
from schemas.records import ReleaseCause, ReleaseChanged
from schemas.topics import Event
from streams.releases.evidence import looked_at
from streams.releases.gate import SHARES
from streams.releases.known import Releases, read_releases
from streams.releases.orders import BASE_RATE, EFFECT, Order, OrderError, begun, said_changes, stopped

app = typer.Typer(help="Releases: a new configuration for a share of the jobs.", no_args_is_help=True)
_SOURCE = "longtake/release"
Name = Annotated[str, typer.Argument(metavar="NAME")]


@app.command()
def start(
    ctx: typer.Context,
    name: Name,
    engine: Annotated[str, typer.Option(help="Jobs that ask for it are concerned.")] = "animatic",
    change: Annotated[
        list[str], typer.Option("--set", help="engine=NAME, options.NAME=VALUE, crf=NUMBER or preset=NAME; repeat it.")
    ] = [],  # noqa: B006 (typer copies it)
    share: Annotated[float, typer.Option(help="Of the jobs, to begin with.")] = SHARES[0],
    base_rate: Annotated[float, typer.Option(help="Of bad jobs, as is usual.")] = BASE_RATE,
    effect: Annotated[float, typer.Option(help="The rise that is to be found.")] = EFFECT,
) -> None:
    """Begin a release. Directors know it within a second; 'longtake release watch' widens it or rolls it back."""
    settings = reach(ctx, "kafka")
    order = Order(name=name, engine=engine, change=tuple(change), share=share, base_rate=base_rate, effect=effect)
    try:
        release = begun(order, read_releases(settings).all(), now_us())
    except (BadInputError, ValueError) as error:
        raise CliError(Exit.USAGE, str(error)) from error
    except OrderError as error:
        raise CliError(Exit.REFUSED, str(error)) from error
    _publish(settings, [release])
    jobs = release.planned_jobs
    say(f"{name} has {share:.2%} of the jobs of {engine}; {jobs} effective ones decide: n1 * n2 / (n1 + n2)")


@app.command()
def status(
    ctx: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Not given: all.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Show releases, or what the gates of one saw last and why it was rolled back."""
    known = read_releases(reach(ctx, "kafka"))
    if name is not None and name not in known.releases:
        raise CliError(Exit.NOT_FOUND, f"no release {name}")
    found = sorted(known.all(), key=lambda r: r.started_us, reverse=True)
    if as_json:
        print_json([_told(known, r) for r in found if name in (None, r.name)])
    elif name is None:
        rows = [(r.name, r.stage.value, f"{r.share:.2%}", r.engine, moment(r.changed_us), r.reason) for r in found]
        console().print(table("", ("release", "stage", "share", "engine", "changed", ""), rows))
    else:
        _show(known.releases[name], known.causes.get(name))


@app.command()
def stop(
    ctx: typer.Context, name: Name, reason: Annotated[str, typer.Option(help="Is shown with it.")] = "stopped"
) -> None:
    """End a release: new jobs are made as before. Jobs that it changed already stay as they are."""
    settings = reach(ctx, "kafka")
    release = read_releases(settings).releases.get(name)
    if release is None:
        raise CliError(Exit.NOT_FOUND, f"no release {name}")
    try:
        _publish(settings, [stopped(release, reason, now_us())])
    except OrderError as error:
        raise CliError(Exit.REFUSED, str(error)) from error
    say(f"{name} is stopped")


@app.command()
def watch(
    ctx: typer.Context,
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between looks.")] = 30.0,
    once: Annotated[bool, typer.Option("--once", help="One look, then end.")] = False,
) -> None:
    """Look at the gates of all releases again and again: widen, accept or roll back. Run one, beside the line."""
    settings = reach(ctx, "kafka", "clickhouse")
    client = connect(settings)
    while True:
        events = looked_at(client, read_releases(settings).all(), now_us())
        _publish(settings, events)
        for event in events:
            if isinstance(event, ReleaseChanged):
                say(f"{moment(event.changed_us)} {event.name} {event.stage.value} at {event.share:.2%}: {event.reason}")
        if once:
            return
        time.sleep(every)


def _publish(settings: Settings, events: list[Event] | list[ReleaseChanged]) -> None:
    for event in events:
        assert isinstance(event, ReleaseChanged | ReleaseCause)  # noqa: S101
        publish(settings, [event], trace_root(f"release/{event.name}"), source=_SOURCE)


def _told(known: Releases, release: ReleaseChanged) -> dict[str, object]:
    return {"release": release, "cause": known.causes.get(release.name)}


def _show(release: ReleaseChanged, cause: ReleaseCause | None) -> None:
    say(f"release      {release.name} of {release.engine}, {release.stage.value}: {release.reason}")
    say("changes      " + said_changes(release))
    say(f"share        {release.share:.2%}, step {release.step}, {release.looked_jobs} jobs of the candidate ended")
    rows: list[tuple[Cell, ...]] = [
        (
            look.gate,
            f"{look.candidate_bad}/{look.candidate}",
            f"{look.control_bad}/{look.control}",
            f"{look.difference:+.2%}",
            f"{look.progress:.0%}",
            f"{look.level:.2f}",
            f"{look.limit:.2f}",
            f"{look.detectable:.1%}",
        )
        for look in release.looks
    ]
    columns = ("gate", "candidate", "control", "difference", "compared", "level", "limit", "would be found")
    console().print(table("", columns, rows))
    if cause is not None:
        for suspect in cause.suspects:
            seen = f"{suspect.bad_seen}/{suspect.bad} bad jobs, {suspect.others_seen}/{suspect.others} others"
            say(f"suspect      {suspect.kind} {suspect.name}: {seen}, z {suspect.z:.1f}")
        say("examples     " + " ".join(cause.examples))
