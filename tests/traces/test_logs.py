"""Log lines for programs: which job and which trace they are about."""

import json
import logging
import sys
from concurrent.futures import wait
from dataclasses import replace

import pytest

from infra.bus.in_hand import Ids, in_hand
from infra.bus.message import Message
from infra.bus.work import ThreadWork
from infra.logs import JsonLine
from schemas.headers import trace_id, trace_root
from schemas.topics import Event
from tests.director import builders as b

HAND = b.message(b.prompt(job_id="boat"), headers=(("traceparent", trace_root("a caller").encode()),))


def line(text: str, **fields: object) -> dict[str, str]:
    record = logging.makeLogRecord({"name": "streams.x", "levelname": "INFO", "msg": text, "created": 0.25} | fields)
    written = JsonLine("stitch").format(record)
    assert len(written.splitlines()) == 1
    return json.loads(written)


def test_a_line_says_when_where_and_about_which_job_and_trace() -> None:
    expected = {
        "time": "1970-01-01T00:00:00.250000Z",
        "level": "INFO",
        "logger": "streams.x",
        "message": "two\nlines",
        "role": "stitch",
    }
    assert line("two\nlines") == expected
    with in_hand(HAND):
        about = {"job_id": "boat", "trace_id": trace_id(trace_root("a caller"))}
        assert line("two\nlines") == expected | about
    with in_hand(Ids(**about)):
        assert line("two\nlines") == expected | about, "an engine process knows no more of a record"
    assert line("two\nlines") == expected


def test_what_a_handler_logs_is_about_its_own_record_although_others_are_in_hand() -> None:
    def handler(message: Message) -> list[Event]:
        assert line("at work")["job_id"] == message.job_id
        return []

    work = ThreadWork(handler, slots=2)
    answers = [work.submit(replace(HAND, key=f"job-{number}".encode())) for number in range(20)]
    wait(answers)
    work.close()
    assert [answer.result() for answer in answers] == [[]] * 20


def test_secrets_are_hidden_even_where_json_would_escape_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", 'say "friend"')
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer%20abcdef0123456789,x=1")
    try:
        raise ValueError('401 for say "friend"')
    except ValueError:
        said = line('key say "friend", token abcdef0123456789', exc_info=sys.exc_info())
    assert said["message"] == "key ***, token ***"
    assert "ValueError: 401 for ***" in said["error"]
