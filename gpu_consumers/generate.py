"""longtake.segments.requested.v1 -> longtake.segments.v1: latents and frames of one segment after another, by an engine.

The engine runs in a process of its own (`child.py`), which this one keeps running and can kill (`supervisor.py`). Results are
in the object store, and their manifest too, before the event that points at them.
"""

from concurrent.futures import Future
from contextlib import closing

from gpu_consumers.pipe import Open
from gpu_consumers.supervisor import Supervisor
from infra.bus.clients import Member
from infra.bus.ended import EndedJobs, following
from infra.bus.in_hand import ids_of
from infra.bus.message import Message
from infra.bus.process import stop_on_signals
from infra.bus.requests import request_in
from infra.bus.work import Answer
from infra.bus.worker import run_worker
from infra.objects import job_key
from infra.settings import Settings
from schemas.errors import BadInputError
from schemas.records import SegmentRequested


def run(settings: Settings, slot: int) -> None:
    """Serve the topic until SIGTERM or SIGINT. Raises: BusError, EngineProcessError: start the process again."""
    stop = stop_on_signals()
    member = Member(role="generate", topics=(SegmentRequested.topic,), slot=slot)
    with closing(Generate(settings, member.name, slot)) as work, following(settings, work.ended):
        run_worker(settings, member, work, stop)


class Generate:
    """The work of a generate worker (`infra.bus.work.Work`). `worker` is the slot's stable name; the slot decides its GPU."""

    def __init__(self, settings: Settings, worker: str, slot: int = 0) -> None:
        config = Open(
            objects=settings.objects,
            worker=worker,
            held_states=2 * settings.slots,
            warm=settings.warm,
            logs=settings.logs,
        )
        self._ended = EndedJobs()
        self._supervisor = Supervisor(config, settings.segment_timeout_s, slot)

    def submit(self, message: Message) -> Answer:
        """The segment's SegmentGenerated or SegmentFailed, or nothing if its job has ended.

        It raises BadInputError, or EngineProcessError: the end of the worker.
        """
        try:
            request = requested(message)
            if not self._ended.cover(request):
                return self._supervisor.submit(request, ids_of(message).trace_id)
            nothing: Answer = Future()
            nothing.set_result(())
            return nothing
        except BadInputError as error:
            refused: Answer = Future()
            refused.set_exception(error)
            return refused

    def ended(self, job_id: str, at_us: int) -> None:
        """The job was cancelled or has failed: what was asked for it before is dropped, also what is in hand."""
        self._ended.add(job_id, at_us)
        self._supervisor.stop(job_id, at_us)

    def unready(self) -> str:
        """What keeps the engine process from new work."""
        return self._supervisor.unready()

    def close(self) -> None:
        """Kill the engine process: what it has in hand comes again. Harmless the second time."""
        self._supervisor.close()

    def busy_us(self) -> tuple[int, int]:
        """`(busy, waiting)`: for how long requests waited, and for how much of that the engine worked."""
        return self._supervisor.busy_us()


def requested(message: Message) -> SegmentRequested:
    """The request in a record. Raises: BadInputError, also if its job_id cannot be part of an object's key."""
    request = request_in(message, SegmentRequested)
    try:
        job_key(request.job_id, "segments", "0")
    except ValueError as error:
        raise BadInputError(field="job_id", rule="format", message=str(error), job_id=request.job_id) from error
    return request
