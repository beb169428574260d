"""What is sent and signed, what an answer means, and what a configuration may say: without Kafka."""

import base64
import hashlib
import hmac
import json
import logging
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from infra.alerts.alert import Alert, Kind, alert_of
from infra.alerts.attempt import Outcome, Pace, attempt
from infra.alerts.hooks import Format, Hook, HookError, hooks_of
from infra.alerts.letter import body_of
from infra.bus.letter import dead_letter
from infra.bus.message import Message
from infra.redact import redacted
from infra.settings import Settings
from schemas.codec import encode
from schemas.errors import BadInputError
from schemas.records import Finding, Stage, Verdict, VideoChecked
from schemas.topics import DEAD_LETTERS, Event
from tests.alerts.receiver import Answer, Receiver, receiver
from tests.cli import events

SECRET = "canary-secret-7f3a91"  # noqa: S105 (a test)
ALERT = Alert(
    id="0" * 32, kind=Kind.FAILED, job_id="film", at_us=1_800_000_000_000_000, summary="film failed: x", event={"a": 1}
)


@pytest.fixture
def server() -> Iterator[Receiver]:
    with receiver() as found:
        yield found


def configured(**entry: object) -> Settings:
    return Settings(webhooks=SecretStr(json.dumps([{"name": "ops", "url": "https://a.example/x", **entry}])))


def hook(server: Receiver, form: Format = Format.JSON) -> Hook:
    (found,) = hooks_of(configured(url=server.url, format=form, secret=SECRET))
    return found


def tried(server: Receiver, form: Format = Format.JSON, *, alert: Alert = ALERT) -> Outcome:
    with httpx.Client() as client:
        return attempt(client, hook(server, form), alert)


def record(event: Event) -> Message:
    job_id: str = getattr(event, "job_id", "")
    return Message(
        topic=type(event).topic,
        partition=0,
        offset=5,
        key=job_id.encode(),
        value=encode(event),
        headers=(),
        timestamp_us=0,
    )


def test_a_receiver_can_check_who_sent_it_and_when(server: Receiver) -> None:
    assert tried(server).delivered
    (got,) = server.received
    sent_s = int(got.headers["webhook-timestamp"])
    assert abs(sent_s - time.time()) < 60
    content = f"{got.headers['webhook-id']}.{sent_s}.".encode() + got.body
    expected = base64.b64encode(hmac.new(SECRET.encode(), content, hashlib.sha256).digest()).decode()
    assert got.headers["webhook-signature"] == f"v1,{expected}"
    assert got.json == {
        "id": ALERT.id,
        "kind": "failed",
        "at": "2027-01-15T08:00:00Z",
        "job_id": "film",
        "summary": "film failed: x",
        "event": {"a": 1},
    }


def test_a_secret_behind_whsec_is_base64() -> None:
    key = bytes(range(24))
    (found,) = hooks_of(configured(secret="whsec_" + base64.b64encode(key).decode()))
    assert base64.b64decode(found.key.get_secret_value()) == key


def test_chats_get_their_own_shape_and_text_of_producers_mentions_nobody(server: Receiver) -> None:
    alert = replace(ALERT, summary="film failed: <!channel> & <http://x|y>" + "ü" * 5000)
    assert tried(server, Format.SLACK, alert=alert).delivered
    slack = server.received[-1].json
    assert slack["mrkdwn"] is False
    assert slack["text"].startswith("film failed: &lt;!channel&gt; &amp; &lt;http://x|y&gt;")
    server.answers = [Answer(body=b'{"errcode":0,"errmsg":"ok"}')]
    assert tried(server, Format.WECOM, alert=alert).delivered
    wecom = server.received[-1].json
    assert wecom["msgtype"] == "text"
    assert 2040 < len(wecom["text"]["content"].encode()) <= 2048


@pytest.mark.parametrize(
    ("answer", "again"),
    [
        (Answer(status=500), True),
        (Answer(status=503, headers={"retry-after": "7"}), True),
        (Answer(status=429, headers={"retry-after": "soon"}), True),
        (Answer(status=0), True),
        (Answer(status=404), False),
        (Answer(status=302, headers={"location": "http://127.0.0.1:1/"}), False),
    ],
    ids=["broken", "busy", "too many", "closed", "gone", "elsewhere"],
)
def test_what_may_pass_is_tried_again_and_what_will_not_is_not(server: Receiver, answer: Answer, again: bool) -> None:
    server.answers = [answer]
    outcome = tried(server)
    assert (outcome.delivered, outcome.again) == (False, again)
    assert outcome.after_s == (7.0 if answer.status == 503 else 0.0)
    assert "canary" not in outcome.reason
    assert len(server.received) == 1


@pytest.mark.parametrize(
    ("said", "delivered", "again"),
    [
        (b'{"errcode":0}', True, False),
        (b'{"errcode":45009}', False, True),
        (b'{"errcode":93000}', False, False),
        (b"<html>", False, True),
    ],
)
def test_wecom_says_in_the_body_what_it_thinks(server: Receiver, said: bytes, delivered: bool, again: bool) -> None:
    server.answers = [Answer(body=said)]
    outcome = tried(server, Format.WECOM)
    assert (outcome.delivered, outcome.again) == (delivered, again)


