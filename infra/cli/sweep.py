"""`longtake sweep`: what the object store holds, and taking out what nobody needs any more."""

from typing import Annotated

import typer

from infra.cli.output import console, print_json, say, table
from infra.cli.reach import reach
from infra.objects import Objects
from infra.storage.disk import shortage
from infra.storage.retention import Kind, kind_of
from infra.storage.sweep import Found, look
from infra.storage.sweep import sweep as take_out


def sweep(
    ctx: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Remove from the object store what nobody refers to and whose time is over. 'longtake up' does it every hour."""
    settings = reach(ctx, "kafka", "objects")
    objects = Objects(settings.objects)
    found = look(settings, objects) if dry_run else take_out(settings, objects)
    short = shortage(settings)
    if as_json:
        kinds = [dict(zip(_COLUMNS, row, strict=True)) for row in _rows(found)]
        print_json({"kinds": kinds, "unknown_jobs": sorted(found.unknown_jobs), "shortage": short})
        return
    console().print(table("", ("kind", "objects", "MB", "would go" if dry_run else "gone", "MB"), _rows(found)))
    if found.unknown_jobs:
        say(
            f"{len(found.unknown_jobs)} jobs are not in the table; their objects stay: is LONGTAKE_KAFKA the right cluster?"
        )
    if short:
        say(f"no new job starts: {short}")


_COLUMNS = ("kind", "objects", "megabytes", "removable", "removable_megabytes")


def _rows(found: Found) -> list[tuple[str, int, float, int, float]]:
    rows: list[tuple[str, int, float, int, float]] = []
    for kind in (kind for kind in Kind if found.objects[kind]):
        going = [stored.size_bytes for stored in found.removable if kind_of(stored.key) is kind]
        rows.append((kind.value, found.objects[kind], found.size_bytes[kind] / 1e6, len(going), sum(going) / 1e6))
    return rows
