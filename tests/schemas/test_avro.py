"""The `.avsc` files, the lock and the frozen records say the same, today and in every version to come."""

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import fastavro
import fastavro.utils
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas import describe
from schemas import records as r
from schemas.codec import content_hash, decode, decode_prompt, encode, request_hash, sealed, to_json
from schemas.errors import BadInputError
from schemas.ids import HERE, Version, fingerprint, parsed_schema, schema_of, versions
from schemas.topics import EVENTS, Event
from tests.schemas.samples import sample

GOLDEN = Path(__file__).parent / "golden.json"
NEWEST = {v.record: v for v in versions()}
INT64 = st.integers(-(2**63), 2**63 - 1)
st.register_type_strategy(int, INT64)
st.register_type_strategy(float, st.floats(allow_nan=False))


@pytest.mark.parametrize("record", EVENTS, ids=lambda r: r.__name__)
def test_the_newest_schema_says_what_the_record_says(record: type[Event]) -> None:
    assert json.loads(NEWEST[record.__name__].path.read_text()) == schema_of(record)


def test_the_lock_is_append_only() -> None:
    rows = versions()
    assert [v.id for v in rows] == list(range(1, len(rows) + 1))
    for row in rows:
        assert fingerprint(json.loads(row.path.read_text())) == row.fingerprint, f"{row.path} was changed"
        assert row.version == len([v for v in rows if v.record == row.record and v.id <= row.id])
    assert len(list(HERE.glob("avro/*/*.avsc"))) == len(rows)


def readable(writer: dict[str, Any], reader: dict[str, Any]) -> bool:
    """Whether what was written with one schema can be read with the other, tried on 50 generated records."""
    for datum in fastavro.utils.generate_many(writer, 50):
        out = io.BytesIO()
        fastavro.schemaless_writer(out, writer, datum)
        out.seek(0)
        try:
            fastavro.schemaless_reader(out, writer, reader)
        except (ValueError, TypeError, fastavro.read.SchemaResolutionError):
            return False
    return True


PAIRS = [(a, b) for a in versions() for b in versions() if a.record == b.record]


@pytest.mark.parametrize(("written", "read"), PAIRS, ids=lambda v: f"{v.record}.{v.version}")
def test_every_version_reads_every_other(written: Version, read: Version) -> None:
    assert readable(parsed_schema(written), parsed_schema(read))


def test_a_new_required_field_is_found_incompatible() -> None:
    old = schema_of(r.CancelRequested)
    new = schema_of(r.CancelRequested)
    new["fields"].append({"name": "who", "type": "string"})
    assert not readable(fastavro.parse_schema(old), fastavro.parse_schema(new))
    new["fields"][-1]["default"] = ""
    assert readable(fastavro.parse_schema(old), fastavro.parse_schema(new))


def _as_far_as(known: Any, said: Any) -> Any:
    """What is said, without the fields that an older schema did not know."""
    if isinstance(known, dict):
        return {name: _as_far_as(value, said[name]) for name, value in known.items()}
    if isinstance(known, list):
        return [_as_far_as(*pair) for pair in zip(known, said, strict=True)]
    return said


@pytest.mark.parametrize("version", versions(), ids=lambda v: f"{v.record}.{v.version}")
def test_the_bytes_of_every_version_still_decode(version: Version) -> None:
    golden = json.loads(GOLDEN.read_text())[f"{version.record}.{version.version}"]
    event = decode(bytes.fromhex(golden["bytes"]))
    assert _as_far_as(golden["event"], json.loads(to_json(event))) == golden["event"]
    if version == NEWEST[version.record]:
        assert json.loads(to_json(event)) == golden["event"]
        assert event == sample(type(event))
        assert encode(event).hex() == golden["bytes"]


@pytest.mark.parametrize("version", versions(), ids=lambda v: f"{v.record}.{v.version}")
def test_what_an_older_schema_can_say_is_written_with_it(version: Version) -> None:
    """While a release is rolled out, workers of the one before read what the new ones write."""
    old = bytes.fromhex(json.loads(GOLDEN.read_text())[f"{version.record}.{version.version}"]["bytes"])
    assert encode(decode(old)) == old