def test_nobody_there_is_tried_again() -> None:
    with receiver() as gone:
        pass
    assert tried(gone) == Outcome(delivered=False, again=True, reason="ConnectError")


def test_waits_double_up_to_a_limit_and_differ() -> None:
    pace = Pace(first_s=1, most_s=60)
    assert [pace.wait_s(n, 0.0) for n in (1, 2, 3, 7, 1000)] == [1, 2, 4, 60, 60]
    assert pace.wait_s(3, 0.999) == pytest.approx(2, abs=0.01)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"url": "http://a.example/x", "secret": SECRET}, "only https"),
        ({"url": "ftp://127.0.0.1/x", "secret": SECRET}, "https://host"),
        ({"url": "https://user:canary-pass-7f3a91@a.example/", "secret": SECRET}, "without a user"),
        ({"url": "https://[canary", "secret": SECRET}, "url"),
        ({}, "needs a secret"),
        ({"secret": "canary-short"}, "less than 16"),
        ({"secret": "whsec_canary!"}, "base64"),
        ({"secret": SECRET, "on": ["always"]}, "always"),
        ({"secret": SECRET, "name": "Ops Team"}, "name"),
        ({"secret": SECRET, "verify": False}, "verify"),
    ],
)
def test_a_wrong_configuration_is_named_without_its_secrets(entry: dict[str, Any], words: str) -> None:
    with pytest.raises(HookError, match=words) as error:
        hooks_of(configured(**entry))
    assert "canary" not in str(error.value)


def test_webhooks_come_from_a_file_and_are_shown_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = json.dumps([{"name": "chat", "url": "https://hooks.example/canary-url-7f3a91", "format": "slack"}])
    (tmp_path / "webhooks.json").write_text(text + "\n")
    monkeypatch.setenv("LONGTAKE_WEBHOOKS_FILE", str(tmp_path / "webhooks.json"))
    settings = Settings()
    (found,) = hooks_of(settings)
    assert found.url.get_secret_value().endswith("canary-url-7f3a91")
    assert found.on == {Kind.REJECTED, Kind.FAILED, Kind.DEAD_LETTER}
    assert "canary" not in f"{settings!r} {settings.model_dump_json()} {found!r}"
    monkeypatch.setenv("LONGTAKE_WEBHOOKS", text)
    assert "canary" not in redacted("POST https://hooks.example/canary-url-7f3a91")


def test_posting_logs_no_address(server: Receiver, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    server.answers = [Answer(status=404)]
    tried(server)
    assert "canary" not in caplog.text


def test_only_what_people_want_to_hear_is_an_alert() -> None:
    found = alert_of(record(events.job(stage=Stage.FAILED, reason="segment 3 failed 3 times")))
    assert found
    assert (found.kind, found.job_id) == (Kind.FAILED, "film")
    assert found.summary == "film failed: segment 3 failed 3 times"
    finished = alert_of(record(events.finished("film")))
    assert finished
    assert (finished.kind, finished.event["video"]["uri"]) == (Kind.FINISHED, events.BLOB.uri)
    assert alert_of(record(events.job(stage=Stage.GENERATING))) is None


def test_a_video_that_did_not_pass_is_told_with_its_gates() -> None:
    bad = Finding(gate="black", verdict=Verdict.REGENERATE, frame=1, value=1.0, limit=0.98)
    event = VideoChecked(
        job_id="film",
        attempt=1,
        request_hash="",
        verdict=Verdict.REGENERATE,
        findings=(bad,),
        checked_us=1,
        worker="w",
    )
    found = alert_of(record(event))
    assert found
    assert (found.kind, found.summary) == (Kind.REJECTED, "film did not pass: regenerate by black")
    assert alert_of(record(replace(event, verdict=Verdict.PASS))) is None


def test_a_dead_letter_is_told_with_where_it_was_and_why() -> None:
    refused = BadInputError(field="fps", rule="range", message="0 is not above 0")
    letter = dead_letter(record(events.job()), refused, group="longtake.director", time_us=7)
    message = Message(
        topic=DEAD_LETTERS,
        partition=1,
        offset=2,
        key=letter.key,
        value=letter.value,
        headers=letter.headers,
        timestamp_us=0,
    )
    found = alert_of(message)
    assert found
    assert found.event["record"] == "longtake.jobs.v1/0/5"
    assert "0 is not above 0 [range]" in found.summary
    assert alert_of(replace(message, headers=())) is None
    again = replace(message, partition=3, offset=9)
    assert alert_of(again).id == found.id  # pyright: ignore[reportOptionalMemberAccess]


def test_the_same_alert_has_the_same_bytes_and_id() -> None:
    first, second = (alert_of(record(events.job(stage=Stage.FAILED, reason="x"))) for _ in range(2))
    assert first == second
    assert first
    assert body_of(first, Format.JSON) == body_of(first, Format.JSON)
