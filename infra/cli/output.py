"""What the command line prints: tables and lines for people, JSON for programs. Text from outside is never markup, nor does it steer a terminal."""

import sys
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from infra.redact import visible

_PIPE_WIDTH = 500
_COLUMN_CHARS = 60
Cell = str | Text | int | float


def console() -> Console:
    """Standard output: as wide as the terminal, or as a pipe that folds nothing."""
    terminal = sys.stdout.isatty()
    return Console(highlight=False, width=None if terminal else _PIPE_WIDTH)


def say(line: str) -> None:
    """One line for a person, not wrapped."""
    console().print(Text(visible(line)), soft_wrap=True)


def print_json(value: object) -> None:
    """One line of JSON."""
    console().print(Text(msgspec.json.encode(value).decode()), soft_wrap=True)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Table:
    """Columns of numbers are aligned to the right."""
    body = list(rows)
    grid = Table(title=title or None, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for index, column in enumerate(columns):
        number = bool(body) and isinstance(body[0][index], int | float)
        grid.add_column(column, justify="right" if number else "left", header_style="dim", overflow="fold")
    for row in body:
        grid.add_row(*(cell if isinstance(cell, Text) else Text(visible(_text(cell))) for cell in row))
    return grid


def moment(time_us: int) -> str:
    """`2026-11-30 19:06:08` in UTC; empty for 0."""
    return datetime.fromtimestamp(time_us / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S") if time_us else ""


def clipped(text: str) -> str:
    """As much of a text as a column can show."""
    return text if len(text) <= _COLUMN_CHARS else text[: _COLUMN_CHARS - 1] + "…"


def significant(number: float) -> str:
    """Six significant digits, for numbers of which nothing is known."""
    return f"{number:.6g}"


def duration(seconds: float | None) -> str:
    """`3.2 s`, `2:05`, `1:02:05`; `-` if unknown."""
    if seconds is None:
        return "-"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def now_us() -> int:
    """Microseconds since the epoch."""
    return time.time_ns() // 1000


def _text(cell: str | float) -> str:
    return f"{cell:,.2f}" if isinstance(cell, float) else f"{cell:,}" if isinstance(cell, int) else cell
