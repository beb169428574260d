"""longtake.jobs.state.v1: the director's table, read partition by partition."""

import logging
import time
from collections.abc import Collection, Iterator

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
from schemas.rows import RESTING

_TURN_S = 0.2
_STILL_S = 2 * clients.TRANSACTION_TIMEOUT_MS / 1000

log = logging.getLogger(__name__)


class Rows:
    """The last state of each job of one partition. Those that rest, waiting or over, are kept as bytes: a third of the memory."""

    def __init__(self) -> None:
        self._awake: dict[str, JobState] = {}
        self._resting: dict[str, bytes] = {}

    def get(self, job_id: str) -> JobState | None:
        """The row of a job."""
        value = self._resting.get(job_id)
        return self._awake.get(job_id) if value is None else _row(value)

    def put(self, row: JobState, value: bytes) -> None:
        """Change a row. `value` is the row encoded."""
        self._awake.pop(row.job_id, None)
        self._resting.pop(row.job_id, None)
        if row.stage in RESTING:
            self._resting[row.job_id] = value
        else:
            self._awake[row.job_id] = row

    def awake(self) -> Collection[JobState]:
        """Rows of jobs that are worked at."""
        return self._awake.values()

    def __iter__(self) -> Iterator[JobState]:
        """All rows; those that rest in the order in which they came to rest."""
        yield from self._awake.values()
        yield from map(_row, self._resting.values())

    def __len__(self) -> int:
        return len(self._awake) + len(self._resting)


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
                newest[message.partition].pop(message.job_id, None)  # in the order of the last writes
                newest[message.partition][message.job_id] = message.value
            elif is_newer(message.value):
                raise BusError(f"the row of job {message.job_id} is of a newer release: run that one")
            else:
                log.error("%s/%s/%s is no row and is passed over", message.topic, message.partition, message.offset)
        self._consumer.unassign()
        rows = {p: self._rows(newest[p]) for p in partitions}
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

    def _rows(self, newest: dict[str, bytes]) -> Rows:
        """One bad row must not stop all other jobs: it is said, and its job is unknown until it is submitted again."""
        rows = Rows()
        for job_id, value in newest.items():
            self._watchdog.beat()
            try:
                row = decode(value)
            except BadInputError as error:
                log.error("the row of job %s cannot be read and is passed over: %s", job_id, error)
                continue
            if isinstance(row, JobState):
                rows.put(row, value)
        return rows


def _row(value: bytes) -> JobState:
    row = decode(value)
    assert isinstance(row, JobState)  # noqa: S101
    return row
