"""Headers of every event: W3C `traceparent` and CloudEvents 1.0 in Kafka's binary mode."""

import re
from datetime import UTC, datetime

import xxhash

from schemas.topics import Event

Headers = tuple[tuple[str, bytes], ...]
RawHeaders = tuple[tuple[str, bytes | None], ...]
"""As they come from other producers: Kafka knows headers without a value."""
_TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")


def trace_root(seed: str) -> str:
    """A sampled traceparent for a job whose producer sent none: the same for the same seed."""
    return f"00-{xxhash.xxh3_128_hexdigest(seed.encode())}-{xxhash.xxh3_64_hexdigest(seed.encode())}-01"


def trace_child(traceparent: str, span_seed: str) -> str:
    """The same trace with a span id of its own."""
    version, trace, _, flags = traceparent.split("-")
    return f"{version}-{trace}-{xxhash.xxh3_64_hexdigest(span_seed.encode())}-{flags}"


def trace_id(traceparent: str) -> str:
    """The 32 hex digits that all events, logs and rows of a job share."""
    return traceparent.split("-")[1]


def traceparent_of(headers: RawHeaders, *, otherwise: str) -> str:
    """The traceparent in the headers; if there is none or it breaks the W3C rule, the root of seed `otherwise`."""
    for name, value in headers:
        match = _TRACEPARENT.fullmatch(value.decode("latin-1")) if value and name == "traceparent" else None
        if match and set(match[1]) != {"0"} and set(match[2]) != {"0"}:
            return match[0]
    return trace_root(otherwise)


def event_headers(event: Event, *, event_id: str, traceparent: str, source: str, time_us: int) -> Headers:
    """`event_id` is equal when the same event is sent again, so a subscriber can drop doubles by `ce_id`."""
    time = datetime.fromtimestamp(time_us / 1e6, UTC).isoformat(timespec="microseconds")
    return (
        ("traceparent", trace_child(traceparent, event_id).encode()),
        ("content-type", b"application/vnd.confluent.avro"),
        ("ce_specversion", b"1.0"),
        ("ce_id", event_id.encode()),
        ("ce_type", f"longtake.{type(event).__name__}".encode()),
        ("ce_source", source.encode()),
        ("ce_time", time.encode()),
    )
