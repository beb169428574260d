"""`longtake sql`: a query on the line's ClickHouse, reading only."""

import re
import sys
from typing import Annotated

import typer
from clickhouse_connect.driver.exceptions import DatabaseError, OperationalError
from rich.text import Text

from infra.cli.errors import CliError, Exit
from infra.cli.output import Cell, console, say, significant, table
from infra.cli.reach import reach
from infra.clickhouse import connect_reader

EXAMPLES = """[bold]Examples[/bold]

  longtake sql "SELECT job_id, min(vmaf) FROM frames GROUP BY job_id"

  longtake sql --json < question.sql | jq .vmaf
"""
_READ_ONLY = {"readonly": 2}
"""Reads, and settings of the query's own; no statement can take it back."""
_READ_ONLY_CODE = 164
_SERVER_WORDS = re.compile(r".*DB::Exception: | \(version .*")


def sql(
    ctx: typer.Context,
    query: Annotated[str | None, typer.Argument(help="One statement; nothing: standard input.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One row a line.")] = False,
) -> None:
    """Ask ClickHouse, as its reader. Tables: jobs, segments, pieces, seams, frames, videos."""
    if query is None and sys.stdin.isatty():
        raise CliError(Exit.USAGE, "no query: give one, or pipe one in")
    text = (query or sys.stdin.read()).strip().rstrip(";")
    client = connect_reader(reach(ctx, "clickhouse"))
    try:
        if as_json:
            rows = client.raw_query(text, settings=_READ_ONLY, fmt="JSONEachRow")
            say(rows.decode().rstrip("\n"))
            return
        result = client.query(text, settings=_READ_ONLY)
    except OperationalError:
        raise
    except DatabaseError as error:
        refused = error.code == _READ_ONLY_CODE
        message = _SERVER_WORDS.sub("", " ".join(str(error).split()))[:500]
        raise CliError(Exit.REFUSED if refused else Exit.USAGE, message) from error
    rows = [tuple(_cell(value) for value in row) for row in result.result_rows]
    console().print(table("", result.column_names, rows))
    say(f"{len(rows)} rows")


def _cell(value: object) -> Cell:
    if isinstance(value, float):
        return Text(significant(value), justify="right")
    return value if isinstance(value, int) and not isinstance(value, bool) else str(value)
