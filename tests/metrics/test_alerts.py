"""The alert rules under a real Prometheus."""

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from infra.local.ports import free_port
from infra.local.services import environment
from infra.settings import Settings
from tests.deploy.tools import DEPLOY, run_tool
from tests.metrics.prometheus import DEPLOYED, RULES, ask, get, running_prometheus, until

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


def test_an_alert_fires_within_thirty_seconds_of_a_stall(
    bus_settings: Settings, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    settings = bus_settings.model_copy(update={"metrics_port": free_port()})
    target = {"targets": [f"127.0.0.1:{settings.metrics_port}"], "labels": {"role": "director"}}
    scrape = {"static_configs": [target]}
    with _director(settings, tmp_path) as director, running_prometheus(scrape, tmp_path, DEPLOYED) as port:
        until(lambda: ask(port, 'up{job="longtake"} == 1') != [], 30)
        assert _firing(port) == []
        director.send_signal(signal.SIGSTOP)
        stalled_s = time.monotonic()
        until(lambda: "LongtakeWorkerAway" in _firing(port), 30)
        took_s = time.monotonic() - stalled_s
        record_property("alert_s", took_s)
        assert took_s <= 30
        director.send_signal(signal.SIGCONT)


@contextmanager
def _director(settings: Settings, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "infra.cli.worker", "director"]
    with (folder / "director.log").open("wb") as log:
        process = subprocess.Popen(command, env=environment(settings), stdout=log, stderr=log)
    try:
        until(lambda: get(settings.metrics_port, "/readyz").is_success, 30)
        yield process
    finally:
        process.kill()
        process.wait()


def _firing(port: int) -> list[str]:
    found = get(port, "/api/v1/alerts").json()["data"]["alerts"]
    return [alert["labels"]["alertname"] for alert in found if alert["state"] == "firing"]
