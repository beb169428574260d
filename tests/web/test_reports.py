"""What a player says of a video goes on the topic of plays, and nobody else can say it."""

import re
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from typing import Any

import pytest
from pydantic import SecretStr

from infra.objects import Objects
from infra.settings import Settings
from schemas.records import PlayReported, VideoFinished
from tests.schemas.samples import sample
from tests.web.test_door import Line, opened, topic

REPORT: dict[str, Any] = {
    "play": "p-1",
    "first_frame_ms": 180,
    "played_ms": 4000,
    "stalls": 1,
    "stalled_ms": 90,
    "player": "test",
}


@pytest.fixture
def line(bus_settings: Settings) -> Iterator[Line]:
    with opened(bus_settings.model_copy(update={"door_operator_password": SecretStr("act")})) as line:
        blob = Objects(line.settings.objects).put_bytes("jobs/boat/videos/1-a.mp4", b"a film", "video/mp4")
        video = sample(VideoFinished)
        assert isinstance(video, VideoFinished)
        line.says(replace(video, job_id="boat", video=blob))
        yield line


def attribute(page: str, name: str) -> str:
    found = re.search(f'{name}="([^"]*)"', page)
    assert found
    return unescape(found[1])


def test_a_report_needs_the_link_of_the_page_and_nothing_else(line: Line) -> None:
    client = line.client
    assert client.get("/v1/jobs/boat/play").status_code == 401
    signed_in = {"Authorization": "Bearer act"}
    assert client.get("/v1/jobs/nobody/play", headers=signed_in).status_code == 404
    page = client.get("/v1/jobs/boat/play", headers=signed_in)
    link = attribute(page.text, "data-report")
    assert client.get(attribute(page.text, " src")).content == b"a film"
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert client.get("/v1/player.js").headers["content-type"].startswith("text/javascript")

    assert client.post(link, json=REPORT).status_code == 202
    for forged in (link.replace("/boat", "/ship"), link.replace("until=", "until=9"), link[:-1] + "x"):
        assert client.post(forged, json=REPORT).status_code == 403
    ((event, _),) = topic(line.settings, PlayReported.topic)
    assert isinstance(event, PlayReported)
    assert replace(event, reported_us=0) == PlayReported(
        job_id="boat",
        **REPORT,
        decode_errors=0,
        dropped_frames=0,
        reported_us=0,
    )

    for wrong in ({"stalls": -1}, {"stalls": 10**9}, {"play": ""}, {"play": "a/b"}, {"more": 1}, {"played_ms": "1"}):
        assert client.post(link, json=REPORT | wrong).status_code == 422
    assert client.post(link, content=b"{" + b" " * 5000).status_code == 413
    assert len(topic(line.settings, PlayReported.topic)) == 1
