"""longtake.jobs.state.v1: the director's table, read partition by partition."""

import logging
import time
from collections.abc import Iterator

from confluent_kafka import OFFSET_BEGINNING, TopicPartition

from infra.bus import clients
from infra.bus.errors import BusError
from infra.bus.message import Message
from infra.bus.progress import EndsQuery, Offsets
from infra.bus.received import received
from infra.bus.watchdog import Watchdog
from infra.settings import Settings
from schemas.codec import decode, is_framed_as, is_newer
from schemas.errors import BadInputError
from schemas.records import JobState

_TURN_S = 0.2
_STILL_S = 2 * clients.TRANSACTION_TIMEOUT_MS / 1000

log = logging.getLogger(__name__)
Rows = dict[str, JobState]
"""The last state of each job, by job_id."""


class RowReader:
    """Owns the consumer that reads partitions of the table to their end."""

    def __init__(self, settings: Settings, client: str, watchdog: Watchdog) -> None:
        self._consumer = clients.lone_consumer(settings, f"{client}-table")
        self._admin = clients.admin(settings)
        self._watchdog = watchdog

    def read(self, partitions: set[int]) -> dict[int, Rows]:
        """The rows of `partitions`, which were assigned to this process before.

        Their former owner may be in the middle of a commit. That counts if its offsets were accepted before the
        partitions changed hands, and it writes rows before offsets. So the log is read to where it ends now, open
        transactions included: they end before the last record comes.

        Raises: BusError if a hanging transaction keeps it from that, or a newer release was here.
        """
        started = time.monotonic()
        ends = EndsQuery(self._admin, [(JobState.topic, p) for p in partitions]).result().written
        self._consumer.assign([TopicPartition(JobState.topic, p, OFFSET_BEGINNING) for p in partitions])
        newest: dict[int, dict[str, bytes]] = {p: {} for p in partitions}
        for message in self._until(ends):
            if message.value is None:
                newest[message.partition].pop(message.job_id, None)
            elif is_framed_as(JobState, message.value):
                newest[message.partition][message.job_id] = message.value
            elif is_newer(message.value):
                raise BusError(f"the row of job {message.job_id} is of a newer release: run that one")
            else:
                log.error("%s/%s/%s is no row and is passed over", message.topic, message.partition, message.offset)
        self._consumer.unassign()
        rows = {p: dict(self._rows(newest[p])) for p in partitions}
        count, took_s = sum(map(len, rows.values())), time.monotonic() - started
        log.info("read %d rows of partitions %s in %.2f s", count, sorted(partitions), took_s)
        return rows

    def close(self) -> None:
        self._consumer.close()

    def _until(self, ends: Offsets) -> Iterator[Message]:
        missing = {place for place, end in ends.items() if end > 0}
        moved = time.monotonic()
        while missing:
            self._watchdog.beat()
            record = self._consumer.poll(_TURN_S)
            if record is not None:
                moved = time.monotonic()
                got = received(record)
                if isinstance(got, Message):
                    yield got
                elif got.offset >= ends[got.place]:
                    missing.discard(got.place)
            elif time.monotonic() - moved > _STILL_S:
                names = ", ".join(f"{topic}/{partition}" for topic, partition in sorted(missing))
                raise BusError(f"hanging transaction: the table cannot be read to its end in {names}")

    def _rows(self, newest: dict[str, bytes]) -> Iterator[tuple[str, JobState]]:
        """One bad row must not stop all other jobs: it is said, and its job is unknown until it is submitted again."""
        for job_id, value in newest.items():
            self._watchdog.beat()
            try:
                row = decode(value)
            except BadInputError as error:
                log.error("the row of job %s cannot be read and is passed over: %s", job_id, error)
                continue
            if isinstance(row, JobState):
                yield job_id, row
