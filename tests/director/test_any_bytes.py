"""Whatever is on its topics, the director decides: it refuses, drops or goes on, and never fails."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infra.bus.clients import MAX_RECORD_BYTES
from infra.bus.decision import Decision
from infra.bus.letter import dead_letter
from infra.bus.outputs import caused_by, outputs_of
from schemas import records as r
from schemas.codec import decode, encode
from schemas.errors import BadInputError
from schemas.topics import DEAD_LETTERS, Event
from streams.decider import INPUTS
from tests.director.builders import Line, answers, message, prompt, raw_message


def _line() -> Line:
    """A job in the middle: segments, pieces and verdicts are awaited."""
    line = Line()
    line.until(r.PieceRequested, prompt(), index=1)
    return line


LINE = _line()
EVENTS: list[Event] = [
    prompt(),
    r.CancelRequested(job_id="harbour"),
    r.RetryRequested(job_id="harbour"),
    *(answer for event in LINE.said for answer in answers(event)),
    *(answer for event in LINE.said for stitched in answers(event) for answer in answers(stitched)),
]


@st.composite
def damaged(draw: st.DrawFn) -> tuple[str, bytes]:
    """An event with a few bytes changed, cut off or added."""
    event = draw(st.sampled_from(EVENTS))
    data = bytearray(encode(event))
    for position, byte in draw(st.lists(st.tuples(st.integers(0, len(data) - 1), st.integers(0, 255)), max_size=4)):
        data[position] = byte
    end = draw(st.sampled_from([None, None, None, -1, len(data) // 2]))
    return event.topic, bytes(data[:end]) + draw(st.sampled_from([b"", b"", b"\0", b"xyz"]))


numbers = st.integers() | st.floats() | st.sampled_from([0, 1, 24, 640, 1 << 31, 1 << 63, -1, 0.5, 1e-9, 1e300])
anything = st.none() | st.booleans() | numbers | st.text()
shots = st.lists(
    st.fixed_dictionaries(
        {"prompt": st.text() | anything},
        optional={
            "seconds": anything,
            "camera": anything,
            "transition": st.sampled_from([*r.Transition, ""]),
            "seed": anything,
        },
    )
    | anything,
    max_size=4,
)
wishes = st.fixed_dictionaries(
    {"job_id": st.just("harbour") | st.text() | anything},
    optional={
        "text": st.text() | anything,
        "shots": shots | anything,
        "negative": st.lists(st.text()) | anything,
        "engine": st.just("animatic") | anything,
        "engine_options": st.dictionaries(st.text(), st.text() | anything) | anything,
        "tenant": anything,
        **dict.fromkeys(("width", "height", "fps", "duration_s", "seed", "submitted_us"), numbers | anything),
    },
)


@given(damaged())
@settings(max_examples=300, deadline=None)
def test_damaged_records_are_refused_dropped_or_taken(record: tuple[str, bytes]) -> None:
    topic, value = record
    decided(topic, value)


@given(
    st.sampled_from([topic for topic in INPUTS if topic != DEAD_LETTERS]),
    st.binary() | st.text().map(str.encode),
    st.binary(),
)
@settings(max_examples=100, deadline=None)
def test_any_bytes_under_any_key_are_refused(topic: str, value: bytes, key: bytes) -> None:
    for row in (LINE.job, None):
        assert LINE.decider.decide(raw_message(topic, value, key=key), row, LINE.now_us).refused


@given(st.binary(), st.lists(st.tuples(st.text(), st.none() | st.binary())))
@settings(max_examples=100, deadline=None)
def test_any_bytes_on_the_dead_letter_topic_are_passed_over(
    value: bytes, headers: list[tuple[str, bytes | None]]
) -> None:
    letter = raw_message(DEAD_LETTERS, value, headers=tuple(headers))
    assert LINE.decider.decide(letter, LINE.job, LINE.now_us) == Decision()


@given(st.lists(st.none() | st.binary() | st.text("0123456789").map(str.encode), min_size=7, max_size=7))
@settings(max_examples=100, deadline=None)
def test_a_letter_whose_reasons_are_any_bytes_stops_nobody(values: list[bytes | None]) -> None:
    event = LINE.last(r.PieceRequested)
    error = BadInputError(field="value", rule="retries", message="given up")
    headers = dead_letter(message(event), error, group="longtake.stitch", time_us=LINE.now_us).headers
    changed = (headers[0], *((name, value) for (name, _), value in zip(headers[1:], values, strict=True)))
    decision = LINE.decider.decide(raw_message(DEAD_LETTERS, encode(event), headers=changed), LINE.job, LINE.now_us)
    numbers = [value or b"" for (name, value) in changed if name in ("dlq.partition", "dlq.offset", "dlq.time_us")]
    assert (decision.state is not None) == all(value.isdigit() and len(value) < 20 for value in numbers)


@given(wishes)
@settings(max_examples=300, deadline=None)
def test_any_json_is_refused_or_becomes_a_job(wish: dict[str, Any]) -> None:
    value = json.dumps(wish).encode()
    key = str(wish["job_id"]).encode(errors="replace")
    decision = LINE.decider.decide(raw_message(r.PromptSubmitted.topic, value, key=key), None, LINE.now_us)
    assert (decision.state is None) == (decision.refused is not None)
    assert all(decode(encode(event)) for event in decision.events)


@pytest.mark.parametrize(
    "value",
    [
        b'{"seed": 1e999, "job_id": "harbour", "text": "a", "\\ud800": 1}',
        b'{"seed": 1e999, "job_id": "harbour", "shots": [{"prompt": "a", "\\ud800": 1}]}',
        b'{"seed": 1e999, "job_id": "\\ud800", "text": "\\ud800", "engine": "\\ud800"}',
        b'{"job_id": "harbour", "text": "a", "%b": 1}' % (b"x" * (MAX_RECORD_BYTES - 150)),
        b'{"job_id": "harbour", "shots": [{"%b": 1}]}' % (b"x" * (MAX_RECORD_BYTES - 150)),
        b'{"job_id": "%b", "text": "a", "b": 1}' % (b"x" * (MAX_RECORD_BYTES - 150)),
    ],
    ids=["half a character", "in a shot", "in values", "a long name", "of a shot's field", "of a job"],
)
def test_what_comes_of_a_hostile_prompt_can_be_written(value: bytes) -> None:
    """It could not, and the director would have ended at this prompt for ever."""
    sent = raw_message(r.PromptSubmitted.topic, value)
    decision = LINE.decider.decide(sent, None, LINE.now_us)
    assert decision.refused
    outputs = outputs_of(decision.events, caused_by(sent, "longtake/director", LINE.now_us))
    outputs.append(dead_letter(sent, decision.refused, group="longtake.director", time_us=LINE.now_us))
    for output in outputs:
        headers = sum(len(name) + len(value or b"") for name, value in output.headers)
        assert len(output.key or b"") + len(output.value or b"") + headers < MAX_RECORD_BYTES + 10_000


def decided(topic: str, value: bytes) -> None:
    for row in (LINE.job, None):
        decision = LINE.decider.decide(raw_message(topic, value), row, LINE.now_us)
        if decision.state:
            assert decode(encode(decision.state)) == decision.state
        assert all(decode(encode(event)) for event in decision.events)


def test_the_records_that_get_damaged_are_good_ones() -> None:
    for event in EVENTS:
        assert not LINE.decider.decide(message(event), LINE.job, LINE.now_us).refused
