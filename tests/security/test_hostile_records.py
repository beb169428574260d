"""What anybody may write to longtake.prompts.v1 ends nobody who looks on: the door, the console, the tracer, the exporter, webhooks."""

import contextlib
import math
from collections.abc import Iterator

import pytest

from infra.alerts.alert import alert_of
from infra.bus.letter import dead_letter
from infra.bus.message import Message
from infra.bus.reader import event_of
from infra.bus.writer import publish
from infra.metrics.line import Line
from infra.settings import Settings
from infra.traces.book import Book
from infra.web.view import View
from schemas.errors import BadInputError
from schemas.headers import RawHeaders, trace_root
from schemas.records import PromptSubmitted
from schemas.topics import Event
from tests.bus.line import eventually
from tests.director.builders import decider, message, prompt, raw_message

VALUES = {
    "a number beyond 64 bits": b'{"job_id": "harbour", "text": "a", "seed": %d}' % (1 << 70),
    "one beyond its sign": b'{"job_id": "harbour", "text": "a", "submitted_us": %d}' % ((1 << 64) - 1),
    "a number that is none": b'{"job_id": "harbour", "text": "a", "fps": 1e999}',
    "half a character": b'{"seed": 1e999, "job_id": "harbour", "\\ud800": "\\ud800"}',
    "nesting": b'{"job_id": ' + b"[" * 100_000,
}
HEADERS: dict[str, RawHeaders] = {
    "a time in no zone": (("ce_time", b"2026-12-01T00:00:00"),),
    "a day": (("ce_time", b"2026-12-01"),),
    "the last second": (("ce_time", b"9999-12-31T23:59:59-14:00"),),
    "no text": (("ce_time", b"\xff"), ("traceparent", b"\xff" * 55), ("tenant", b"\xff")),
    "nothing": (("ce_time", None), ("ce_id", None), ("traceparent", None), ("tenant", None)),
    "a trace of zeros": (("traceparent", b"00-" + b"0" * 32 + b"-" + b"0" * 16 + b"-01"),),
}


def records() -> Iterator[Message]:
    for value in VALUES.values():
        yield raw_message(PromptSubmitted.topic, value)
    for headers in HEADERS.values():
        said = (("ce_source", b"longtake/director"), ("ce_id", b"longtake.prompts.v1/0/0/0"), *headers)
        yield raw_message(PromptSubmitted.topic, message(prompt()).value, headers=said)


@pytest.mark.parametrize("record", list(records()), ids=[*VALUES, *HEADERS])
def test_onlookers_take_it_or_say_that_it_cannot_be_read(record: Message) -> None:
    view, book, line = View(Settings()), Book(), Line(("standard",))
    decision = decider().decide(record, None, 1)
    said = [message(event) for event in decision.events]
    if decision.refused:
        letter = dead_letter(record, decision.refused, group="longtake.director", time_us=1)
        said.append(raw_message(letter.topic, letter.value, key=letter.key, headers=letter.headers))
    for each in (record, *said):
        with contextlib.suppress(BadInputError):
            event = event_of(each)
            view.take(event)
            book.take(each, event, 0.0)
            line.take(event)
        with contextlib.suppress(BadInputError):
            alert_of(each)
    assert len(book.due(math.inf)) == bool(decision.refused and decision.events)
    job = view.job("harbour")
    assert job is None or job.prompt is None or job.prompt.job_id == "harbour"


class Fails(View):
    """As if something had been overlooked."""

    def take(self, event: Event) -> None:
        raise RuntimeError(event)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_door_that_no_longer_reads_says_so(bus_settings: Settings) -> None:
    with Fails(bus_settings) as view:
        assert view.caught_up(30)
        assert not view.problem
        publish(bus_settings, [prompt()], trace_root("harbour"))
        eventually(lambda: bool(view.problem), "it says that it does not read")
