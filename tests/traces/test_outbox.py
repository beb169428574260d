"""Spans on their way to an OTLP receiver."""

from collections.abc import Iterator

import pytest

from infra.traces import outbox as o
from infra.traces.outbox import Outbox
from infra.traces.span import Moment, Span
from tests.traces.receiver import Receiver, receiving


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


def span(number: int = 1, **fields: object) -> Span:
    said = {"trace_id": 0xABC, "span_id": number, "parent_id": 0, "name": "segment", "service": "generate"}
    times = {"worker": "generate-0", "start_us": 1_700_000_000_000_003, "end_us": 1_700_000_000_100_004}
    return Span(**(said | times | fields))  # type: ignore[arg-type]


def test_a_span_arrives_as_it_was_to_the_microsecond(receiver: Receiver) -> None:
    outbox = Outbox(receiver.url)
    frame = Moment(name="frame", at_us=1_700_000_000_050_007, attributes={"longtake.frame": 3})
    outbox.put([span(7, parent_id=5, links=(8,), moments=(frame,), error="nan: of block 3")])
    outbox.send(0.0)
    outbox.close()
    (got,) = receiver.spans
    assert receiver.paths == {"/v1/traces"}
    assert (got.service, got.name, got.failed) == ("generate", "segment", True)
    assert (int(got.trace, 16), int(got.id, 16), int(got.parent, 16)) == (0xABC, 7, 5)
    assert [int(link, 16) for link in got.links] == [8]
    assert (got.start_ns, got.end_ns) == (1_700_000_000_000_003_000, 1_700_000_000_100_004_000)
    assert got.frames == {3: 1_700_000_000_050_007_000}


def test_what_a_receiver_refuses_is_offered_again_after_a_pause(receiver: Receiver) -> None:
    outbox = Outbox(receiver.url)
    outbox.put([span(n) for n in range(1, 1201)])
    receiver.refusing = True
    outbox.send(0.0)
    outbox.send(1.0)
    assert (receiver.refused, receiver.spans) == (1, [])
    receiver.refusing = False
    outbox.send(6.0)
    outbox.close()
    assert sorted(int(got.id, 16) for got in receiver.spans) == list(range(1, 1201))


def test_the_oldest_spans_are_dropped_when_too_many_wait(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(o, "_MOST", 1000)
    outbox = Outbox(receiver.url)
    for start in range(1, 2001, 500):
        outbox.put([span(n) for n in range(start, start + 500)])
    outbox.send(0.0)
    outbox.close()
    assert sorted(int(got.id, 16) for got in receiver.spans) == list(range(1001, 2001))
