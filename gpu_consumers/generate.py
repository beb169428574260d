"""longtake.segments.requested.v1 -> longtake.segments.v1: latents and frames of one segment after another, by an engine.

The engine runs in a process of its own (`child.py`), which this one keeps running and can kill (`supervisor.py`). Results are
in the object store, and their manifest too, before the event that points at them.
"""

from concurrent.futures import Future

from gpu_consumers.hands import Outcome
from gpu_consumers.pipe import Open
from gpu_consumers.supervisor import Supervisor
from infra.bus.message import Message
from infra.objects import job_key
from infra.settings import Settings
from schemas.codec import decode, request_hash
from schemas.errors import BadInputError
from schemas.records import SegmentRequested


class Generate:
    """The work of a generate worker (`infra.bus.work.Work`). `worker` is the slot's stable name."""

    def __init__(self, settings: Settings, worker: str) -> None:
        config = Open(objects=settings.objects, worker=worker, held_states=2 * settings.slots)
        self._supervisor = Supervisor(config, settings.segment_timeout_s)

    def submit(self, message: Message) -> Outcome:
        """The segment's SegmentGenerated or SegmentFailed. The future raises BadInputError, or EngineProcessError: the end of the process."""
        try:
            return self._supervisor.submit(requested(message))
        except BadInputError as error:
            refused: Outcome = Future()
            refused.set_exception(error)
            return refused

    def close(self) -> None:
        """Kill the engine process: what it has in hand comes again."""
        self._supervisor.close()

    def busy_us(self) -> tuple[int, int]:
        """`(busy, waiting)`: for how long requests waited, and for how much of that the engine worked."""
        return self._supervisor.busy_us()


def requested(message: Message) -> SegmentRequested:
    """The request in a record. Raises: BadInputError."""
    request = decode(message.value or b"")
    if not isinstance(request, SegmentRequested):
        raise BadInputError(field="value", rule="type", message=f"a {type(request).__name__} is no SegmentRequested")

    def bad(field: str, rule: str, why: str) -> BadInputError:
        return BadInputError(field=field, rule=rule, message=why, job_id=request.job_id)

    if message.key != request.job_id.encode():
        raise bad("key", "key", f"the key is not the job_id {request.job_id!r}")
    try:
        job_key(request.job_id, "segments", "0")
    except ValueError as error:
        raise bad("job_id", "format", str(error)) from error
    if request_hash(request) != request.request_hash:
        raise bad("request_hash", "hash", "it is not the hash of this request")
    return request
