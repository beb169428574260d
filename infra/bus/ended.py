"""longtake.jobs.v1 -> which jobs are over: what was asked for them before is of no use any more.

The director says so, not whoever wants a job cancelled: a worker that drops work on its word agrees with the table. Requests
and JobChanged carry the director's time, so that those of a retry are told from those before.
"""

import contextlib
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from infra.bus.following import following as following_topic
from infra.bus.message import Message
from infra.bus.reader import event_of
from infra.bus.work import Handler
from infra.settings import Settings
from schemas.errors import BadInputError
from schemas.records import AssemblyRequested, JobChanged, PieceRequested, SegmentRequested, Stage
from schemas.topics import Event

_PAST_S = 600.0
"""A worker that starts hears what was said while it was away for so long."""
_REMEMBERED = 10_000

log = logging.getLogger(__name__)


class EndedJobs:
    """The jobs that ended last, and when."""

    def __init__(self) -> None:
        self._at_us: OrderedDict[str, int] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, job_id: str, at_us: int) -> None:
        """The job ended."""
        with self._lock:
            self._at_us.pop(job_id, None)
            self._at_us[job_id] = at_us
            if len(self._at_us) > _REMEMBERED:
                self._at_us.popitem(last=False)

    def cover(self, request: SegmentRequested | PieceRequested | AssemblyRequested) -> bool:
        """Whether the request was made before its job ended."""
        with self._lock:
            return request.requested_us < self._at_us.get(request.job_id, 0)


def unless_ended(ended: EndedJobs, handler: Handler) -> Handler:
    """A handler of requests that leads to nothing for those whose job has ended since."""

    def handle(message: Message) -> Sequence[Event]:
        with contextlib.suppress(BadInputError):
            request = event_of(message)
            if isinstance(request, SegmentRequested | PieceRequested | AssemblyRequested) and ended.cover(request):
                log.info("job %s: %s is dropped: its job has ended", message.job_id, message.id)
                return ()
        return handler(message)

    return handle


@contextmanager
def following(settings: Settings, tell: Callable[[str, int], None]) -> Generator[None]:
    """Tell of every job that ends. A broker that is away delays it: work that is not dropped is only done in vain."""

    def take(event: Event) -> None:
        if isinstance(event, JobChanged) and event.stage in (Stage.CANCELLED, Stage.FAILED):
            tell(event.job_id, event.changed_us)

    with following_topic(settings, JobChanged.topic, take, past_s=_PAST_S):
        yield