@given(st.one_of([st.from_type(event) for event in EVENTS]))
def test_every_event_survives_the_round_trip(event: Event) -> None:
    assert decode(encode(event)) == event


@given(st.binary(max_size=300), st.sampled_from(versions()))
def test_hostile_bytes_are_bad_input_and_nothing_else(body: bytes, version: Version) -> None:
    for data in (body, b"\0" + version.id.to_bytes(4, "big") + body):
        try:
            decode_prompt(data)
        except BadInputError as error:
            assert error.field
            assert error.rule


@pytest.mark.parametrize(
    ("value", "field", "rule"),
    [
        (b"", "value", "framing"),
        (b"a prompt", "value", "framing"),
        (b"[1]", "value", "type"),
        (b"\0\0\0\0", "value", "framing"),
        (b"\0\0\0\x27\x0fabc", "value", "schema_id"),
        (b'{"text": "a"}', "job_id", "required"),
        (b'{"job_id": "a", "text": 5}', "text", "type"),
        (b'{"job_id": "a", "text": "b", "fps": "fast"}', "fps", "type"),
        (b'{"job_id": "a", "text": "b", "fsp": 24}', "fsp", "unknown_field"),
        (b'{"job_id": "a", "shots": [{"prompt": "b"}, {"prompt": "b", "seconds": "3"}]}', "shots[1].seconds", "type"),
        (b'{"job_id": "a", "shots": [{"text": "b"}]}', "shots[0].text", "unknown_field"),
        (b'{"job_id": "a", "shots": [{}]}', "shots[0].prompt", "required"),
    ],
)
def test_a_bad_prompt_is_told_which_field_breaks_which_rule(value: bytes, field: str, rule: str) -> None:
    with pytest.raises(BadInputError) as caught:
        decode_prompt(value)
    assert (caught.value.field, caught.value.rule) == (field, rule)


def test_a_json_prompt_is_the_same_event_as_an_avro_one() -> None:
    prompt = r.PromptSubmitted(job_id="j", shots=(r.Shot(prompt="a fox runs", seconds=2),), fps=25)
    as_json = b'{"job_id": "j", "shots": [{"prompt": "a fox runs", "seconds": 2}], "fps": 25}'
    assert decode_prompt(as_json) == decode_prompt(encode(prompt)) == prompt


def test_the_content_hash_knows_the_wish_and_not_the_moment() -> None:
    prompt = r.PromptSubmitted(job_id="j", text="a fox runs", engine_options={"a": "1", "b": "2"})
    assert content_hash(replace(prompt, submitted_us=5)) == content_hash(prompt)
    assert content_hash(replace(prompt, engine_options={"b": "2", "a": "1"})) == content_hash(prompt)
    assert content_hash(replace(prompt, text="a fox sleeps")) != content_hash(prompt)


def test_a_request_sent_again_has_the_same_hash_and_another_attempt_has_not() -> None:
    request = sample(r.SegmentRequested)
    assert isinstance(request, r.SegmentRequested)
    once = sealed(request)
    assert sealed(replace(once, requested_us=7)).request_hash == once.request_hash == request_hash(once)
    assert sealed(replace(once, attempt=99)).request_hash != once.request_hash


HASHED = {
    r.PromptSubmitted: "22e5d36f0e863e8ee00291681499f595",
    r.SegmentRequested: "1309442e8674e874ee0adf7c18c45357",
    r.PieceRequested: "23e56ff2fadb1872dc68400f64bcdd21",
    r.AssemblyRequested: "8309be5379259982aa982615744c9bc2",
}


@pytest.mark.parametrize("record", HASHED, ids=lambda r: r.__name__)
def test_a_release_that_adds_fields_does_not_rename_what_is_under_way(record: type[Event]) -> None:
    first = decode(bytes.fromhex(json.loads(GOLDEN.read_text())[f"{record.__name__}.1"]["bytes"]))
    found = content_hash(first) if isinstance(first, r.PromptSubmitted) else request_hash(first)
    assert found == HASHED[record]


def test_the_events_page_is_written_from_the_records() -> None:
    assert describe.PAGE.read_text() == describe.page(), "run: python -m schemas.describe"
