"""The one configuration record: built once by `main()`, from `LONGTAKE_*` environment variables, and passed down."""

from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


def _state_home() -> Path:
    return Path.home() / ".local" / "state" / "longtake"


def _cache_home() -> Path:
    return Path.home() / ".cache" / "longtake"


class Settings(BaseSettings):
    """Where the line's services are and how its processes behave. An empty address means: the local stack of `state`."""

    model_config = SettingsConfigDict(env_prefix="LONGTAKE_", frozen=True, extra="forbid")

    kafka: str = ""
    """Bootstrap servers, `host:port,host:port`."""
    clickhouse: str = ""
    """`http://user@host:port/database`."""
    clickhouse_password: SecretStr = SecretStr("")
    registry_password: SecretStr = SecretStr("")
    """Of the schema registry that `longtake registry import` fills."""
    objects: str = ""
    """URL of the object store: `file:///path`, `s3://bucket/prefix`, `gs://`, `az://`."""
    state: Path = Field(default_factory=_state_home)
    """Folder of the local stack: data, logs, pid file. Nothing is written outside it and `cache`."""
    cache: Path = Field(default_factory=_cache_home)
    """Jars and libchdb, one copy per machine."""
    partitions: int = 4
    """Of every topic."""
    replication: int = 1
    session_timeout_ms: int = 20_000
    """Longer than a broker's restart, or static members are fenced by it."""
    max_poll_interval_ms: int = 300_000
    group_protocol: Literal["classic", "consumer"] = "classic"
    """Of the workers' groups; `consumer` is KIP-848, where the broker sets the session's length."""
    watchdog_s: float = 15.0
    """A loop that has not turned for this long ends its process."""
    scan_s: float = 30.0
    """How often the director looks for jobs without progress."""
    stale_s: float = 300.0
    """A job without progress for this long gets its outstanding requests sent again."""
    segment_attempts: int = 3
    """Failures of one segment before the job gives up."""
    slots: int = 4
    """Records in flight per worker."""
    segment_timeout_s: float = 600.0
    """A segment whose engine has not made a step for this long is given up."""
