"""`longtake worker exporter`: metrics of the line as a whole, for the time when the workers themselves are silent.

It writes nothing and is in no group: run one, or none.
"""

import logging
import time

from confluent_kafka import KafkaException

from infra.bus import clients
from infra.bus.groups import GroupOffsets
from infra.bus.process import stop_on_signals
from infra.bus.reader import Reader, event_of
from infra.bus.watchdog import Watchdog
from infra.metrics.door import Door, Health
from infra.metrics.line import SOURCES, Line
from infra.metrics.outside import dead_letter_places, look_at_disk, look_at_groups, look_at_services
from infra.settings import Settings
from qc_consumers.profile import load_profiles
from schemas.errors import BadInputError

_EVERY_S = 2.0
_TURN_S = 0.2

log = logging.getLogger(__name__)


def run(settings: Settings, slot: int) -> None:
    """Follow the topics and look at the services until SIGTERM. Raises: ValueError for a slot other than 0; BusError."""
    if slot:
        raise ValueError("the exporter is one process: slot 0")
    stop = stop_on_signals()
    client, line = clients.admin(settings), Line(profile.name for profile in load_profiles())
    letters = dead_letter_places(client)
    # A request to Kafka may take its ten seconds several times while a broker is away.
    with (
        Watchdog("longtake.exporter", 60 + settings.watchdog_s) as dog,
        Reader.from_beginning(settings, SOURCES) as reader,
        GroupOffsets(settings) as asked,
    ):
        health = Health(age_s=dog.age_s, unhealthy=dog.stopped, unready=lambda: "")
        next_look_s = 0.0
        with Door(settings, health):
            while not stop.is_set():
                dog.beat()
                _follow(reader, line)
                if time.monotonic() < next_look_s:
                    continue
                next_look_s = time.monotonic() + _EVERY_S
                look_at_services(settings)
                look_at_disk(settings)
                try:
                    look_at_groups(client, asked, letters)
                except (KafkaException, TimeoutError) as error:
                    log.warning("the broker does not say how far groups are: %s", error)


def _follow(reader: Reader, line: Line) -> None:
    until_s = time.monotonic() + _EVERY_S
    while time.monotonic() < until_s:
        message = reader.poll(_TURN_S)
        if message is None:
            return
        if message.value is None:
            continue
        try:
            line.take(event_of(message))
        except BadInputError as error:
            log.warning("%s cannot be read: %s", message.id, error)
