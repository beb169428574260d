"""`longtake dead-letters`: records that were put aside, and sending them back."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from infra.bus.dead_letters import dead_letters, find
from infra.bus.dead_letters import replay as send_back
from infra.bus.letter import DeadLetter
from infra.bus.mended import MendError, from_text, readable, to_text
from infra.bus.outputs import Output
from infra.bus.writer import Writer
from infra.cli.errors import CliError, Exit
from infra.cli.output import console, moment, print_json, say, table
from infra.cli.reach import reach
from infra.settings import Settings
from schemas.errors import BadInputError

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
    record = readable(letter)
    say(
        msgspec.json.format(msgspec.json.encode(record)).decode()
        if record
        else repr((original.value or b"")[:2000])[1:]
    )


@app.command()
def edit(
    ctx: typer.Context,
    letter_id: LetterId,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Default: ID.json here.")] = None,
) -> None:
    """Write one into a file, to be mended and sent with 'replay --file'. Nothing is sent."""
    target = output or Path(f"{letter_id}.json")
    content = to_text(_found(reach(ctx, "kafka"), letter_id))
    try:
        with target.open("xb") as file:
            file.write(content)
    except OSError as error:
        raise CliError(Exit.USAGE, f"{target} cannot be written: {error.strerror}") from error
    say(f"{target}; mend it, then 'longtake dead-letters replay --file {target}'")


@app.command()
def replay(
    ctx: typer.Context,
    letter_ids: Annotated[list[str] | None, typer.Argument(metavar="ID...")] = None,
    file: Annotated[list[Path] | None, typer.Option(help="One that 'edit' wrote (repeat).")] = None,
    topic: Annotated[str | None, typer.Option(help="Every one from this topic.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Every one there is.")] = False,
) -> None:
    """Send records back to their topics, after what was wrong has been put right. A job that failed of it: 'longtake retry'."""
    if sum(map(bool, (letter_ids, file, topic, every))) != 1:
        raise CliError(Exit.USAGE, "name the ones to replay, or one of --file, --topic, --all")
    settings = reach(ctx, "kafka")
    if file:
        mended = [_mended(path) for path in file]
        with Writer(settings) as writer:
            writer.write(mended)
        say(f"replayed {len(mended)}")
        return
    wanted = set(letter_ids or [])
    found = [x for x in dead_letters(settings) if every or x.original.topic == topic or x.id in wanted]
    if missing := wanted - {letter.id for letter in found}:
        raise CliError(Exit.NOT_FOUND, f"no dead letter {', '.join(sorted(missing))}: 'longtake dead-letters list'")
    say(f"replayed {send_back(settings, found)}")


def _mended(path: Path) -> Output:
    try:
        return from_text(path.read_bytes())
    except OSError as error:
        raise CliError(Exit.USAGE, f"{path} cannot be read: {error.strerror}") from error
    except (MendError, BadInputError) as error:
        raise CliError(Exit.USAGE, f"{path}: {error}") from error


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
        "record": readable(letter),
        "headers": {name: (value or b"").decode(errors="replace") for name, value in original.headers},
        "value_base64": original.value,
    }
