"""Exit codes and errors without a stack."""

import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import SecretStr

from infra.cli.worker import MODULES, NEEDS, Role, entry
from infra.local.supervisor import ROLES, WORKERS, usual_workers, worker_commands
from infra.settings import Settings
from tests.cli.conftest import Longtake


@pytest.mark.parametrize("command", [["jobs"], ["submit", "A fox"], ["sql", "SELECT 1"], ["down"], ["topics"]])
def test_without_a_stack_it_says_how_to_start_one(command: list[str], longtake: Longtake, tmp_path: Path) -> None:
    ran = longtake(Settings(state=tmp_path), *command)
    assert (ran.code, ran.out) == (3, "")
    assert "no stack is running" in ran.err
    assert len(ran.err.splitlines()) == 1


def test_a_broker_that_does_not_answer_is_one_line(longtake: Longtake, tmp_path: Path) -> None:
    ran = longtake(Settings(state=tmp_path, kafka="127.0.0.1:1"), "jobs")
    assert ran.code == 3
    assert "longtake doctor" in ran.err
    assert len(ran.err.splitlines()) == 1


def test_a_clickhouse_that_does_not_answer_is_one_line(longtake: Longtake, tmp_path: Path) -> None:
    ran = longtake(Settings(state=tmp_path, clickhouse="http://longtake@127.0.0.1:1/longtake"), "sql", "SELECT 1")
    assert ran.code == 3
    assert len(ran.err.splitlines()) == 1


def test_a_wrong_variable_is_named() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "infra.cli.main", "jobs"],
        env={"LONGTAKE_PARTITIONS": "many"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 2
    assert "LONGTAKE_PARTITIONS" in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize(
    "arguments", [["unknown"], ["worker", "cook"], ["up", "--workers", "cook=2"], ["jobs", "--stage", "x"]]
)
def test_an_unknown_word_is_wrong_usage(arguments: list[str], longtake: Longtake, tmp_path: Path) -> None:
    ran = longtake(Settings(state=tmp_path), *arguments)
    assert (ran.code, ran.out) == (2, "")


@pytest.mark.parametrize("command", [[], ["submit"], ["watch"], ["sql"], ["dead-letters", "replay"], ["demo"]])
def test_every_command_has_help(command: list[str], longtake: Longtake, tmp_path: Path) -> None:
    ran = longtake(Settings(state=tmp_path), *command, "--help")
    assert ran.code == 0
    assert "Usage:" in ran.out


def test_the_stack_starts_exactly_the_roles_there_are() -> None:
    assert sorted(ROLES) == sorted(role.value for role in Role)
    assert set(worker_commands(WORKERS)) == {f"{role.value}-0" for role in Role} - {"alerts-0", "tracer-0"}
    webhooks = SecretStr('[{"name": "ops", "url": "https://example.com", "secret": "0123456789abcdef"}]')
    assert set(worker_commands(usual_workers(Settings(webhooks=webhooks, trace_endpoint="http://collector:4318")))) == {
        f"{role.value}-0" for role in Role
    }
    assert set(MODULES) == set(NEEDS) == set(Role)


@pytest.mark.parametrize("role", list(Role))
def test_every_role_has_an_entry(role: Role) -> None:
    assert callable(entry(role))
