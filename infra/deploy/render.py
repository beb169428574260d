"""`python -m infra.deploy.render` writes what a deployment repeats: topics and users for Strimzi, alerts, tables for a cluster."""

import re
from pathlib import Path

import yaml

from infra.acls import read_role, roles
from infra.bus.topics import topic_config
from infra.clickhouse import MIGRATIONS
from schemas.topics import TOPICS

HERE = Path(__file__).parent
TOPICS_FILE = HERE / "helm" / "longtake" / "files" / "topics.yaml"
USERS_FILE = TOPICS_FILE.with_name("users.yaml")
ALERTS_FILE = TOPICS_FILE.with_name("alerts.yaml")
CLUSTER_FILE = HERE / "clickhouse" / "cluster.sql"
_REPLICATION = 3
_WRITTEN = "# Written by `python -m infra.deploy.render`; do not edit.\n"
_TABLE = re.compile(
    r"CREATE TABLE IF NOT EXISTS (?P<name>\w+)\n(?P<columns>\(.*?\n\))\nENGINE = (?P<engine>\w+)(?:\((?P<version>\w+)\))?\n"
    r"(?P<order>.*?)SETTINGS non_replicated_deduplication_window = (?P<window>\d+)\nCOMMENT (?P<comment>.*?);",
    re.DOTALL,
)
_CLUSTER = """\
-- The tables of schemas/clickhouse for a cluster of shards and replicas. Written by `python -m infra.deploy.render`; do not edit.
-- Run it before `longtake setup`, which finds the tables there and adds the views. Each node needs the macros `cluster`,
-- `shard` and `replica`; the writer's profile needs `distributed_foreground_insert = 1`.
-- All rows of a job are on one shard. An insert is of one job, so its deduplication token is remembered where its rows are:
-- the same insert again, through whichever node, adds nothing.

CREATE DATABASE IF NOT EXISTS longtake ON CLUSTER '{cluster}';
CREATE DATABASE IF NOT EXISTS longtake_shard ON CLUSTER '{cluster}';
"""


def topics_page() -> str:
    """A list of `name` and `config`."""
    rows = [{"name": topic.name, "config": topic_config(topic, _REPLICATION)} for topic in TOPICS]
    return _WRITTEN + yaml.safe_dump(rows, sort_keys=False)


def users_page() -> str:
    """A list of `role` and `acls`, as a KafkaUser has them; subscribers are people's own."""
    rows = [{"role": role, "acls": _strimzi_acls(role)} for role in roles() if role != "subscriber"]
    return _WRITTEN + yaml.safe_dump(rows, sort_keys=False)


def alerts_page() -> str:
    """What Prometheus has without the operator."""
    return _WRITTEN + (HERE / "prometheus" / "alerts.yaml").read_text()


def _strimzi_acls(role: str) -> list[dict[str, object]]:
    said = read_role(role)
    named = [("topic", name, operation) for operation, names in said.topics.items() for name in names]
    named += [("group", name, "read") for name in said.groups] + [
        ("group", name, "describe") for name in said.groups_seen
    ]
    named += [("transactionalId", name, "write") for name in said.transactional_ids]
    found: list[dict[str, object]] = [
        {
            "resource": {
                "type": kind,
                "name": name.removesuffix("*"),
                "patternType": "prefix" if name.endswith("*") else "literal",
            },
            "operations": [operation.capitalize()],
        }
        for kind, name, operation in named
    ]
    return found + [{"resource": {"type": "cluster"}, "operations": [o.capitalize()]} for o in said.cluster]


def cluster_page() -> str:
    """Every table twice: replicated on its shard, and distributed under its own name. Raises: ValueError if one is missed."""
    source = "\n".join(path.read_text() for path in sorted(MIGRATIONS.glob("*.sql")))
    tables = list(_TABLE.finditer(source))
    if len(tables) != source.count("CREATE TABLE"):
        raise ValueError(f"{len(tables)} of {source.count('CREATE TABLE')} tables understood")
    return _CLUSTER + "".join(_both(table) for table in tables)


def _both(table: re.Match[str]) -> str:
    name, version = table["name"], f", {table['version']}" if table["version"] else ""
    path = f"'/clickhouse/tables/{{shard}}/longtake_shard/{name}', '{{replica}}'{version}"
    return f"""
CREATE TABLE IF NOT EXISTS longtake_shard.{name} ON CLUSTER '{{cluster}}'
{table["columns"]}
ENGINE = Replicated{table["engine"]}({path})
{table["order"]}SETTINGS replicated_deduplication_window = {table["window"]}
COMMENT {table["comment"]};

CREATE TABLE IF NOT EXISTS longtake.{name} ON CLUSTER '{{cluster}}' AS longtake_shard.{name}
ENGINE = Distributed('{{cluster}}', longtake_shard, {name}, cityHash64(job_id));
"""


def main() -> None:
    """Write them all."""
    TOPICS_FILE.write_text(topics_page())
    USERS_FILE.write_text(users_page())
    ALERTS_FILE.write_text(alerts_page())
    CLUSTER_FILE.write_text(cluster_page())


if __name__ == "__main__":
    main()
