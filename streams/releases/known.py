"""longtake.releases.v1 -> the releases, for those who must know them. Outside every group."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from infra.bus.following import all_events
from infra.bus.following import following as following_topic
from infra.settings import Settings
from schemas.records import ReleaseCause, ReleaseChanged
from schemas.topics import Event


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

    def take(self, event: Event) -> None:
        """What an event says."""
        if isinstance(event, ReleaseChanged):
            self.releases[event.name] = event
        elif isinstance(event, ReleaseCause):
            self.causes[event.name] = event


def read_releases(settings: Settings) -> Releases:
    """As they are now. Raises: BusError."""
    found = Releases()
    for event in all_events(settings, ReleaseChanged.topic):
        found.take(event)
    return found


@contextmanager
def following(settings: Settings) -> Generator[Releases]:
    """Releases that are kept up to date, from a thread of its own; wait for `read` before the first is needed."""
    releases = Releases()
    with following_topic(settings, ReleaseChanged.topic, releases.take) as releases.read:
        yield releases
