"""The door on a real broker: what goes in is on the topics, what comes out is from them."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient
from prometheus_client import REGISTRY
from pydantic import SecretStr

from infra.bus.reader import Reader, event_of
from infra.bus.writer import Writer
from infra.objects import Objects
from infra.settings import Settings
from infra.web.access import Access, AccessError
from infra.web.app import new_app, new_parts
from infra.web.view import View
from schemas.codec import content_hash
from schemas.headers import trace_id, trace_root, traceparent_of
from schemas.records import CancelRequested, JobChanged, PromptSubmitted, RetryRequested, Stage, VideoFinished
from schemas.topics import Event
from tests.bus.line import eventually
from tests.schemas.samples import sample
from tests.web.serving import served

PROMPT = {"job_id": "boat", "text": "A boat crosses a calm bay at dawn", "duration_s": 4}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A door with its settings, and a writer for what the line says."""

    settings: Settings
    client: TestClient
    view: View
    writer: Writer

    def says(self, *events: Event) -> None:
        self.writer.publish(events, trace_root("line"), source="longtake/director")
        for event in events:  # of different partitions, whose records come in any order
            assert isinstance(event, JobChanged | VideoFinished)
            eventually(lambda event=event: _seen(self.view, event), "the view")


@pytest.fixture
def line(bus_settings: Settings) -> Iterator[Line]:
    with opened(bus_settings) as line:
        yield line


@contextmanager
def opened(settings: Settings) -> Iterator[Line]:
    with Writer(settings) as writer, View(settings) as view, _client(settings, view, writer) as client:
        assert view.caught_up(30)
        yield Line(settings=settings, client=client, view=view, writer=writer)


def _client(settings: Settings, view: View, writer: Writer) -> TestClient:
    return TestClient(new_app(new_parts(settings, view, writer)), base_url="http://127.0.0.1")


def changed(job_id: str, **values: Any) -> JobChanged:
    job = sample(JobChanged)
    assert isinstance(job, JobChanged)
    return replace(job, job_id=job_id, video=None, **values)


def _seen(view: View, event: JobChanged | VideoFinished) -> bool:
    job = view.job(event.job_id)
    return job is not None and event in (job.changed, job.video)


def test_what_is_asked_is_counted_by_route_and_never_by_job(line: Line) -> None:
    def count(**labels: str) -> float:
        return REGISTRY.get_sample_value("longtake_http_request_seconds_count", labels) or 0.0

    about = {"method": "GET", "route": "/v1/jobs/{job_id}", "status": "404"}
    before = count(**about)
    for job_id in ("nobody", "no-one"):
        line.client.get(f"/v1/jobs/{job_id}")
    assert count(**about) == before + 2
    assert line.client.get("/healthz").text == "ok"
    assert line.client.get("/no/such/page").status_code == 404
    assert count(method="GET", route="none", status="404") >= 1


def topic(settings: Settings, name: str) -> list[tuple[Event, str]]:
    with Reader.from_beginning(settings, [name]) as reader:
        return [(event_of(m), trace_id(traceparent_of(m.headers, otherwise=""))) for m in reader.to_end()]


def test_a_prompt_is_on_its_topic_when_the_door_says_so(line: Line) -> None:
    answer = line.client.post("/v1/jobs", json=PROMPT)
    assert answer.status_code == 202
    ((event, trace),) = topic(line.settings, PromptSubmitted.topic)
    assert isinstance(event, PromptSubmitted)
    assert answer.json() == {
        "job_id": "boat",
        "content_hash": content_hash(event),
        "trace_id": trace,
        "known": False,
    }


def test_the_same_job_again_is_known_and_another_content_is_a_conflict(line: Line) -> None:
    digest = line.client.post("/v1/jobs", json=PROMPT).json()["content_hash"]
    line.says(changed("boat", content_hash=digest, stage=Stage.GENERATING))
    again = line.client.post("/v1/jobs", json=PROMPT)
    assert (again.status_code, again.json()["known"]) == (200, True)
    other = line.client.post("/v1/jobs", json=PROMPT | {"text": "A boat sinks"})
    assert (other.status_code, other.json()["field"], other.json()["rule"]) == (409, "job_id", "content")
    assert len(topic(line.settings, PromptSubmitted.topic)) == 1


@pytest.mark.parametrize(
    ("body", "field", "rule"),
    [
        (b"", "value", "type"),
        (b"[]", "value", "type"),
        (b"\0\0\0\0\1", "value", "type"),
        (b'{"text": "a"}', "job_id", "required"),
        (b'{"job_id": "a/b", "text": "a fox runs"}', "job_id", "characters"),
        (b'{"job_id": "a", "text": "a fox runs", "fps": 0}', "fps", "range"),
        (b'{"job_id": "a", "text": "a fox runs", "colour": 1}', "colour", "unknown_field"),
    ],
)
def test_a_bad_prompt_is_refused_at_once_with_field_and_rule(line: Line, body: bytes, field: str, rule: str) -> None:
    answer = line.client.post("/v1/jobs", content=body)
    assert (answer.status_code, answer.json()["field"], answer.json()["rule"]) == (422, field, rule)
    assert topic(line.settings, PromptSubmitted.topic) == []


