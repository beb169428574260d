"""Where a job stands in its queue, from what longtake.jobs.v1 says about all."""

import contextlib

from confluent_kafka import murmur2

from infra.bus import clients
from infra.bus.message import Message
from infra.bus.reader import Reader, event_of
from infra.bus.topics import partition_counts
from infra.settings import Settings
from schemas.errors import BadInputError
from schemas.records import JobChanged, Stage


def waiting_before(settings: Settings, job_id: str, tenant: str) -> int:
    """How many jobs of the tenant wait in the partition of a job that is submitted now, and are not this one."""
    waiting = Waiting()
    with Reader.from_beginning(settings, [JobChanged.topic]) as reader:
        for message in reader.to_end():
            waiting.saw(message)
    counts = partition_counts(clients.admin(settings), [JobChanged.topic])
    if waiting.knows(job_id):
        return waiting.ahead_of(job_id)
    return waiting.count(murmur2(job_id.encode(), counts[JobChanged.topic]), tenant)


class Waiting:
    """The jobs that wait, by partition and tenant, in the order in which the director took them."""

    def __init__(self) -> None:
        self._queues: dict[tuple[int, str], dict[str, None]] = {}
        self._places: dict[str, tuple[int, str]] = {}

    def saw(self, message: Message) -> None:
        """What was said about any job."""
        if message.topic != JobChanged.topic:
            return
        with contextlib.suppress(BadInputError):
            job = event_of(message)
            if isinstance(job, JobChanged):
                self._changed(job, message.partition)

    def knows(self, job_id: str) -> bool:
        """Whether the job waits."""
        return job_id in self._places

    def ahead_of(self, job_id: str) -> int:
        """How many of its tenant wait before it; 0 also if it does not wait."""
        place = self._places.get(job_id)
        return list(self._queues[place]).index(job_id) if place else 0

    def count(self, partition: int, tenant: str) -> int:
        """How many of the tenant wait in a partition."""
        return len(self._queues.get((partition, tenant), ()))

    def _changed(self, job: JobChanged, partition: int) -> None:
        known = self._places.get(job.job_id)
        if known and job.stage is not Stage.QUEUED:
            del self._queues[known][job.job_id], self._places[job.job_id]
        elif job.stage is Stage.QUEUED and not known:
            self._places[job.job_id] = place = (partition, job.tenant)
            self._queues.setdefault(place, {})[job.job_id] = None
