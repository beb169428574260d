"""Commands on the stack as a whole: up, down, status, doctor, and its processes."""

import shlex
from collections.abc import Sequence
from typing import Annotated

import typer

from infra.bus.topics import create_topics
from infra.cli.errors import CliError, Exit
from infra.cli.lookup import events, last_jobs
from infra.cli.output import console, moment, print_json, say, table
from infra.cli.reach import reach, settings_of
from infra.clickhouse import migrate
from infra.local.doctor import diagnose
from infra.local.pidfile import AlreadyRunningError
from infra.local.services import Services, read_services
from infra.local.stack import down as stop_stack
from infra.local.stack import up as start_stack
from infra.local.supervisor import ROLES, usual_workers
from infra.storage.disk import shortage
from infra.web.access import Access, AccessError
from schemas.records import EngineBaseline, JobChanged, LineThroughput
from schemas.rows import RESTING

Json = Annotated[bool, typer.Option("--json", help="For programs.")]
_MINUTES = 5


def up(
    ctx: typer.Context,
    workers: Annotated[list[str] | None, typer.Option(help="ROLE=COUNT, for example generate=2 (repeat).")] = None,
) -> None:
    """Start the local stack in the background: Kafka, ClickHouse, the workers and the console."""
    settings = settings_of(ctx)
    try:
        Access(settings)
        services = start_stack(settings, {**usual_workers(settings), **dict(map(_count, workers or []))})
    except AlreadyRunningError as error:
        say(f"{error}: nothing to do")
        return
    except AccessError as error:
        raise CliError(Exit.USAGE, str(error)) from error
    _print_services(services)
    say(f"logs in {settings.state / 'logs'}; stop it with 'longtake down'")


def setup(ctx: typer.Context) -> None:
    """Make the topics and tables on services that are already there. Safe to repeat: a deployment's first step."""
    settings = reach(ctx, "kafka", "clickhouse")
    topics, migrations = create_topics(settings), migrate(settings)
    say(f"{len(topics)} topics made, {len(migrations)} migrations applied")


def down(ctx: typer.Context) -> None:
    """Stop the local stack. Its data stays."""
    stop_stack(settings_of(ctx))
    say("stopped")


def status(ctx: typer.Context, as_json: Json = False) -> None:
    """Show the stack's processes, the jobs in work, and how fast the line is."""
    services = read_services(settings_of(ctx).state)
    settings = reach(ctx, "kafka")
    working = [job for job in last_jobs(settings) if job.stage not in RESTING]
    derived = {str(_name(e)): e for e in (*events(settings, EngineBaseline), *events(settings, LineThroughput))}
    engines = [e for e in derived.values() if isinstance(e, EngineBaseline)]
    minutes = [e for e in derived.values() if isinstance(e, LineThroughput)]
    minutes = sorted(minutes, key=lambda minute: minute.minute_us)[-_MINUTES:]
    short = shortage(settings)
    if as_json:
        processes = services.processes if services else ()
        addresses = {name: getattr(settings, name) for name in ("kafka", "clickhouse", "objects")}
        addresses["console"] = services.console if services else ""
        addresses["shortage"] = short
        print_json(addresses | {"processes": processes, "working": working, "engines": engines, "minutes": minutes})
        return
    if services:
        _print_services(services)
    if short:
        say(f"no new job starts: {short}")
    _print_line(working, engines, minutes)


def env(ctx: typer.Context) -> None:
    """Print the addresses of the stack for the shell: eval "$(longtake env)". The last line is a password."""
    settings = reach(ctx, "kafka", "clickhouse", "objects")
    for name in ("kafka", "clickhouse", "objects"):
        say(f"export LONGTAKE_{name.upper()}={shlex.quote(getattr(settings, name))}")
    say(f"export LONGTAKE_CLICKHOUSE_PASSWORD={shlex.quote(settings.clickhouse_password.get_secret_value())}")


def doctor(ctx: typer.Context, as_json: Json = False) -> None:
    """Say what is missing on this machine or wrong with the services, and how to get it."""
    checks = diagnose(settings_of(ctx))
    if as_json:
        print_json(checks)
    else:
        for check in checks:
            mark = "ok  " if check.ok else "MISS" if check.needed else "note"
            say(f"{mark}  {check.name:16} {check.found}")
            if check.remedy and not check.ok:
                say(f"      {'':16} -> {check.remedy}")
    if any(check.needed and not check.ok for check in checks):
        raise CliError(Exit.FAILED, "something that the line needs is missing")


def _count(text: str) -> tuple[str, int]:
    role, equals, count = text.partition("=")
    if not equals or role not in ROLES or not count.isdecimal() or int(count) > 64:
        raise CliError(Exit.USAGE, f"--workers is written ROLE=COUNT with ROLE one of {', '.join(ROLES)}: {text!r}")
    return role, int(count)


def _name(event: EngineBaseline | LineThroughput) -> tuple[object, ...]:
    return (event.engine, event.engine_version) if isinstance(event, EngineBaseline) else (event.minute_us,)


def _print_services(services: Services) -> None:
    say(f"stack       pid {services.pid}, up")
    say(f"kafka       {services.kafka}")
    say(f"clickhouse  {services.clickhouse}")
    say(f"objects     {services.objects}")
    say(f"console     {services.console}")
    rows = [
        (p.name, str(p.pid or "-"), p.restarts, "" if p.exit_code is None else str(p.exit_code))
        for p in services.processes
    ]
    console().print(table("", ("process", "pid", "restarts", "last exit"), rows))


def _print_line(
    working: Sequence[JobChanged], engines: Sequence[EngineBaseline], minutes: Sequence[LineThroughput]
) -> None:
    rows = [(j.job_id, j.stage.value, f"{j.segments_generated}/{j.segments}", j.attempts) for j in working]
    console().print(table(f"\n{len(working)} jobs in work", ("job", "stage", "segments", "again"), rows))
    speeds = [(f"{e.engine} {e.engine_version}", e.segments, e.failures, e.frames, e.fps) for e in engines]
    console().print(table("\nEngines so far", ("engine", "segments", "failures", "frames", "fps"), speeds))
    made = [(moment(m.minute_us)[:-3], m.frames, m.segments, m.videos) for m in minutes]
    console().print(table("\nLast minutes", ("minute, UTC", "frames", "segments", "videos"), made))