def test_jobs_are_listed_by_stage_newest_first(line: Line) -> None:
    states = [(f"j{n}", Stage.FINISHED if n % 2 else Stage.GENERATING) for n in range(4)]
    line.says(*(changed(name, stage=stage, submitted_us=n) for n, (name, stage) in enumerate(states)))
    page = line.client.get("/v1/jobs", params={"stage": "finished", "limit": 1}).json()
    assert ([job["job_id"] for job in page["jobs"]], page["total"]) == (["j3"], 2)
    assert line.client.get("/v1/jobs/j2").json()["job"]["stage"] == "generating"
    assert line.client.get("/v1/jobs/nobody").status_code == 404


def test_cancel_and_retry_are_requests_on_the_control_topic(line: Line) -> None:
    line.says(changed("boat", stage=Stage.GENERATING))
    assert line.client.post("/v1/jobs/boat/cancel", json={"reason": "enough"}).status_code == 202
    assert line.client.post("/v1/jobs/boat/retry", json={"from_segment": 2}).status_code == 202
    assert line.client.post("/v1/jobs/nobody/cancel", json={}).status_code == 404
    found = [event for event, _ in topic(line.settings, CancelRequested.topic)]
    assert found == [
        CancelRequested(job_id="boat", reason="enough"),
        RetryRequested(job_id="boat", from_segment=2),
    ]


def test_events_of_a_job_come_as_they_happen_and_again_after_a_lost_connection(bus_settings: Settings) -> None:
    with opened(bus_settings) as line, served(line.client.app) as base:
        line.says(changed("boat", stage=Stage.GENERATING))
        with httpx.stream("GET", f"{base}/v1/jobs/boat/events", timeout=30) as stream:
            events = stream.iter_lines()
            first = _event(events)
            assert (first["event"], json.loads(first["data"])["job"]["stage"]) == ("JobPage", "generating")
            started_s = time.monotonic()
            line.says(changed("other", stage=Stage.FINISHED), changed("boat", stage=Stage.FINISHED))
            second = _event(events)
            assert time.monotonic() - started_s < 10
            assert (second["event"], json.loads(second["data"])["stage"]) == ("JobChanged", "finished")
        before = {"Last-Event-ID": str(int(second["id"]) - 1)}
        with httpx.stream("GET", f"{base}/v1/events", headers=before, timeout=30) as stream:
            assert _event(stream.iter_lines()) == second


def test_a_finished_video_is_had_by_a_link_that_cannot_be_made_up(line: Line) -> None:
    blob = Objects(line.settings.objects).put_bytes("jobs/boat/videos/1-a.mp4", b"a film", "video/mp4")
    video = sample(VideoFinished)
    assert isinstance(video, VideoFinished)
    line.says(replace(video, job_id="boat", video=blob))
    moved = line.client.get("/v1/jobs/boat/video", follow_redirects=False)
    assert moved.status_code == 307
    link = moved.headers["location"]
    assert line.client.get(link).content == b"a film"
    assert line.client.get(link, headers={"Range": "bytes=2-3"}).content == b"fi"
    for forged in (
        link.replace("1-a.mp4", "1-b.mp4"),
        link.replace("until=", "until=9"),
        link[:-1] + "x",
        link + "%C3%A9",
    ):
        assert line.client.get(forged).status_code == 403
    assert line.client.get("/v1/jobs/nobody/video").status_code == 404


def test_viewers_look_and_operators_act(bus_settings: Settings) -> None:
    secrets = {"door_viewer_password": SecretStr("look"), "door_operator_password": SecretStr("act")}
    with opened(bus_settings.model_copy(update=secrets)) as line:
        for password, see, do in ((None, 401, 401), ("wrong", 401, 401), ("look", 200, 403), ("act", 200, 202)):
            headers = {"Authorization": f"Bearer {password}"} if password else {}
            assert line.client.get("/v1/jobs", headers=headers).status_code == see
            assert line.client.post("/v1/jobs", json=PROMPT, headers=headers).status_code == do


def test_another_sites_page_neither_acts_nor_looks(line: Line) -> None:
    evil = {"Origin": "https://evil.example", "Content-Type": "text/plain"}
    assert line.client.post("/v1/jobs", content=json.dumps(PROMPT), headers=evil).status_code == 403
    own = {"Origin": "http://127.0.0.1"}
    assert line.client.post("/v1/jobs", content=json.dumps(PROMPT), headers=own).status_code == 202
    assert line.client.get("/v1/jobs", headers={"Host": "evil.example"}).status_code == 403


def test_a_door_that_others_can_reach_needs_a_password() -> None:
    with pytest.raises(AccessError, match="LONGTAKE_DOOR_OPERATOR_PASSWORD"):
        Access(Settings(door_host="0.0.0.0"))  # noqa: S104 (refused)
    Access(Settings(door_host="0.0.0.0", door_operator_password=SecretStr("x")))  # noqa: S104
    Access(Settings(door_host="127.0.0.1"))


def test_the_page_about_the_door_brings_its_own_scripts(line: Line) -> None:
    page = line.client.get("/docs")
    assert page.status_code == 200
    assert "http" not in page.text.replace("http://www.w3.org", "")
    assert line.client.get("/docs/assets/swagger-ui-bundle.js").status_code == 200
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]


def _event(lines: Iterator[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in lines:
        if not line and found:
            return found
        name, colon, value = line.partition(": ")
        if name and colon:
            found[name] = value
    raise AssertionError("the stream ended")
