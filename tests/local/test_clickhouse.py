import clickhouse_connect
import pytest
from clickhouse_connect.driver.exceptions import DatabaseError

from infra.clickhouse import connect
from infra.local.clickhouse import LocalClickHouse
from infra.settings import Settings


def test_rows_survive_kill_9_on_the_same_folder_and_ports(own_clickhouse: LocalClickHouse) -> None:
    settings = Settings(clickhouse=own_clickhouse.url("default"), clickhouse_password=own_clickhouse.password)
    client = connect(settings)
    client.command("CREATE DATABASE line")
    client.command("CREATE TABLE line.rows (a Int64) ENGINE = MergeTree ORDER BY a")
    client.insert("line.rows", [[1], [2]], column_names=["a"])
    own_clickhouse.kill()
    own_clickhouse.restart()
    assert own_clickhouse.url("default") == settings.clickhouse
    assert connect(settings).query("SELECT a FROM line.rows ORDER BY a").result_rows == [(1,), (2,)]


def test_the_engine_says_its_version_over_both_protocols(clickhouse: LocalClickHouse) -> None:
    settings = Settings(clickhouse=clickhouse.url("default"), clickhouse_password=clickhouse.password)
    assert str(connect(settings).command("SELECT version()")).startswith("26.7")
    native = {"address": clickhouse.tcp, "password": clickhouse.password.get_secret_value()}
    query = "SELECT 1 FROM remote({address:String}, system.one, 'longtake', {password:String})"
    assert connect(settings).command(query, parameters=native) == 1


def test_nobody_reads_a_table_without_the_password(clickhouse_settings: Settings, clickhouse: LocalClickHouse) -> None:
    connect(clickhouse_settings).command("CREATE TABLE secret (a Int64) ENGINE = MergeTree ORDER BY a")
    host, _, rest = clickhouse_settings.clickhouse.partition("@")[2].partition(":")
    port = rest.partition("/")[0]
    with pytest.raises(DatabaseError, match="AUTHENTICATION_FAILED"):
        clickhouse_connect.get_client(host=host, port=int(port), username="longtake", password="wrong")  # noqa: S106
    with pytest.raises(DatabaseError, match="Quota"):
        clickhouse_connect.get_client(host=host, port=int(port), username="default")


def test_every_test_has_a_database_of_its_own(clickhouse_settings: Settings) -> None:
    assert connect(clickhouse_settings).query("SHOW TABLES").result_rows == []
