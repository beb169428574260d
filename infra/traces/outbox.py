"""Spans to an OTLP receiver, over HTTP: what it does not take is offered again for a while, in bounded memory."""

import logging
from collections import deque
from collections.abc import Sequence
from functools import lru_cache

from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, Status, StatusCode, TraceFlags
from prometheus_client import Counter

from infra.traces.span import Span

_BATCH = 500
_MOST = 50_000
"""Spans that wait."""
_AGAIN_S = 5.0
_TRIES = 60
"""Five minutes: then a batch is refused for what it is, not for the receiver's absence."""
_ANSWER_S = 5.0
_SCOPE = InstrumentationScope("longtake")

SPANS = Counter("longtake_spans_total", "Spans, by what became of them: sent or dropped.", ("outcome",))

log = logging.getLogger(__name__)


class Outbox:
    """Owns the connection and the spans that wait."""

    def __init__(self, endpoint: str) -> None:
        """`endpoint` is the receiver's address without a path."""
        url = f"{endpoint.rstrip('/')}/v1/traces"
        self._exporter = OTLPSpanExporter(url, timeout=_ANSWER_S, compression=Compression.Gzip)
        self._waiting: deque[Sequence[Span]] = deque()
        self._spans = 0
        self._tries = 0
        self._next_s = 0.0

    def put(self, spans: Sequence[Span]) -> None:
        """Spans to send; the oldest are dropped if too many wait."""
        for start in range(0, len(spans), _BATCH):
            batch = spans[start : start + _BATCH]
            self._waiting.append(batch)
            self._spans += len(batch)
        while self._spans > _MOST:
            self._drop()

    def send(self, now_s: float) -> None:
        """Offer what waits; after a refusal not again for five seconds. Takes up to five seconds itself."""
        while self._waiting and now_s >= self._next_s:
            batch = self._waiting[0]
            if self._exporter.export([readable(span) for span in batch]) is SpanExportResult.SUCCESS:
                self._waiting.popleft()
                self._spans -= len(batch)
                self._tries = 0
                SPANS.labels("sent").inc(len(batch))
                continue
            self._tries += 1
            self._next_s = now_s + _AGAIN_S
            if self._tries >= _TRIES:
                self._drop()

    def close(self) -> None:
        """Give the connection back; what waits is told again after a restart."""
        self._exporter.shutdown()

    def _drop(self) -> None:
        batch = self._waiting.popleft()
        self._spans -= len(batch)
        self._tries = 0
        SPANS.labels("dropped").inc(len(batch))
        log.warning("%d spans of job %s were dropped: the receiver took none", len(batch), _job(batch))


def readable(span: Span) -> ReadableSpan:
    """The same in OpenTelemetry's words: nanoseconds, a resource for the service, a context for every id."""
    return ReadableSpan(
        span.name,
        context=_context(span.trace_id, span.span_id),
        parent=_context(span.trace_id, span.parent_id) if span.parent_id else None,
        resource=_resource(span.service, span.worker),
        attributes=dict(span.attributes),
        events=[Event(m.name, dict(m.attributes), m.at_us * 1000) for m in span.moments],
        links=[Link(_context(span.trace_id, link)) for link in span.links],
        status=Status(StatusCode.ERROR, span.error) if span.error else Status(StatusCode.UNSET),
        start_time=span.start_us * 1000,
        end_time=max(span.start_us, span.end_us) * 1000,
        instrumentation_scope=_SCOPE,
    )


def _context(trace_id: int, span_id: int) -> SpanContext:
    return SpanContext(trace_id, span_id, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))


@lru_cache(maxsize=1024)
def _resource(service: str, worker: str) -> Resource:
    said = {"service.namespace": "longtake", "service.name": service}
    return Resource(said | ({"service.instance.id": worker} if worker else {}))


def _job(batch: Sequence[Span]) -> object:
    return batch[0].attributes.get("longtake.job_id", "")
