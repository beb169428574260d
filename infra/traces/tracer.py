"""`longtake worker tracer`: every topic of a job's way -> one OpenTelemetry trace per job, by OTLP over HTTP.

It reads the times that events carry: no worker spends anything on tracing. It writes nothing and is in no group: run one, or none.
After a restart it reads the last hour again; spans have the same ids again, so a receiver can tell that they are the same.
"""

import logging
import time

from infra.bus.process import stop_on_signals
from infra.bus.reader import Reader, event_of
from infra.bus.watchdog import Watchdog
from infra.metrics.door import Door, Health
from infra.settings import Settings
from infra.traces.book import TRACES, Book, chosen
from infra.traces.outbox import Outbox
from schemas import records as r
from schemas.errors import BadInputError

SOURCES = tuple(
    dict.fromkeys(
        event.topic
        for event in (
            r.PromptSubmitted,
            r.PromptRefused,
            r.SegmentRequested,
            r.SegmentGenerated,
            r.PieceRequested,
            r.PieceStitched,
            r.PieceChecked,
            r.AssemblyRequested,
            r.VideoAssembled,
            r.VideoChecked,
            r.VideoFinished,
            r.JobChanged,
        )
    )
)
_BACK_S = 3600.0
_TURN_S = 0.2
_FOLLOW_S = 1.0

log = logging.getLogger(__name__)


def run(settings: Settings, slot: int) -> None:
    """Follow the topics until SIGTERM; without an endpoint, wait for it. Raises: ValueError for a slot other than 0; BusError."""
    if slot:
        raise ValueError("the tracer is one process: slot 0")
    stop = stop_on_signals()
    if not settings.trace_endpoint:
        log.info("LONGTAKE_TRACE_ENDPOINT is not set: nothing to do")
        with Door(settings, Health(age_s=lambda: 0.0, unhealthy=lambda: "", unready=lambda: "")):
            stop.wait()
        return
    book, outbox = Book(), Outbox(settings.trace_endpoint)
    with (
        Watchdog("longtake.tracer", 60 + settings.watchdog_s) as dog,
        Reader.since(settings, SOURCES, _BACK_S) as reader,
        Door(settings, Health(age_s=dog.age_s, unhealthy=dog.stopped, unready=lambda: "")),
    ):
        while not stop.is_set():
            dog.beat()
            follow(reader, book)
            now_s = time.monotonic()
            # Before the end of every topic was seen, what led to a job's end may be far behind the end.
            for spans in book.due(now_s) if reader.at_end else book.room():
                kept = chosen(spans, settings)
                TRACES.labels("told" if kept else "left_out").inc()
                outbox.put(kept)
            outbox.send(now_s)
    outbox.close()


def follow(reader: Reader, book: Book) -> None:
    """Take what has come, for a second at most."""
    until_s = time.monotonic() + _FOLLOW_S
    while time.monotonic() < until_s:
        message = reader.poll(_TURN_S)
        if message is None:
            return
        if message.value is None:
            continue
        try:
            book.take(message, event_of(message), time.monotonic())
        except BadInputError as error:
            log.debug("job %s: %s cannot be read: %s", message.job_id, message.id, error)
