"""One event into the table and out as derived streams."""

import asyncio
import logging
from collections.abc import AsyncIterable, Awaitable, Iterable
from typing import Any, cast

from faust.types import EventT, StreamT, TableT

from infra.bus.outputs import Cause, Output, outputs_of
from schemas.codec import decode
from schemas.errors import BadInputError
from schemas.headers import traceparent_of
from schemas.topics import Event, key_of
from streams.insights.driver import App
from streams.insights.facts import JobFacts, dump, load, observe, progress
from streams.insights.quality import Quality, quality_of
from streams.insights.totals import Totals, totals_of

log = logging.getLogger(__name__)


class Ledger:
    """The table of all jobs and the sums over it. `bad_events` counts those that could not be read."""

    def __init__(self, app: App, table: TableT[bytes, bytes]) -> None:
        self.bad_events = 0
        self._app = app
        self._table = table
        self._totals: Totals | None = None
        self._quality = Quality()
        self._broken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def follow(self, stream: StreamT[Any]) -> None:
        """Faust's agent. An event that cannot be read is counted and passed over: who owns the topic dead-letters it."""
        async for event in cast(AsyncIterable[EventT[Any]], stream.events()):  # Faust's types call it a coroutine
            try:
                await self._take(event)
            except BadInputError as error:
                self.bad_events += 1
                message = event.message
                log.warning("unreadable: %s[%s]@%s %s", message.topic, message.partition, message.offset, error)
            except Exception as error:  # noqa: BLE001  (Faust acks an event whose agent raises: end the process instead)
                self._broken.set_exception(error)
                await asyncio.Event().wait()

    async def broken(self) -> None:
        """Raises what an event raised, when one does."""
        await self._broken

    async def forget(self, *_args: object, **_kwargs: object) -> None:
        """After a new assignment the table is another one: sum it up again at the next event."""
        self._totals = None

    async def _take(self, event: EventT[Any]) -> None:
        """Publish first, then write the row: after a crash in between, the event comes again and says the same."""
        record = decode(event.value or b"")
        key = key_of(record).encode()
        row: bytes | None = self._table.get(key)
        old = load(row) if row else None
        new = observe(old, record)
        if new is None or new == old:
            return
        outputs = outputs_of(self._derived(old, new), _cause(event, new))
        sent = [await self._send(output) for output in outputs]
        await self._app.producer.flush()
        await asyncio.gather(*sent)
        self._table[key] = dump(new)
        await self._app.producer.flush()

    async def _send(self, output: Output) -> Awaitable[object]:
        headers = [(name, value or b"") for name, value in output.headers]
        return await self._app.producer.send(output.topic, output.key, output.value, None, None, headers)

    def _derived(self, old: JobFacts | None, new: JobFacts) -> list[Event]:
        if self._totals is None:
            rows = [load(row) for row in self._table.values()]
            self._totals, self._quality = totals_of(rows), quality_of(rows)
        sums = [*self._totals.replace(old, new), *self._quality.replace(old, new)]
        return [progress(new), *sums] if new.frames else sums


def _cause(event: EventT[Any], facts: JobFacts) -> Cause:
    message = event.message
    headers = tuple(cast(Iterable[tuple[str, bytes]], message.headers or ()))
    return Cause(
        id=f"{message.topic}/{message.partition}/{message.offset}",
        traceparent=traceparent_of(headers, otherwise=facts.job_id),
        source="longtake/insights",
        time_us=facts.updated_us,
    )
