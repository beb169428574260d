"""longtake.baselines.v1 -> what is usual of each population, for the QC workers. Outside every group, in a thread of its own."""

import logging
import threading
from collections.abc import Generator
from contextlib import contextmanager

from confluent_kafka import KafkaException

from infra.bus.errors import BusError
from infra.bus.message import Message
from infra.bus.reader import Reader, event_of
from infra.settings import Settings
from schemas.errors import BadInputError
from schemas.records import QualityBaseline

_TURN_S = 0.2
_PAUSE_S = 1.0

log = logging.getLogger(__name__)


class Baselines:
    """The newest baseline of each population. May be late: a piece is then judged by the one before, or by fixed limits."""

    def __init__(self) -> None:
        self._known: dict[str, QualityBaseline] = {}

    def take(self, message: Message) -> None:
        """What a record says; one that cannot be read says nothing."""
        try:
            event = event_of(message)
        except BadInputError as error:
            log.warning("%s cannot be read: %s", message.id, error)
            return
        if isinstance(event, QualityBaseline):
            self._known[event.population] = event

    def of(self, population: str) -> QualityBaseline | None:
        """None while there is none."""
        return self._known.get(population)


@contextmanager
def following(settings: Settings) -> Generator[Baselines]:
    """Baselines that are kept up to date."""
    baselines, over = Baselines(), threading.Event()
    thread = threading.Thread(target=_follow, args=(settings, baselines, over), name="baselines", daemon=True)
    thread.start()
    try:
        yield baselines
    finally:
        over.set()
        thread.join()


def _follow(settings: Settings, baselines: Baselines, over: threading.Event) -> None:
    """A broker that is away only makes them older."""
    while not over.is_set():
        try:
            with Reader.from_beginning(settings, [QualityBaseline.topic]) as reader:
                while not over.is_set():
                    if message := reader.poll(_TURN_S):
                        baselines.take(message)
        except (BusError, KafkaException) as error:
            log.warning("what is usual is not followed: %s", error)
            over.wait(_PAUSE_S)
