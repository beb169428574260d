"""The alert rules under a real Prometheus."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import yaml

from infra.local.ports import free_port
from infra.local.services import environment
from infra.settings import Settings
from tests.deploy.tools import DEPLOY, run_tool

RULES = DEPLOY / "prometheus" / "alerts.yaml"
RUNBOOK = DEPLOY.parents[1] / "docs" / "runbook.md"


def alerts() -> list[dict[str, object]]:
    (group,) = yaml.safe_load(RULES.read_text())["groups"]
    return group["rules"]


def test_every_alert_fires_on_what_it_is_for_and_not_on_what_is_normal() -> None:
    done = run_tool("promtool", "test", "rules", RULES.with_name("alerts.test.yaml"))
    assert done.returncode == 0, done.stdout + done.stderr
    tested = set(re.findall(r"alertname: (\w+)", RULES.with_name("alerts.test.yaml").read_text()))
    assert tested == {rule["alert"] for rule in alerts()}


def test_every_alert_says_where_to_read_on() -> None:
    headings = re.findall(r"^#+ (.+)$", RUNBOOK.read_text(), re.MULTILINE)
    anchors = {re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    for rule in alerts():
        page, _, anchor = rule["annotations"]["runbook_url"].partition("#")  # type: ignore[index]
        assert page == "docs/runbook.md"
        assert anchor in anchors, f"{rule['alert']} links to #{anchor}"


def test_an_alert_fires_within_thirty_seconds_of_a_stall(bus_settings: Settings, tmp_path: Path) -> None:
    settings = bus_settings.model_copy(update={"metrics_port": free_port()})
    with _director(settings, tmp_path) as director, _prometheus(settings.metrics_port, tmp_path) as port:
        _until(lambda: _value(port, 'up{job="longtake"}') == "1", 30)
        assert _firing(port) == []
        director.send_signal(signal.SIGSTOP)
        stalled_s = time.monotonic()
        _until(lambda: "LongtakeWorkerAway" in _firing(port), 30)
        assert time.monotonic() - stalled_s <= 30
        director.send_signal(signal.SIGCONT)


@contextmanager
def _director(settings: Settings, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "infra.cli.worker", "director"]
    with (folder / "director.log").open("wb") as log:
        process = subprocess.Popen(command, env=environment(settings), stdout=log, stderr=log)
    try:
        _until(lambda: _ready(settings.metrics_port), 30)
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def _prometheus(target: int, folder: Path) -> Iterator[int]:
    scrape = {
        "job_name": "longtake",
        "static_configs": [{"targets": [f"127.0.0.1:{target}"], "labels": {"role": "director"}}],
    }
    config = {
        "global": {"scrape_interval": "2s", "scrape_timeout": "2s", "evaluation_interval": "2s"},
        "rule_files": [str(RULES)],
        "scrape_configs": [scrape],
    }
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
    port = free_port()
    command = [
        Path(sys.prefix) / "bin" / "prometheus",
        f"--config.file={folder / 'prometheus.yaml'}",
        f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={"PATH": os.environ["PATH"]})
    try:
        _until(lambda: _get(port, "/-/ready").is_success, 30)
        yield port
    finally:
        process.kill()
        process.wait()


def _until(true: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if true():
                return
        except httpx.TransportError:
            pass
        time.sleep(0.2)
    raise AssertionError(f"not in {seconds} s")


def _ready(port: int) -> bool:
    return _get(port, "/readyz").is_success


def _get(port: int, path: str) -> httpx.Response:
    return httpx.get(f"http://127.0.0.1:{port}{path}", timeout=5)


def _value(port: int, query: str) -> str:
    found = httpx.get(f"http://127.0.0.1:{port}/api/v1/query", params={"query": query}, timeout=5).json()
    result = found["data"]["result"]
    return result[0]["value"][1] if result else ""


def _firing(port: int) -> list[str]:
    found = _get(port, "/api/v1/alerts").json()["data"]["alerts"]
    return [alert["labels"]["alertname"] for alert in found if alert["state"] == "firing"]
