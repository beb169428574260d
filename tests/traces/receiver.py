"""An OTLP receiver: takes what is posted to /v1/traces and keeps the spans."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span


@dataclass(frozen=True, kw_only=True)
class Received:
    """A span as it came, its ids in hex."""

    service: str
    name: str
    trace: str
    id: str
    parent: str
    start_ns: int
    end_ns: int
    links: tuple[str, ...]
    attributes: dict[str, Any]
    frames: dict[int, int]
    """Frame -> nanosecond of its event."""
    failed: bool


@dataclass
class Receiver:
    """What was received so far. While `refusing`, nothing is taken."""

    url: str = ""
    spans: list[Received] = field(default_factory=list)
    refusing: bool = False
    refused: int = 0
    paths: set[str] = field(default_factory=set)


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A receiver on a port of its own, on loopback."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.paths.add(self.path)
            if receiver.refusing:
                receiver.refused += 1
                self.send_error(HTTPStatus.BAD_REQUEST)
                return
            packed = self.headers.get("Content-Encoding") == "gzip"
            receiver.spans += _spans(gzip.decompress(body) if packed else body)
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (its name in the library)
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()


def _spans(body: bytes) -> list[Received]:
    request = ExportTraceServiceRequest.FromString(body)
    return [
        _received(span, _values(resource.resource.attributes)["service.name"])
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def _received(span: Span, service: str) -> Received:
    moments = [(_values(event.attributes), event.time_unix_nano) for event in span.events]
    return Received(
        service=service,
        name=span.name,
        trace=span.trace_id.hex(),
        id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
        links=tuple(link.span_id.hex() for link in span.links),
        attributes=_values(span.attributes),
        frames={said["longtake.frame"]: at_ns for said, at_ns in moments},
        failed=span.status.code == 2,
    )


def _values(attributes: Any) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in attributes}


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    return [_value(each) for each in value.array_value.values] if kind == "array_value" else getattr(value, kind or "")
