"""`longtake asset`: named files that videos are made with."""

from pathlib import Path
from typing import Annotated

import typer

from infra.assets.catalogue import Catalogue
from infra.assets.known import read_catalogue
from infra.assets.placement import keepers
from infra.bus.writer import publish
from infra.cli.errors import CliError, Exit
from infra.cli.output import Cell, console, duration, moment, now_us, print_json, say, table
from infra.cli.reach import reach
from infra.objects import Objects
from infra.settings import Settings
from schemas.errors import BadInputError
from schemas.headers import trace_root
from schemas.records import AssetChanged, AssetRef

app = typer.Typer(
    help="Assets: music, effects, narration, subtitles and pictures, by name and version.", no_args_is_help=True
)
Name = Annotated[str, typer.Argument(metavar="NAME")]
Json = Annotated[bool, typer.Option("--json", help="For programs.")]


@app.command()
def add(
    ctx: typer.Context,
    name: Name,
    file: Annotated[Path, typer.Argument(metavar="FILE", exists=True, dir_okay=False, readable=True)],
    version: Annotated[str, typer.Option(help="Not given: the next number.")] = "",
    region: Annotated[str, typer.Option(help="Whose machines keep it; not given: any.")] = "",
    media_type: Annotated[str, typer.Option(help="What it must turn out to be, such as audio/flac.")] = "",
    as_json: Json = False,
) -> None:
    """Add a file, or a new version of one. All of it is read first. The same again changes nothing; other bytes need another version."""
    from infra.assets.adding import Wish, added  # loads libav: not for commands that need none
    from infra.assets.media import MediaError

    settings = reach(ctx, "kafka", "objects")
    wish = Wish(name=name, version=version, region=region, media_type=media_type)
    catalogue = read_catalogue(settings)
    try:
        event = added(Objects(settings.objects), catalogue, file, wish, now_us())
    except (MediaError, BadInputError) as error:
        raise CliError(Exit.REFUSED, str(error)) from error
    asset = event.asset
    if event not in catalogue.versions(name):
        _publish(settings, event)
    if as_json:
        print_json(event)
    else:
        say(f"{asset.name}@{asset.version}: {_what(asset)}, {asset.content.digest}")


@app.command(name="list")
def list_(
    ctx: typer.Context,
    every: Annotated[bool, typer.Option("--all", help="Removed ones too.")] = False,
    as_json: Json = False,
) -> None:
    """List what jobs can name."""
    found = [e for e in read_catalogue(reach(ctx, "kafka")).all() if every or not e.removed_us]
    if as_json:
        print_json(found)
    else:
        _table(found)


@app.command()
def show(ctx: typer.Context, name: Name, as_json: Json = False) -> None:
    """Show the versions of an asset, the one that is meant without a version first, and which machines keep it."""
    settings = reach(ctx, "kafka")
    found = read_catalogue(settings).versions(name)
    if not found:
        raise CliError(Exit.NOT_FOUND, f"no asset {name}")
    if as_json:
        print_json(found)
        return
    _table(found)
    for asset in (event.asset for event in found):
        say(f"{asset.name}@{asset.version}  {asset.content.digest}  {asset.content.uri}")
        if settings.asset_nodes:
            say(f"  kept by {', '.join(keepers(asset, settings.asset_nodes))}")


@app.command()
def remove(
    ctx: typer.Context, version: Annotated[str, typer.Argument(metavar="NAME@VERSION")], as_json: Json = False
) -> None:
    """No new job can name it. Jobs that do keep it; then the sweep takes its bytes out. The same bytes can be added again."""
    settings = reach(ctx, "kafka")
    name, at, number = version.partition("@")
    if not at:
        raise CliError(Exit.USAGE, f"say which version: {name}@VERSION; 'longtake asset show {name}' lists them")
    event = _removed(read_catalogue(settings), name, number)
    _publish(settings, event)
    if as_json:
        print_json(event)
    else:
        say(f"{version} is removed")


def _removed(catalogue: Catalogue, name: str, version: str) -> AssetChanged:
    from infra.assets.adding import removed

    try:
        return removed(catalogue, name, version, now_us())
    except BadInputError as error:
        raise CliError(Exit.NOT_FOUND, error.message) from error


def _publish(settings: Settings, event: AssetChanged) -> None:
    publish(settings, [event], trace_root(f"asset/{event.asset.name}"), source="longtake/asset")


def _table(found: list[AssetChanged]) -> None:
    rows: list[tuple[Cell, ...]] = [
        (
            f"{e.asset.name}@{e.asset.version}",
            _what(e.asset),
            e.asset.content.size_bytes / 1e6,
            e.asset.region or "any",
            moment(e.added_us),
            moment(e.removed_us),
        )
        for e in found
    ]
    console().print(table("", ("asset", "what", "MB", "region", "added", "removed"), rows))


def _what(asset: AssetRef) -> str:
    size = f" {asset.width}x{asset.height}" if asset.width else ""
    length = f" {duration(asset.duration_us / 1e6)}" if asset.duration_us else ""
    return f"{asset.content.media_type}{size}{length}"
