"""Every query of the dashboards is asked of a real Prometheus and a real ClickHouse that a real job went through."""

import json
import re
from collections.abc import Iterator

import pytest

from infra.bus.writer import publish
from infra.clickhouse import connect
from infra.deploy.grafana import build
from infra.deploy.grafana.clickhouse import bounded
from infra.local.services import filled
from infra.local.stack import attached
from infra.local.supervisor import WORKERS
from infra.settings import Settings
from schemas.headers import trace_root
from schemas.records import PromptSubmitted
from tests.metrics.prometheus import ask, running_prometheus, until

NEEDS_A_GPU = re.compile(r"longtake_gpu_")


def queries(name: str) -> list[str]:
    panels = json.loads((build.DASHBOARDS / f"{name}.json").read_text())["panels"]
    return [target.get("expr") or target["rawSql"] for panel in panels for target in panel["targets"]]


@pytest.mark.parametrize("name", build.PAGES)
def test_a_dashboard_is_written_from_its_list(name: str) -> None:
    assert (build.DASHBOARDS / f"{name}.json").read_text() == build.page(name) + "\n", (
        "python -m infra.deploy.grafana.build"
    )
    assert len(queries(name)) >= 8


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Settings, int]]:
    """A stack that has made a video, and the Prometheus that watched it."""
    folder = tmp_path_factory.mktemp("line")
    settings = Settings(state=folder / "state")
    with attached(settings) as services:
        scrape = {"file_sd_configs": [{"files": [str(settings.state / "metrics.json")], "refresh_interval": "2s"}]}
        found = filled(settings, services)
        with running_prometheus(scrape, folder) as port:
            until(lambda: len(ask(port, "longtake_ready == 1")) == len(WORKERS), 60)
            prompt = PromptSubmitted(
                job_id="film", text="A red ball rolls across a table", duration_s=4, width=320, height=180
            )
            publish(found, [prompt], trace_root("film"))
            until(lambda: ask(port, 'longtake_jobs_ended_total{stage="finished"} > 0') != [], 90)
            # A rate needs a second scrape.
            for counter in ("longtake_finish_lag_seconds_count", "longtake_jobs_ended_total"):
                until(lambda counter=counter: ask(port, f"rate({counter}[1m]) >= 0") != [], 30)
            yield found, port


@pytest.mark.parametrize("name", ["line", "fleet"])
def test_prometheus_answers_every_query(line: tuple[Settings, int], name: str) -> None:
    _, port = line
    empty = [q for q in queries(name) if not ask(port, q.replace("$__rate_interval", "5m"))]
    assert [q for q in empty if not NEEDS_A_GPU.search(q)] == []


def test_clickhouse_answers_every_query(line: tuple[Settings, int]) -> None:
    settings, _ = line
    client = connect(settings)
    for query in queries("quality"):
        asked = bounded(query, "now() - INTERVAL 1 HOUR", "now()", 60)
        assert "$" not in asked
        assert client.query(asked).result_rows, query
