"""`longtake dead-letters`: records that were put aside, and sending them back."""

from dataclasses import asdict
from typing import Annotated

import typer

from infra.bus.dead_letters import dead_letters, find
from infra.bus.dead_letters import replay as send_back
from infra.bus.letter import DeadLetter
from infra.cli.errors import CliError, Exit
from infra.cli.output import console, moment, print_json, say, table
from infra.cli.reach import reach
from infra.settings import Settings

app = typer.Typer(help="Records that were put aside because they can never be processed.", no_args_is_help=True)
Json = Annotated[bool, typer.Option("--json", help="For programs.")]
LetterId = Annotated[str, typer.Argument(metavar="ID", help="As 'list' shows it.")]


@app.command("list")
def list_letters(ctx: typer.Context, as_json: Json = False) -> None:
    """List them, the newest first."""
    letters = sorted(dead_letters(reach(ctx, "kafka")), key=lambda letter: letter.time_us, reverse=True)
    if as_json:
        print_json([_plain(letter) for letter in letters])
        return
    rows = [
        (x.id, moment(x.time_us), x.original.topic, x.original.job_id[:40], x.field, x.rule, x.message[:80])
        for x in letters
    ]
    console().print(table("", ("id", "when, UTC", "topic", "key", "field", "rule", "reason"), rows))


@app.command()
def show(ctx: typer.Context, letter_id: LetterId, as_json: Json = False) -> None:
    """Show one with its original headers and bytes."""
    letter = _found(reach(ctx, "kafka"), letter_id)
    if as_json:
        print_json(_plain(letter))
        return
    original = letter.original
    say(f"id       {letter.id}, put aside {moment(letter.time_us)} by {letter.group}")
    say(f"reason   {letter.field}: {letter.message} [{letter.rule}]")
    say(f"record   {original.id}, key {original.key!r}")
    for name, value in original.headers:
        say(f"header   {name}: {(value or b'').decode(errors='replace')}")
    say(f"value    {len(original.value or b''):,} bytes")
    say(repr((original.value or b"")[:2000])[1:])


@app.command()
def replay(
    ctx: typer.Context,
    letter_ids: Annotated[list[str] | None, typer.Argument(metavar="ID...")] = None,
    every: Annotated[bool, typer.Option("--all", help="Every one there is.")] = False,
) -> None:
    """Send the original records back to their topics, after what was wrong has been put right."""
    if bool(letter_ids) == every:
        raise CliError(Exit.USAGE, "name the ones to replay, or --all")
    settings = reach(ctx, "kafka")
    letters = list(dead_letters(settings)) if every else [_found(settings, i) for i in letter_ids or []]
    say(f"replayed {send_back(settings, letters)}")


def _found(settings: Settings, letter_id: str) -> DeadLetter:
    letter = find(settings, letter_id)
    if letter is None:
        raise CliError(Exit.NOT_FOUND, f"no dead letter {letter_id!r}: 'longtake dead-letters list' shows them")
    return letter


def _plain(letter: DeadLetter) -> dict[str, object]:
    original = letter.original
    return {
        **{name: value for name, value in asdict(letter).items() if name != "original"},
        "topic": original.topic,
        "partition": original.partition,
        "offset": original.offset,
        "key": original.job_id,
        "headers": {name: (value or b"").decode(errors="replace") for name, value in original.headers},
        "value_base64": original.value,
    }
