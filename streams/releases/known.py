"""longtake.releases.v1 -> the releases, for those who must know them. Outside every group."""

import logging
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from confluent_kafka import KafkaException

from infra.bus.errors import BusError
from infra.bus.message import Message
from infra.bus.reader import Reader, event_of
from infra.settings import Settings
from schemas.errors import BadInputError
from schemas.records import ReleaseCause, ReleaseChanged

_TURN_S = 0.1
_PAUSE_S = 1.0
_LEAVE_S = 1.0

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Releases:
    """The last state of every release, by name."""

    releases: dict[str, ReleaseChanged] = field(default_factory=dict)
    causes: dict[str, ReleaseCause] = field(default_factory=dict)
    read: threading.Event = field(default_factory=threading.Event)
    """All that was there at the start is known."""

    def all(self) -> tuple[ReleaseChanged, ...]:
        """Safe to call from another thread."""
        return tuple(self.releases.copy().values())

    def take(self, message: Message) -> None:
        """What a record says; one that cannot be read says nothing."""
        try:
            event = event_of(message)
        except BadInputError as error:
            log.warning("%s cannot be read: %s", message.id, error)
            return
        if isinstance(event, ReleaseChanged):
            self.releases[event.name] = event
        elif isinstance(event, ReleaseCause):
            self.causes[event.name] = event


def read_releases(settings: Settings) -> Releases:
    """As they are now. Raises: BusError."""
    found = Releases()
    with Reader.from_beginning(settings, [ReleaseChanged.topic]) as reader:
        for message in reader.to_end():
            found.take(message)
    return found


@contextmanager
def following(settings: Settings) -> Generator[Releases]:
    """Releases that are kept up to date, from a thread of its own; wait for `read` before the first is needed."""
    releases, over = Releases(), threading.Event()
    thread = threading.Thread(target=_follow, args=(settings, releases, over), name="releases", daemon=True)
    thread.start()
    try:
        yield releases
    finally:
        over.set()
        thread.join(_LEAVE_S)  # it may be waiting for a broker that is away


def _follow(settings: Settings, releases: Releases, over: threading.Event) -> None:
    """A broker that is away only makes them older."""
    while not over.is_set():
        try:
            with Reader.from_beginning(settings, [ReleaseChanged.topic]) as reader:
                for message in reader.to_end():
                    releases.take(message)
                releases.read.set()
                while not over.is_set():
                    if message := reader.poll(_TURN_S):
                        releases.take(message)
        except (BusError, KafkaException) as error:
            log.warning("releases are not followed: %s", error)
            over.wait(_PAUSE_S)
