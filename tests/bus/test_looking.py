"""Reading, writing and dead letters from the outside, as the command line does it."""

import itertools

import pytest
from aiokafka.partitioner import murmur2
from confluent_kafka import murmur2 as ours
from hypothesis import given
from hypothesis import strategies as st

from infra.bus.dead_letters import find, replay
from infra.bus.errors import BusError
from infra.bus.letter import dead_letter
from infra.bus.message import Message
from infra.bus.outputs import Cause, Output, outputs_of
from infra.bus.reader import Reader, event_of
from infra.bus.writer import Writer, publish
from infra.settings import Settings
from schemas.errors import BadInputError
from schemas.headers import trace_root
from schemas.records import PromptSubmitted, SegmentFailed
from tests.bus.line import ASKED, answer, ask, messages, question, questions


def test_a_reader_from_now_sees_what_comes_and_nothing_before(bus_settings: Settings) -> None:
    ask(bus_settings, [("boat", 0)])
    with Reader.from_now(bus_settings, [ASKED]) as reader:
        ask(bus_settings, [("boat", 1), ("train", 2)])
        found = [event_of(message) for message in itertools.islice(reader.for_seconds(20), 2)]
    assert sorted(event.segment for event in found if isinstance(event, SegmentFailed)) == [1, 2]


def test_a_reader_from_the_beginning_stops_at_the_end(bus_settings: Settings) -> None:
    ask(bus_settings, questions(["boat", "train"], range(5)))
    assert len(messages(bus_settings, ASKED)) == 10


def test_a_prompt_in_json_is_read_like_one_in_avro(bus_settings: Settings) -> None:
    with Writer(bus_settings) as writer:
        value = b'{"job_id": "boat", "text": "A boat"}'
        writer.write([Output(topic=PromptSubmitted.topic, key=b"boat", value=value, headers=())])
    publish(bus_settings, [PromptSubmitted(job_id="boat", text="A boat")], trace_root("boat"))
    first, second = [event_of(message) for message in messages(bus_settings, PromptSubmitted.topic)]
    assert first == second


def test_the_same_event_published_twice_has_one_id(bus_settings: Settings) -> None:
    for _ in range(2):
        publish(bus_settings, [question("boat", 1)], trace_root("boat"))
    ids = [dict(message.headers)["ce_id"] for message in messages(bus_settings, ASKED)]
    assert len(ids) == 2
    assert len(set(ids)) == 1


def test_a_record_that_cannot_be_delivered_is_an_error(bus_settings: Settings) -> None:
    with pytest.raises(BusError, match="1 records were not delivered"), Writer(bus_settings) as writer:
        writer.write([Output(topic=ASKED, key=None, value=bytes(5 << 20), headers=())])


def test_a_replayed_dead_letter_is_the_record_it_was(bus_settings: Settings) -> None:
    headers = (("traceparent", trace_root("a").encode()), ("empty", b""), ("none", None))
    original = Message(
        topic=ASKED, partition=2, offset=7, key=b"boat", value=b"\0bytes", headers=headers, timestamp_us=0
    )
    error = BadInputError(field="value", rule="framing", message="nothing known, \N{FILM PROJECTOR}")
    with Writer(bus_settings) as writer:
        writer.write([dead_letter(original, error, group="longtake.stitch", time_us=123)])
    letter = (
        find(bus_settings, "3-0") or find(bus_settings, "2-0") or find(bus_settings, "1-0") or find(bus_settings, "0-0")
    )
    assert letter
    assert (letter.original.partition, letter.original.offset, letter.time_us) == (2, 7, 123)
    assert (letter.group, letter.rule, letter.message) == ("longtake.stitch", "framing", error.message)
    assert replay(bus_settings, [letter]) == 1
    [again] = messages(bus_settings, ASKED)
    assert (again.key, again.value, again.headers) == (original.key, original.value, original.headers)


@given(st.binary(min_size=1, max_size=40), st.integers(1, 64))
def test_our_partitioner_is_that_of_faust(key: bytes, partitions: int) -> None:
    assert ours(key, partitions) == (murmur2(key) & 0x7FFFFFFF) % partitions


def test_the_same_cause_gives_the_same_ids() -> None:
    cause = Cause(id="t/0/7", traceparent=trace_root("a"), source="longtake/x", time_us=5)
    events = [answer("boat", 1), answer("boat", 2)]
    ids = [dict(output.headers)["ce_id"] for output in outputs_of(events, cause)]
    assert ids == [b"t/0/7/0", b"t/0/7/1"]
    assert outputs_of(events, cause) == outputs_of(events, cause)
