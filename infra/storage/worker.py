"""The sweeper: every now and then, and at once when the disk is nearly full, what nobody needs leaves the object store."""

import logging
import threading
import time

from confluent_kafka import KafkaException

from infra.bus.errors import BusError
from infra.bus.process import stop_on_signals
from infra.metrics.door import Door, Health
from infra.objects import Objects
from infra.settings import Settings
from infra.storage.disk import DiskWatch
from infra.storage.sweep import sweep

_LOOK_S = 5.0
_AGAIN_S = 60.0
"""While the disk is nearly full: a sweep lists the whole store."""

log = logging.getLogger(__name__)


def run(settings: Settings, slot: int) -> None:
    """Sweep until SIGTERM or SIGINT. A second one does no harm and no good."""
    del slot
    stop = stop_on_signals()
    # Listing a large store takes long, and nobody waits for a sweeper.
    health = Health(age_s=lambda: 0.0, unhealthy=lambda: "", unready=lambda: "")
    with Door(settings, health):
        keep_swept(settings, stop)


def keep_swept(settings: Settings, stop: threading.Event) -> None:
    """Sweep until `stop`. A broker that is away is waited for."""
    objects, disk = Objects(settings.objects), DiskWatch(settings)
    last_s = -settings.sweep_s
    while not stop.wait(_LOOK_S):
        every_s = settings.sweep_s if disk.has_room() else min(_AGAIN_S, settings.sweep_s)
        if time.monotonic() - last_s < every_s:
            continue
        last_s = time.monotonic()
        try:
            sweep(settings, objects)
        except (BusError, KafkaException) as error:
            log.warning("not swept: %s", error)
