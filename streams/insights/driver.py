"""Faust's Kafka driver, corrected: it must not show records of aborted transactions nor lose committed ones.

Written against faust-streaming 0.15 and aiokafka 0.14, whose settings have no way to say this.
"""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import faust
from aiokafka import AIOKafkaConsumer
from faust.transport.drivers import aiokafka as driver
from faust.types import TP
from faust.types.transports import ConsumerT, TransportT

_FETCH_MAX_WAIT_MS = 50


class _Thread(driver.AIOKafkaConsumerThread):
    def _create_worker_consumer(self, transport: driver.Transport) -> AIOKafkaConsumer:
        consumer = super()._create_worker_consumer(transport)
        # Both are read when the consumer starts. Faust has read_committed only with exactly_once, which loses and doubles.
        consumer._isolation_level = "read_committed"  # pyright: ignore[reportPrivateUsage]
        consumer._fetch_max_wait_ms = _FETCH_MAX_WAIT_MS  # pyright: ignore[reportPrivateUsage]
        return consumer

    async def getmany(self, active_partitions: set[TP] | None, timeout: float) -> Mapping[TP, list[Any]]:
        """Of a copy: Faust empties the set while the call waits, and aiokafka takes an empty set for all partitions.

        What it then brings is dropped as not active and never asked for again.
        """
        return await super().getmany(set(active_partitions or ()), timeout)

    async def seek_to_committed(self) -> Mapping[TP, int]:
        """To the beginning where nothing was committed yet: aiokafka leaves such a partition where it is."""
        offsets: Any = await super().seek_to_committed()
        changelogs = self.app.tables.changelog_topics
        never = [tp for tp, offset in offsets.items() if offset is None and tp.topic not in changelogs]
        if never:
            await self.seek_to_beginning(*never)
        return offsets


class _Consumer(driver.Consumer):
    """Resumes partitions only with the flow.

    After a table's recovery Faust resumes the stream's partitions, seeks, and only then resumes the flow, which empties
    the stream's queue: what was fetched in between is lost.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._held: set[TP] = set()

    def _new_consumer_thread(self) -> driver.AIOKafkaConsumerThread:
        return _Thread(self, loop=self.loop, beacon=self.beacon)

    def pause_partitions(self, tps: Iterable[TP]) -> None:
        paused = set(tps)
        self._held -= paused
        super().pause_partitions(paused)

    def resume_partitions(self, tps: Iterable[TP]) -> None:
        resumed = set(tps)
        streams = {tp for tp in resumed if not self._is_changelog_tp(tp)}
        self._held |= streams
        super().resume_partitions(resumed - streams)

    def resume_flow(self) -> None:
        super().resume_flow()
        super().resume_partitions(self._held)
        self._held = set()


class _Transport(driver.Transport):
    Consumer: ClassVar[type[ConsumerT]] = _Consumer


class App(faust.App):
    """A Faust app that reads what was committed, all of it."""

    def _new_transport(self) -> TransportT:
        return _Transport(self.conf.broker_consumer, self)

    def _create_directories(self) -> None:
        """None: the table is in memory and in its changelog."""
