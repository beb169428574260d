"""The tables of a cluster are statements that ClickHouse reads, and the same tables."""

from infra.clickhouse import connect, migrate
from infra.deploy.render import CLUSTER_FILE
from infra.settings import Settings


def test_clickhouse_reads_every_statement(clickhouse_settings: Settings) -> None:
    client = connect(clickhouse_settings)
    statements = [s.strip() for s in CLUSTER_FILE.read_text().split(";\n") if "CREATE" in s]
    for statement in statements:
        body = "\n".join(line for line in statement.splitlines() if not line.startswith("--"))
        assert client.query("SELECT formatQuery(%(q)s)", {"q": body}).result_rows[0][0].startswith("CREATE")
    migrate(clickhouse_settings)
    query = "SELECT name FROM system.tables WHERE database = currentDatabase() AND engine LIKE '%MergeTree'"
    names = {name for (name,) in client.query(query).result_rows} - {"migrations"}
    assert names
    for name in names:
        assert sum(f"longtake_shard.{name} ON CLUSTER" in s for s in statements) == 1
        assert sum(f"longtake.{name} ON CLUSTER" in s for s in statements) == 1
