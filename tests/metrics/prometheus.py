"""A real Prometheus for a test."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx
import yaml

from infra.local.ports import free_port
from tests.deploy.tools import DEPLOY

RULES = DEPLOY / "prometheus" / "alerts.yaml"
QUICK = {"scrape_interval": "2s", "scrape_timeout": "2s", "evaluation_interval": "2s"}
DEPLOYED: Mapping[str, str] = yaml.safe_load((DEPLOY / "compose" / "prometheus.yaml").read_text())["global"]


@contextmanager
def running_prometheus(
    scrape: dict[str, Any], folder: Path, times: Mapping[str, str] = MappingProxyType(QUICK)
) -> Iterator[int]:
    """The port of a Prometheus with our rules that scrapes what `scrape` (a `scrape_configs` entry) says."""
    tool = Path(sys.prefix) / "bin" / "prometheus"
    assert tool.exists(), "prometheus is missing: 'make deploy-tools' unpacks Debian's"
    config = {
        "global": dict(times),
        "rule_files": [str(RULES)],
        "scrape_configs": [{"job_name": "longtake"} | scrape],
    }
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
    port = free_port()
    command = [
        tool,
        f"--config.file={folder / 'prometheus.yaml'}",
        f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={"PATH": os.environ["PATH"]})
    try:
        until(lambda: get(port, "/-/ready").is_success, 30)
        yield port
    finally:
        process.kill()
        process.wait()


def until(true: Callable[[], bool], seconds: float) -> None:
    """Wait until it is; a door that is not open yet is not true yet."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if true():
                return
        except httpx.TransportError:
            pass
        time.sleep(0.2)
    raise AssertionError(f"not in {seconds} s")


def get(port: int, path: str) -> httpx.Response:
    return httpx.get(f"http://127.0.0.1:{port}{path}", timeout=5)


def ask(port: int, query: str) -> list[dict[str, Any]]:
    """What an instant query finds. An error of the query fails."""
    answer = httpx.get(f"http://127.0.0.1:{port}/api/v1/query", params={"query": query}, timeout=10).json()
    assert answer["status"] == "success", f"{query}: {answer}"
    return answer["data"]["result"]
