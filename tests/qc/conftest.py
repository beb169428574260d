"""A bench without a ClickHouse, for what is only measured; and a film whose rows are in one."""

from pathlib import Path

import pytest

from infra.inserts import Database
from infra.local.clickhouse import LocalClickHouse
from infra.settings import Settings
from qc_consumers.check import Bench, bench_of
from tests.qc.film import Film, shown


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    settings = Settings(
        clickhouse="http://127.0.0.1:1/unused", objects=(tmp_path / "objects").as_uri(), state=tmp_path / "state"
    )
    return bench_of(settings, Database(settings), "check-0")


@pytest.fixture(scope="session")
def film(clickhouse: LocalClickHouse, tmp_path_factory: pytest.TempPathFactory) -> Film:
    """Run through QC once, for tests that only look."""
    folder = tmp_path_factory.mktemp("film")
    settings = Settings(
        clickhouse=clickhouse.url("film"),
        clickhouse_password=clickhouse.password,
        objects=(folder / "objects").as_uri(),
        state=folder / "state",
    )
    return shown(settings, folder)
