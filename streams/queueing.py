"""Which jobs run and which wait: bounded in number, fair between tenants.

A queue stands beside the rows of one partition and follows from them: each partition of the topics is fair in itself, and
the limits are those of one partition. What it costs does not grow with what waits.

Fairness is start-time fair queueing (Goyal, Vin, Cheng, SIGCOMM 1996) over frames: of the tenants with a job that waits, the one
starts that has been given the fewest frames for its weight. A tenant that comes back begins where the others are.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush

from schemas.errors import BadInputError
from schemas.records import JobState, Stage
from streams.jobs import FINAL, plan_of
from streams.validation import refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Of one partition."""

    in_flight: int = 16
    """Jobs that run."""
    tenant_in_flight: int = 8
    tenant_queue: int = 10_000
    """Jobs that wait."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """Of tenants; 1 for those not named."""


@dataclass(slots=True)
class _Tenant:
    running: int = 0
    waiting: OrderedDict[str, int] = field(default_factory=OrderedDict)
    """Frames by job, the first come first."""
    finish: float = 0.0
    """Virtual time at which what it was given so far is done."""
    listed: bool = False


class JobQueue:
    """The jobs of one partition, by tenant. Told of every row that changes (`saw`), it knows whose turn it is (`next`)."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._tenants: dict[str, _Tenant] = {}
        self._running = 0
        self._heap: list[tuple[float, int, str]] = []
        """Start tag, a number that keeps equals in order, tenant. What cannot start any more is dropped when it comes up."""
        self._number = 0
        self._virtual = 0.0

    def saw(self, before: JobState | None, after: JobState) -> None:
        """A row was new or changed."""
        if _place(before) == _place(after):
            return
        tenant = self._tenants.setdefault(after.tenant, _Tenant())
        frames = 0
        if before and _waits(before):
            frames = tenant.waiting.pop(before.job_id)
        elif before and _runs(before):
            tenant.running -= 1
            self._running -= 1
        if _waits(after):
            tenant.waiting[after.job_id] = plan_of(after).frames
        elif _runs(after):
            tenant.running += 1
            self._running += 1
            self._charge(after.tenant, tenant, frames)
        self._list(after.tenant, tenant)

    def next(self) -> str | None:
        """The job whose turn it is; None: nobody waits, or enough run."""
        if self._running >= self._limits.in_flight:
            return None
        while self._heap:
            tenant = self._tenants.get(self._heap[0][2])
            if tenant and self._may_start(tenant):
                return next(iter(tenant.waiting))
            heappop(self._heap)
            if tenant:
                tenant.listed = False
        return None

    def full(self, job: JobState) -> BadInputError | None:
        """Why the job cannot wait here, if it cannot."""
        tenant = self._tenants.get(job.tenant)
        most = self._limits.tenant_queue
        if tenant is None or len(tenant.waiting) < most:
            return None
        return refused("tenant", "queue", f"{most} jobs of tenant {job.tenant} wait already: submit again later")

    def _charge(self, name: str, tenant: _Tenant, frames: int) -> None:
        """What starts moves the time of all; what is read from the table had started before."""
        if not frames:
            return
        start = max(self._virtual, tenant.finish)
        if self._heap and self._heap[0][2] == name:
            start = heappop(self._heap)[0]
            tenant.listed = False
        self._virtual = start
        tenant.finish = start + frames / self._limits.weights.get(name, 1.0)

    def _list(self, name: str, tenant: _Tenant) -> None:
        if not tenant.running and not tenant.waiting:
            del self._tenants[name]
        elif not tenant.listed and self._may_start(tenant):
            tenant.listed = True
            self._number += 1
            heappush(self._heap, (max(self._virtual, tenant.finish), self._number, name))

    def _may_start(self, tenant: _Tenant) -> bool:
        return bool(tenant.waiting) and tenant.running < self._limits.tenant_in_flight


def _waits(job: JobState) -> bool:
    return job.stage is Stage.QUEUED


def _runs(job: JobState) -> bool:
    return job.stage not in FINAL and not _waits(job)


def _place(job: JobState | None) -> str:
    return "over" if job is None or job.stage in FINAL else "waits" if _waits(job) else "runs"
