"""`longtake diagnose`: why an engine aborted, from its log."""

import sys
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from gpu_consumers.diagnose import Diagnosis
from gpu_consumers.diagnose import diagnose as diagnose_log
from infra.cli.errors import CliError, Exit
from infra.cli.output import console, print_json, say, table

EXAMPLES = """[bold]Examples[/bold]

  longtake diagnose ~/.local/state/longtake/logs/generate-0.log

  kubectl logs generate-0 | longtake diagnose - --json
"""


def diagnose(
    file: Annotated[Path, typer.Argument(help="An engine's or worker's log; '-': standard input.")],
    as_json: Annotated[bool, typer.Option("--json", help="One object per abort.")] = False,
) -> None:
    """Say of every RENDER_ABORT in a log what kind of fault it was, where, and what to check. Exit code 4: there is none."""
    found = _read(file)
    if as_json:
        for diagnosis in found:
            print_json(diagnosis)
    elif found:
        _print(found)
    if not found:
        raise CliError(Exit.NOT_FOUND, f"{file}: no RENDER_ABORT line")


def _read(file: Path) -> list[Diagnosis]:
    try:
        if str(file) == "-":
            return list(diagnose_log(sys.stdin))
        with file.open(encoding="utf-8", errors="replace") as lines:
            return list(diagnose_log(lines))
    except OSError as error:
        raise CliError(Exit.USAGE, f"{file} cannot be read: {error.strerror}") from error


def _print(found: list[Diagnosis]) -> None:
    for diagnosis in found:
        frame = "" if diagnosis.frame is None else f", frame {diagnosis.frame}"
        gpu = f", gpu {diagnosis.gpu}" if diagnosis.gpu else ""
        say(f"line {diagnosis.line}{frame}{gpu}: {_kind(diagnosis)}")
        say(f"  said     {diagnosis.reason}")
        if diagnosis.evidence != diagnosis.reason:
            say(f"  because  {diagnosis.evidence.strip()}")
        say(f"  module   {diagnosis.module}")
        for number, check in enumerate(diagnosis.check):
            say(f"  {'check' if number == 0 else '':8} {check}")
    if len(found) > 1:
        counts = Counter(map(_kind, found)).most_common()
        console().print(table(f"\n{len(found)} aborts", ("kind", "aborts"), counts))


def _kind(diagnosis: Diagnosis) -> str:
    return diagnosis.kind.replace("_", " ") if diagnosis.kind else "unknown"
