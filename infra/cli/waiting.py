"""Where a job stands in its queue, from what longtake.jobs.v1 says about all."""

import contextlib

from infra.bus.message import Message
from infra.bus.reader import event_of
from schemas.errors import BadInputError
from schemas.records import JobChanged, Stage


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

    def ahead_of(self, job_id: str) -> int:
        """How many of its tenant wait before it; 0 also if it does not wait."""
        place = self._places.get(job_id)
        return list(self._queues[place]).index(job_id) if place else 0

    def _changed(self, job: JobChanged, partition: int) -> None:
        known = self._places.get(job.job_id)
        if known and job.stage is not Stage.QUEUED:
            del self._queues[known][job.job_id], self._places[job.job_id]
        elif job.stage is Stage.QUEUED and not known:
            self._places[job.job_id] = place = (partition, job.tenant)
            self._queues.setdefault(place, {})[job.job_id] = None
