"""The console's pages with many jobs, and who may see them."""

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import Page, expect
from pydantic import SecretStr

from infra.bus.writer import Writer
from infra.settings import Settings
from infra.web.app import new_app, new_parts
from infra.web.console.pages import STATIC
from infra.web.console.questions import questions
from infra.web.console.site import add_console
from infra.web.sessions import Role, Sessions
from infra.web.view import View
from schemas.headers import trace_root
from schemas.records import JobChanged, Stage
from tests.bus.line import eventually
from tests.schemas.samples import sample
from tests.web.behind import behind_ms, other_stage
from tests.web.browser import chromium, needs_chromium, opened, wait_for
from tests.web.serving import served

MANY = 10_000
PASSWORDS = {"door_viewer_password": SecretStr("look"), "door_operator_password": SecretStr("act")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A console whose line says what the test says."""

    client: TestClient
    view: View


@contextmanager
def site(folder: Path, **values: Any) -> Iterator[Site]:
    """No broker: what these tests do never reaches one."""
    settings = Settings(
        kafka="127.0.0.1:1",
        clickhouse="http://127.0.0.1:1/longtake",
        objects=(folder / "objects").as_uri(),
        state=folder,
        **values,
    )
    with Writer(settings) as writer:
        view = View(settings)
        parts = new_parts(settings, view, writer)
        app = new_app(parts)
        add_console(app, settings, parts)
        yield Site(client=TestClient(app, base_url="http://127.0.0.1", follow_redirects=False), view=view)


@cache
def example() -> JobChanged:
    event = sample(JobChanged)
    assert isinstance(event, JobChanged)
    return event


def job(number: int, stage: Stage = Stage.GENERATING) -> JobChanged:
    return replace(example(), job_id=f"job-{number}", stage=stage, submitted_us=number + 1, video=None)


def painted_ms(page: Page, url: str) -> float:
    page.goto(url)
    return float(wait_for(page, "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"))


@needs_chromium
def test_ten_thousand_jobs_are_there_at_once_and_nothing_jumps_while_they_change(tmp_path: Path) -> None:
    with site(tmp_path) as here, served(here.client.app) as base, chromium() as browser, opened(browser) as page:
        for number in range(MANY):
            here.view.take(job(number))
        assert min(painted_ms(page, f"{base}/console/jobs") for _ in range(3)) < 1000
        expect(page.locator("#link")).to_have_text("live")
        expect(page.locator("tbody tr")).to_have_count(50)
        page.evaluate(
            "window.moved = 0; new PerformanceObserver(list => list.getEntries().forEach(e => moved += e.value))"
            ".observe({type: 'layout-shift', buffered: true})"
        )
        place = page.locator("[id='job-job-9990']").bounding_box()
        for number in range(MANY, MANY + 20):
            here.view.take(job(number))
        here.view.take(job(9990, Stage.FINISHED))
        expect(page.locator("[id='job-job-9990'] .stage")).to_have_text("finished")
        expect(page.locator("#newer")).to_have_text("20 new jobs: show")
        expect(page.locator("#count-all")).to_have_text(str(MANY + 20))
        assert page.locator("[id='job-job-9990']").bounding_box() == place
        assert page.evaluate("moved") == 0


@needs_chromium
def test_what_kafka_says_is_on_the_page_within_a_second(bus_settings: Settings) -> None:
    with Writer(bus_settings) as writer, View(bus_settings) as view:
        writer.publish([job(0)], trace_root("a"))
        assert view.caught_up(30)
        eventually(lambda: view.job("job-0") is not None, "the job")
        parts = new_parts(bus_settings, view, writer)
        app = new_app(parts)
        add_console(app, bus_settings.model_copy(update={"clickhouse": "http://127.0.0.1:1/longtake"}), parts)
        with served(app) as base, chromium() as browser, opened(browser) as page:
            page.goto(f"{base}/console/jobs")
            expect(page.locator("#link")).to_have_text("live")
            times_ms, changed = [], job(0)
            for _ in range(5):
                changed = other_stage(changed)
                times_ms.append(behind_ms(page, writer, changed))
            assert min(times_ms) <= 1000, times_ms


def test_pages_stay_as_they_are_while_new_jobs_come(tmp_path: Path) -> None:
    with site(tmp_path) as here:
        for number in range(120):
            here.view.take(job(number))
        second = here.client.get("/console/jobs?page=2&until=120").text
        for number in range(120, 130):
            here.view.take(job(number))
        rows = re.compile(r'<tr id="(job-job-\d+)"')
        again = here.client.get("/console/jobs?page=2&until=120").text
        assert rows.findall(again) == rows.findall(second) == [f"job-job-{n}" for n in range(69, 19, -1)]
        assert "10 new jobs" in again


def test_text_from_outside_is_never_markup(tmp_path: Path) -> None:
    with site(tmp_path) as here:
        here.view.take(replace(job(0), title="<script>alert(1)</script>"))
        for path in ("/console/jobs", "/console/jobs/job-0"):
            answer = here.client.get(path)
            assert answer.status_code == 200
            assert "<script>alert" not in answer.text
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy


def test_a_page_is_there_while_clickhouse_is_away(tmp_path: Path) -> None:
    with site(tmp_path) as here:
        here.view.take(job(0))
        assert "ClickHouse is away" in here.client.get("/console/jobs/job-0").text
        assert "ClickHouse is away" in here.client.post("/console/sql", data={"query": "SELECT 1"}).text
        assert here.client.get("/console/jobs/job-0/frames/0.jpg").status_code == 404


def test_without_kafka_the_pages_that_need_it_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("infra.bus.topics._WAIT_S", 0.2)
    with site(tmp_path) as here:
        here.view.take(job(0))
        for path in ("/console/releases", "/console/dead-letters", "/console/jobs/job-0/events"):
            answer = here.client.get(path)
            assert (answer.status_code, "Kafka is away" in answer.text) == (503, True)


def test_whoever_has_not_signed_in_is_led_to_the_form_and_back(tmp_path: Path) -> None:
    with site(tmp_path, **PASSWORDS) as here:
        away = here.client.get("/console/fleet?x=1")
        assert (away.status_code, away.headers["location"]) == (303, "/console/sign-in?next=%2Fconsole%2Ffleet%3Fx%3D1")
        assert here.client.post("/console/sign-in", data={"password": "guess"}).status_code == 403
        given = {"password": "look", "next": "/console/fleet?x=1"}
        back = here.client.post("/console/sign-in", data=given)
        assert (back.status_code, back.headers["location"]) == (303, "/console/fleet?x=1")
        cookie = back.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert here.client.get("/console/jobs").status_code == 200
        assert here.client.get("/v1/jobs").status_code == 200, "the pages' scripts use the door"
        here.client.post("/console/sign-out")
        assert here.client.get("/console/jobs").status_code == 303


@pytest.mark.parametrize(
    "target", ["https://evil.example/console/", "//evil.example/console/", "/\\evil.example", "/v1/x"]
)
def test_signing_in_leads_nowhere_else(tmp_path: Path, target: str) -> None:
    with site(tmp_path, **PASSWORDS) as here:
        back = here.client.post("/console/sign-in", data={"password": "act", "next": target})
        assert back.headers["location"] == "/console/jobs"


def test_viewers_look_and_operators_act_and_no_other_site_does(tmp_path: Path) -> None:
    wish = {"job_id": "a", "text": ""}  # an operator gets as far as the form's own complaint
    for password, status in (("look", 403), ("act", 422)):
        with site(tmp_path, **PASSWORDS) as here:
            here.client.post("/console/sign-in", data={"password": password})
            assert here.client.post("/console/submit", data=wish).status_code == status
            evil = {"Origin": "https://evil.example"}
            assert here.client.post("/console/submit", data=wish, headers=evil).status_code == 403
            own = {"Origin": "http://127.0.0.1"}
            assert here.client.post("/console/submit", data=wish, headers=own).status_code == status


def test_a_session_cannot_be_made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, other = Sessions(), Sessions()
    value = ours.make(Role.VIEWER)
    assert ours.role(value) == Role.VIEWER
    assert other.role(value) == Role.NOBODY
    assert ours.role(value.replace("1.", "2.", 1)) == Role.NOBODY
    assert [ours.role(text) for text in ("", ".", "2.9.é", "x")] == [Role.NOBODY] * 4
    monkeypatch.setattr("infra.web.sessions.SESSION_S", -1)
    assert ours.role(ours.make(Role.OPERATOR)) == Role.NOBODY


def test_scripts_of_others_are_the_bytes_they_are_said_to_be_and_come_with_their_licence() -> None:
    known = {entry["file"]: entry for entry in json.loads((STATIC / "vendored.json").read_text())}
    assert set(known) == {path.name for path in STATIC.glob("*.min.*")}
    for name, entry in known.items():
        assert hashlib.sha256((STATIC / name).read_bytes()).hexdigest() == entry["sha256"], name
        assert (STATIC / entry["licence"]).read_text().count("\n") > 5


def test_the_questions_are_those_of_the_documentation() -> None:
    asked = questions()
    assert len(asked) >= 10
    text = (Path(__file__).parents[2] / "docs" / "sql.md").read_text()
    assert len(asked) == len(re.findall(r"^## .*\?$", text, re.MULTILINE))
    assert all(question.sql.startswith("SELECT") for question in asked)
