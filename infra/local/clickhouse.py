"""ClickHouse on loopback: one process with the engine of libchdb, HTTP and native protocol, and one user with a password."""

import hashlib
import secrets
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from pydantic import SecretStr

from infra.local.ports import LOOPBACK, stable_pair
from infra.local.process import Process, ServiceError

USER = "longtake"
_LISTENER = Path(__file__).with_name("listener.py")
_READY_S = 60.0
_STOP_S = 10.0
_POLL_S = 0.02

# Caches far below the memory cap: an engine that is out of memory fails queries before it empties a cache.
_CONFIG = """\
<clickhouse>
  <users_config>{folder}/users.xml</users_config>
  <logger><console>1</console></logger>
  <max_server_memory_usage>2147483648</max_server_memory_usage>
  <mark_cache_size>67108864</mark_cache_size>
  <index_mark_cache_size>16777216</index_mark_cache_size>
  <uncompressed_cache_size>0</uncompressed_cache_size>
  <background_schedule_pool_size>8</background_schedule_pool_size>
</clickhouse>
"""

# The engine itself runs as `default`, without a password; over the network that user may do no more than it does.
_USERS = """\
<clickhouse>
  <profiles><default/></profiles>
  <quotas><default/></quotas>
  <users>
    <default>
      <no_password/>
      <networks><ip>127.0.0.1</ip></networks>
      <grants>
        <query>GRANT SYSTEM LISTEN ON *.*</query>
        <query>GRANT SELECT ON system.numbers</query>
      </grants>
    </default>
    <{user}>
      <password_sha256_hex>{digest}</password_sha256_hex>
      <networks><ip>127.0.0.1</ip></networks>
      <access_management>1</access_management>
    </{user}>
  </users>
</clickhouse>
"""


class LocalClickHouse:
    """Owns the listener process of one folder. Ports and password are chosen at the first start and kept."""

    def __init__(self, *, library: Path, folder: Path, log: Path) -> None:
        self.library = library
        self.folder = folder
        self.log = log
        self._process: Process | None = None
        self._ports = (0, 0)

    def url(self, database: str) -> str:
        """The address of `database`, as `Settings.clickhouse` wants it; known from `start()` on."""
        return f"http://{USER}@{LOOPBACK}:{self._ports[0]}/{database}"

    @property
    def tcp(self) -> str:
        """`host:port` of the native protocol, known from `start()` on."""
        return f"{LOOPBACK}:{self._ports[1]}"

    @property
    def password(self) -> SecretStr:
        """The user's password, known from `start()` on."""
        return SecretStr((self.folder / "password").read_text())

    @property
    def process(self) -> Process:
        """The listener's process. Raises: ServiceError before `start()`."""
        if self._process is None:
            raise ServiceError("ClickHouse was not started")
        return self._process

    def start(self) -> Process:
        """Start the process; `ready()` waits for it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if not any(self._ports):
            self._ports = stable_pair(self.folder / "ports.json")
        self._configure()
        ports = [str(port) for port in self._ports]
        command = [sys.executable, "-I", "-S", _LISTENER, self.library, self.folder, *ports]
        self._process = Process(command, log=self.log, cwd=self.folder)
        return self._process

    def ready(self) -> None:
        """Wait until it answers queries. Raises: ServiceError."""
        deadline = time.monotonic() + _READY_S
        while not self._answers():
            if not self.process.running() or time.monotonic() > deadline:
                raise self.process.failed("ClickHouse did not start")
            time.sleep(_POLL_S)

    def stop(self) -> None:
        """End it in order."""
        self.process.stop(_STOP_S)

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()

    def restart(self) -> None:
        """Start again on the same folder and ports, and wait until it is ready. Raises: ServiceError."""
        self.start()
        self.ready()

    def _configure(self) -> None:
        self.folder.chmod(0o700)
        password = self.folder / "password"
        if not password.exists():
            password.touch(mode=0o600)
            password.write_text(secrets.token_urlsafe(24))
        digest = hashlib.sha256(password.read_bytes()).hexdigest()
        (self.folder / "users.xml").write_text(_USERS.format(user=USER, digest=digest))
        (self.folder / "clickhouse.xml").write_text(_CONFIG.format(folder=self.folder))

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{LOOPBACK}:{self._ports[0]}/ping", timeout=1) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            return False
