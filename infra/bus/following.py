"""What a topic says about the line itself, kept up to date by a thread, outside every group."""

import logging
import math
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaException

from infra.bus.errors import BusError
from infra.bus.message import Message
from infra.bus.reader import Reader, event_of
from infra.settings import Settings
from schemas.errors import BadInputError
from schemas.topics import Event

_TURN_S = 0.1
_PAUSE_S = 1.0
_LEAVE_S = 1.0
Take = Callable[[Event], None]

log = logging.getLogger(__name__)


def all_events(settings: Settings, topic: str) -> Iterator[Event]:
    """What is on the topic now; a record that cannot be read says nothing. Raises: BusError."""
    with Reader.from_beginning(settings, [topic]) as reader:
        yield from (event for message in reader.to_end() for event in _events(message))


@contextmanager
def following(settings: Settings, topic: str, take: Take, *, past_s: float = math.inf) -> Generator[threading.Event]:
    """`take` gets every event of the topic in a thread of its own: those of the last `past_s` seconds, and what comes. The event that
    this gives is set when all that was there at the start is known."""
    read, over = threading.Event(), threading.Event()

    def reader() -> Reader:
        topics = [topic]
        return Reader.from_beginning(settings, topics) if past_s == math.inf else Reader.since(settings, topics, past_s)

    thread = threading.Thread(target=_follow, args=(topic, reader, take, read, over), name=topic, daemon=True)
    thread.start()
    try:
        yield read
    finally:
        over.set()
        thread.join(_LEAVE_S)  # it may be waiting for a broker that is away


def _follow(topic: str, opened: Callable[[], Reader], take: Take, read: threading.Event, over: threading.Event) -> None:
    """A broker that is away only makes what is known older."""
    while not over.is_set():
        try:
            with opened() as reader:
                while not over.is_set():
                    message = reader.poll(_TURN_S)
                    for event in _events(message) if message else ():
                        take(event)
                    if reader.at_end:
                        read.set()
        except (BusError, KafkaException) as error:
            log.warning("%s is not followed: %s", topic, error)
            over.wait(_PAUSE_S)


def _events(message: Message) -> Iterator[Event]:
    try:
        yield event_of(message)
    except BadInputError as error:
        log.warning("%s cannot be read: %s", message.id, error)
