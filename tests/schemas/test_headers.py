"""Headers by their public specifications: W3C Trace Context and CloudEvents 1.0."""

from schemas.headers import event_headers, trace_child, trace_id, trace_root, traceparent_of
from schemas.records import CancelRequested

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def test_a_child_keeps_the_trace_and_has_its_own_span() -> None:
    child = trace_child(PARENT, "a")
    assert trace_id(child) == trace_id(PARENT) == "4bf92f3577b34da6a3ce929d0e0e4736"
    assert child.split("-")[2] != PARENT.split("-")[2]
    assert trace_child(PARENT, "a") == child != trace_child(PARENT, "b")


def test_a_producers_traceparent_is_taken_and_a_broken_one_replaced() -> None:
    assert traceparent_of((("traceparent", PARENT.encode()),), otherwise="j") == PARENT
    root = trace_root("j")
    for broken in (b"", b"junk", b"00-" + b"0" * 32 + b"-00f067aa0ba902b7-01", PARENT.upper().encode(), b"\xff" * 55):
        assert traceparent_of((("traceparent", broken),), otherwise="j") == root
    assert traceparent_of((), otherwise="j") == root


def test_events_carry_cloudevents_headers() -> None:
    event = CancelRequested(job_id="j")
    headers = dict(event_headers(event, event_id="e1", traceparent=PARENT, source="longtake/cli", time_us=1_500_000))
    assert headers["ce_id"] == b"e1"
    assert headers["ce_type"] == b"longtake.CancelRequested"
    assert headers["ce_source"] == b"longtake/cli"
    assert headers["ce_specversion"] == b"1.0"
    assert headers["ce_time"] == b"1970-01-01T00:00:01.500000+00:00"
    assert trace_id(headers["traceparent"].decode()) == trace_id(PARENT)
