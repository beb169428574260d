"""The command line, called in this process as a person would call it."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from infra.cli.main import main
from infra.local.services import environment
from infra.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)

    def json_lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


Longtake = Callable[..., Ran]


@pytest.fixture
def longtake(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Longtake:
    """`longtake(settings, "jobs", "--json")`."""

    def run(settings: Settings, *arguments: str) -> Ran:
        for name, value in environment(settings).items():
            if name.startswith("LONGTAKE_"):
                monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["longtake", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return Ran(code=int(ended.value.code or 0), out=printed.out, err=printed.err)

    return run
