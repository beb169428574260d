"""`longtake sql` on a real ClickHouse."""

import io
import sys

import pytest

from infra.clickhouse import connect, migrate
from infra.settings import Settings
from tests.cli.conftest import Longtake


def test_an_answer_is_a_table_or_json_lines(clickhouse_settings: Settings, longtake: Longtake) -> None:
    query = "SELECT number AS n, toString(number) AS s FROM numbers(2)"
    assert longtake(clickhouse_settings, "sql", "--json", query).json_lines() == [
        {"n": 0, "s": "0"},
        {"n": 1, "s": "1"},
    ]
    printed = longtake(clickhouse_settings, "sql", query + ";").out.splitlines()
    assert printed[0].split() == ["n", "s"]
    assert printed[-1] == "2 rows"


def test_a_query_comes_through_a_pipe(
    clickhouse_settings: Settings, longtake: Longtake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("SELECT 7 AS n"))
    assert longtake(clickhouse_settings, "sql", "--json").json_lines() == [{"n": 7}]


@pytest.mark.parametrize(
    "query",
    [
        "DROP TABLE frame_log",
        "INSERT INTO migrations (name, digest) VALUES ('x', 'y')",
        "CREATE TABLE t (x Int8) ENGINE = Memory",
        "SELECT 1 SETTINGS readonly = 0",
        "SET readonly = 0",
    ],
)
def test_nothing_can_be_changed(query: str, clickhouse_settings: Settings, longtake: Longtake) -> None:
    migrate(clickhouse_settings)
    before = connect(clickhouse_settings).command("SELECT count() FROM migrations")
    assert longtake(clickhouse_settings, "sql", query).code in (2, 5)
    assert connect(clickhouse_settings).command("SELECT count() FROM migrations") == before
    assert connect(clickhouse_settings).command("EXISTS TABLE frame_log") == 1


def test_a_mistake_is_one_line(clickhouse_settings: Settings, longtake: Longtake) -> None:
    ran = longtake(clickhouse_settings, "sql", "SELECT nothing FROM nowhere")
    assert ran.code == 2
    assert len(ran.err.splitlines()) == 1
    assert "nowhere" in ran.err
