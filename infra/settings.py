"""The one configuration record: built once by `main()`, from `LONGTAKE_*` environment variables, and passed down."""

import os
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, PositiveFloat, SecretStr, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict


def _state_home() -> Path:
    return Path.home() / ".local" / "state" / "longtake"


def _cache_home() -> Path:
    return Path.home() / ".cache" / "longtake"


class Settings(BaseSettings):
    """Where the line's services are and how its processes behave. An empty address means: the local stack of `state`.

    Each password can also come from a file, `LONGTAKE_KAFKA_PASSWORD_FILE` instead of `LONGTAKE_KAFKA_PASSWORD`; so can webhooks.
    """

    model_config = SettingsConfigDict(env_prefix="LONGTAKE_", frozen=True, extra="forbid", hide_input_in_errors=True)

    kafka: str = ""
    """Bootstrap servers, `host:port,host:port`."""
    kafka_ca: Path | None = None
    """PEM file of the authorities that may vouch for a broker. With it, or with a user, every connection is TLS."""
    kafka_certificate: Path | None = None
    """PEM file of this client's certificate and what it is signed by; `kafka_key` is its key."""
    kafka_key: Path | None = None
    kafka_user: str = ""
    """SASL/SCRAM-SHA-512, always inside TLS; empty: the certificate says who this is."""
    kafka_password: SecretStr = SecretStr("")
    clickhouse: str = ""
    """`http://user@host:port/database`."""
    clickhouse_password: SecretStr = SecretStr("")
    clickhouse_reader_password: SecretStr = SecretStr("")
    """Of `longtake_reader`, who asks the queries of `longtake sql`; empty: the user of the address asks them, reading only."""
    registry_password: SecretStr = SecretStr("")
    """Of the schema registry that `longtake registry import` fills."""
    webhooks: SecretStr = SecretStr("")
    """Who is told of failed jobs and the like: a JSON list, docs/operations.md. Addresses of chats are secrets."""
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
    metrics_port: int = 0
    """Of this process's metrics and probes; 0: none. `longtake up` gives one to each."""
    metrics_host: str = "127.0.0.1"
    trace_endpoint: str = ""
    """Address of an OTLP receiver, `http://collector:4318`, without a path; empty: no traces."""
    trace_share: float = Field(default=1.0, ge=0, le=1)
    """Of the jobs whose traces are told; those in which something failed are always."""
    trace_shares: dict[str, Annotated[float, Field(ge=0, le=1)]] = Field(default_factory=dict)
    """`{"director": 0.1}`: of those jobs, the share in which the spans of this service are told; 1 for services not named."""
    logs: Literal["text", "json"] = "text"
    """Of workers and the door: a line for a person, or an object with job and trace id for a program."""
    door_host: str = "127.0.0.1"
    door_port: int = 8300
    door_viewer_password: SecretStr = SecretStr("")
    """Who may look at jobs at the door. On loopback nobody needs one."""
    door_operator_password: SecretStr = SecretStr("")
    """Who may also submit, cancel and retry."""
    watchdog_s: float = 15.0
    """A loop that has not turned for this long ends its process."""
    scan_s: float = 30.0
    """How often the director looks for jobs without progress."""
    stale_s: float = 300.0
    """A job without progress for this long gets its outstanding requests sent again."""
    segment_attempts: int = 3
    """Failures of one segment before the job gives up."""
    jobs_in_flight: int = Field(default=16, ge=1)
    """Jobs that run at once, per partition; the others wait in the director's table."""
    tenant_jobs_in_flight: int = Field(default=8, ge=1)
    """Of one tenant, per partition."""
    tenant_jobs_queued: int = Field(default=10_000, ge=1)
    """Jobs of one tenant that may wait, per partition: beyond it prompts are refused."""
    tenant_weights: dict[str, PositiveFloat] = Field(default_factory=dict)
    """`{"studio": 3}`: its share of the frames when others wait as well; 1 for tenants not named."""
    slots: int = 4
    """Records in flight per worker."""
    drain_s: float = 5.0
    """How long a worker that is told to stop may finish what it has in hand; the rest comes again."""
    min_free_bytes: int = Field(default=2 << 30, ge=0)
    """Below it, on the disk of `state` or of a local object store, no new job starts; jobs wait in the director's table."""
    sweep_s: float = Field(default=3600.0, gt=0)
    """How often the object store is swept; every minute while the disk is nearly full."""
    sweep_grace_s: float = Field(default=6 * 3600.0, ge=0)
    """Longer than a worker takes from the first object it stores for a segment to the event that names it."""
    keep_failed_s: float = Field(default=7 * 86400.0, ge=0)
    """What a failed or cancelled job has, so that a retry need not make it again."""
    keep_manifests_s: float = Field(default=7 * 86400.0, ge=0)
    """Answers to requests: as long as a request is on its topic."""
    keep_latents_s: float = Field(default=86400.0, ge=0)
    """Of a finished job, like the next four."""
    keep_frames_s: float = Field(default=0.0, ge=0)
    keep_pieces_s: float = Field(default=0.0, ge=0)
    keep_references_s: float = Field(default=0.0, ge=0)
    keep_videos_s: float | None = Field(default=None, ge=0)
    """None: for ever."""
    warm: str = ""
    """What a generate worker makes ready before it takes work: `causal_dit 832x480 config=self-forcing-1.3b`; docs/engines.md."""
    asset_cache_bytes: int = Field(default=2 << 30, ge=0)
    """Of assets on this machine's disk, in `state`, for all its processes together."""
    asset_nodes: dict[str, str] = Field(default_factory=dict)
    """`{"m1": "eu", "m2": "us"}`: the machines that keep assets and their regions; empty: each keeps what it uses."""
    asset_node: str = ""
    """Which of them this is; empty: the one of its host name."""
    segment_timeout_s: float = 600.0
    """A segment whose engine has not made a step for this long is given up."""

    @model_validator(mode="before")
    @classmethod
    def _read_password_files(cls, values: dict[str, Any]) -> dict[str, Any]:
        for name in (name for name in cls.model_fields if name.endswith("_password") or name == "webhooks"):
            file = os.environ.get(f"LONGTAKE_{name.upper()}_FILE")
            if file and not values.get(name):
                try:
                    values[name] = Path(file).read_text(encoding="utf-8").rstrip("\r\n")
                except (OSError, UnicodeDecodeError) as error:
                    raise ValueError(f"LONGTAKE_{name.upper()}_FILE cannot be read: {error}") from error
        return values

    @model_validator(mode="after")
    def _check_access(self) -> Self:
        if urlsplit(self.clickhouse).password:
            raise ValueError("the password belongs in LONGTAKE_CLICKHOUSE_PASSWORD, not in the address")
        if urlsplit(self.trace_endpoint).password:
            raise ValueError("credentials of traces belong in OTEL_EXPORTER_OTLP_HEADERS, not in the address")
        if urlsplit(self.objects).password or urlsplit(self.objects).query:
            raise ValueError(
                "LONGTAKE_OBJECTS is a plain URL: credentials belong in the environment, see docs/security.md"
            )
        if (self.kafka_certificate is None) != (self.kafka_key is None):
            raise ValueError("LONGTAKE_KAFKA_CERTIFICATE and LONGTAKE_KAFKA_KEY go together")
        if self.kafka_user and not self.kafka_password.get_secret_value():
            raise ValueError("LONGTAKE_KAFKA_USER needs LONGTAKE_KAFKA_PASSWORD or LONGTAKE_KAFKA_PASSWORD_FILE")
        return self
