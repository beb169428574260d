"""ClickHouse on loopback: one process with the engine of libchdb, HTTP and native protocol, and three users with passwords:
the owner of it all, and the writer and the reader of one database.
"""

import hashlib
import os
import secrets
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from pydantic import SecretStr

from infra.clickhouse_users import READER, WRITER, profiles_xml, users_xml
from infra.local.ports import LOOPBACK, stable_pair
from infra.local.process import Process, ServiceError

USER = "longtake"
DATABASE = "longtake"
"""Of the writer and the reader."""
_LISTENER = Path(__file__).with_name("listener.py")
_READY_S = 60.0
_STOP_S = 10.0
_POLL_S = 0.02

# Caches far below the memory cap: an engine that is out of memory fails queries before it empties a cache.
_CONFIG = """\
<clickhouse>
  <users_config>{folder}/users.xml</users_config>
  <access_control_improvements>
    <select_from_system_db_requires_grant>true</select_from_system_db_requires_grant>
    <select_from_information_schema_requires_grant>true</select_from_information_schema_requires_grant>
  </access_control_improvements>
  <logger><console>1</console></logger>
  <max_server_memory_usage>2147483648</max_server_memory_usage>
  <mark_cache_size>67108864</mark_cache_size>
  <index_mark_cache_size>16777216</index_mark_cache_size>
  <uncompressed_cache_size>0</uncompressed_cache_size>
  <background_schedule_pool_size>8</background_schedule_pool_size>
</clickhouse>
"""

# The engine itself runs as `default`, without a password: its one query, which never ends, is the only one that this user may
# run at a time. So nobody gets in by that name, though the name is asked for from the same address.
_USERS = """\
<clickhouse>
  <profiles><default/>{profiles}</profiles>
  <quotas>
    <default/>
    <engine><interval><duration>2147483647</duration><queries>3</queries></interval></engine>
  </quotas>
  <users>
    <default>
      <no_password/>
      <networks><ip>127.0.0.1</ip></networks>
      <quota>engine</quota>
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
    {users}
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

    def url_of(self, user: str) -> str:
        """The address of `DATABASE` for the writer or the reader."""
        return f"http://{user}@{LOOPBACK}:{self._ports[0]}/{DATABASE}"

    @property
    def tcp(self) -> str:
        """`host:port` of the native protocol, known from `start()` on."""
        return f"{LOOPBACK}:{self._ports[1]}"

    @property
    def password(self) -> SecretStr:
        """The owner's password, known from `start()` on."""
        return self.password_of(USER)

    def password_of(self, user: str) -> SecretStr:
        """The owner's, writer's or reader's password, known from `start()` on."""
        return SecretStr(self._password_file(user).read_text())

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
        # Not our environment, which has secrets: SELECT file('/proc/self/environ').
        self._process = Process(command, log=self.log, cwd=self.folder, env={"PATH": os.defpath, "LANG": "C.UTF-8"})
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
        digests: dict[str, str] = {}
        for user in (USER, WRITER, READER):
            file = self._password_file(user)
            if not file.exists():
                file.touch(mode=0o600)
                file.write_text(secrets.token_urlsafe(24))
            digests[user] = hashlib.sha256(file.read_bytes()).hexdigest()
        users = _USERS.format(
            user=USER, digest=digests[USER], profiles=profiles_xml(), users=users_xml(DATABASE, digests)
        )
        (self.folder / "users.xml").write_text(users)
        (self.folder / "clickhouse.xml").write_text(_CONFIG.format(folder=self.folder))

    def _password_file(self, user: str) -> Path:
        return self.folder / ("password" if user == USER else f"password-{user}")

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{LOOPBACK}:{self._ports[0]}/ping", timeout=1) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            return False
