"""ClickHouse's users: what the writer and the reader may do, and the reader's limits. One list, for a server and for the local engine.

`python -m infra.clickhouse_users` writes infra/deploy/clickhouse/users.sql, which is for a server. The local engine has no
storage for users made by SQL: it gets the same rights and limits as configuration.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

WRITER, READER = "longtake_writer", "longtake_reader"
FILE = Path(__file__).parent / "deploy" / "clickhouse" / "users.sql"

ENGINES = ("MergeTree", "ReplacingMergeTree")
"""Of the tables of schemas/clickhouse."""


def rights(database: str) -> Mapping[str, tuple[str, ...]]:
    """What each user is granted: the writer what migrations and inserts need."""
    return {
        WRITER: (
            f"SELECT, INSERT, ALTER, CREATE DATABASE, CREATE TABLE, CREATE VIEW, DROP VIEW ON {database}.*",
            f"DROP TABLE ON {database}._tmp_replace_*",  # what CREATE OR REPLACE VIEW leaves behind for a moment
            *(f"TABLE ENGINE ON {engine}" for engine in ENGINES),
        ),
        READER: (f"SELECT ON {database}.*",),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A setting of the reader's queries; a query may set 1 to `most` (0 would mean: no limit). `most` 0: it cannot be changed."""

    value: int
    most: int = 0


LIMITS: Mapping[str, Limit] = {
    "readonly": Limit(value=2),
    "allow_ddl": Limit(value=0),
    "allow_introspection_functions": Limit(value=0),
    "max_execution_time": Limit(value=30, most=300),
    "max_memory_usage": Limit(value=1 << 30, most=2 << 30),
    "max_rows_to_read": Limit(value=1_000_000_000, most=10_000_000_000),
    "max_result_rows": Limit(value=1_000_000, most=10_000_000),
    "max_result_bytes": Limit(value=256 << 20, most=1 << 30),
    "max_threads": Limit(value=4, most=8),
    "max_concurrent_queries_for_user": Limit(value=4),
    "max_bytes_before_external_group_by": Limit(value=0),
    "max_bytes_before_external_sort": Limit(value=0),
}
"""`readonly` 2: no change of data, and settings only within these limits. Four scanning readers slow inserts down sixfold."""


def users_sql() -> str:
    """Statements for an administrator of a ClickHouse server, with the two passwords' SHA-256 to be filled in."""
    grants = "\n".join(f"GRANT {right} TO {user};" for user, all_of in rights("longtake").items() for right in all_of)
    profile = ",\n    ".join(_setting(name, limit) for name, limit in LIMITS.items())
    return f"""\
-- Written by `python -m infra.clickhouse_users`. For an administrator, once; it can be run again.
-- Put the SHA-256 of a long random password in the place of each WRITER_SHA256 and READER_SHA256, and the database's name
-- in the place of `longtake` if it has another one. HOST ANY is right behind a network policy; narrow it where you can.
-- access.xml beside this file belongs into the server's config.d: without it, every user can read most system tables.

CREATE SETTINGS PROFILE OR REPLACE {READER} SETTINGS
    {profile};

CREATE USER IF NOT EXISTS {WRITER} IDENTIFIED WITH sha256_hash BY 'WRITER_SHA256' HOST ANY;
CREATE USER IF NOT EXISTS {READER} IDENTIFIED WITH sha256_hash BY 'READER_SHA256' HOST ANY SETTINGS PROFILE '{READER}';

{grants}
"""


def profiles_xml() -> str:
    """The reader's limits for the local engine, inside `<profiles>`."""
    values = "".join(f"<{name}>{limit.value}</{name}>" for name, limit in LIMITS.items())
    constraints = "".join(
        f"<{name}><min>1</min><max>{limit.most}</max></{name}>" if limit.most else f"<{name}><const/></{name}>"
        for name, limit in LIMITS.items()
    )
    return f"<{READER}>{values}<constraints>{constraints}</constraints></{READER}>"


def users_xml(database: str, digests: Mapping[str, str]) -> str:
    """Both users for the local engine, inside `<users>`. `digests`: the SHA-256 of each one's password."""
    return "".join(
        f"<{user}><password_sha256_hex>{digests[user]}</password_sha256_hex><networks><ip>127.0.0.1</ip></networks>"
        f"<profile>{READER if user == READER else 'default'}</profile>"
        f"<grants>{''.join(f'<query>GRANT {right}</query>' for right in all_of)}</grants></{user}>"
        for user, all_of in rights(database).items()
    )


def _setting(name: str, limit: Limit) -> str:
    return f"{name} = {limit.value} MIN 1 MAX {limit.most}" if limit.most else f"{name} = {limit.value} CONST"


if __name__ == "__main__":
    FILE.write_text(users_sql())
