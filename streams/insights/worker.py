"""longtake.segments.v1, jobs.v1, pieces.checked.v1 -> longtake.progress.v1, baselines.v1: derived streams, by Faust.

Everything here can be computed again: events have absolute values, nothing waits for them, and `longtake insights
rebuild` replays. One worker does it for all jobs, because its sums are over all of them; it takes hundreds of events a
second where a two-minute job has some 300.
"""

import asyncio
import logging
import os
import signal
import threading
import time

import faust
from faust.types.auth import CredentialsT

from infra.bus.access import MECHANISM, tls_context
from infra.metrics.door import Door, Health
from infra.settings import Settings
from streams.insights.driver import App
from streams.insights.facts import SOURCES
from streams.insights.generations import TABLE, Generations, group_of
from streams.insights.ledger import Ledger

_LOOK_FOR_GENERATION_S = 2.0
_STOP_S = 10.0
_BEAT_S = 0.5
log = logging.getLogger(__name__)


def run(settings: Settings, slot: int) -> None:
    """Derive the streams until SIGTERM, or until a newer generation was begun.

    Raises: ValueError for a slot other than 0; whatever broke Faust or an event: the process is to be started again.
    """
    if slot:
        raise ValueError("insights is one worker: slot 0")
    for noisy in ("faust", "mode", "aiokafka", "streams.insights.driver"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    generations = Generations(settings)
    asyncio.run(_serve(settings, generations, generations.current()))


def new_app(settings: Settings, generation: int) -> App:
    """The Faust app, without its agent."""
    return App(
        group_of(generation),
        broker=[f"kafka://{server}" for server in settings.kafka.split(",")],
        broker_credentials=_credentials(settings),
        processing_guarantee="at_least_once",
        broker_session_timeout=settings.session_timeout_ms / 1000,
        broker_commit_interval=0.5,
        consumer_group_instance_id=f"{group_of(generation)}-0",
        producer_linger=0.0,
        producer_compression_type="gzip",
        topic_allow_declare=False,
        topic_disable_leader=True,
        table_standby_replicas=0,
        web_enabled=False,
        store="memory://",
    )


def _credentials(settings: Settings) -> CredentialsT | None:
    context = tls_context(settings)
    if settings.kafka_user:
        password = settings.kafka_password.get_secret_value()
        return faust.SASLCredentials(
            username=settings.kafka_user, password=password, ssl_context=context, mechanism=MECHANISM
        )
    return faust.SSLCredentials(context) if context else None


async def _serve(settings: Settings, generations: Generations, generation: int) -> None:
    app = new_app(settings, generation)
    table = app.Table(TABLE, key_type=bytes, value_type=bytes, partitions=settings.partitions)
    ledger = Ledger(app, table)
    sources = app.topic(*SOURCES, key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw")
    app.agent(sources, concurrency=1, name=TABLE)(ledger.follow)
    app.on_partitions_assigned.connect(ledger.forget)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    reasons = {
        asyncio.create_task(stop.wait(), name="a signal"),
        asyncio.create_task(_superseded(generations, generation), name="a newer generation"),
        asyncio.create_task(_broken(app), name="Faust"),
        asyncio.create_task(ledger.broken(), name="an event"),
    }
    pulse = Pulse()
    beating = asyncio.create_task(pulse.beat())
    health = Health(age_s=pulse.age_s, unhealthy=lambda: pulse.stopped(settings.watchdog_s), unready=lambda: "")
    with Door(settings, health):
        done, _ = await asyncio.wait(reasons, return_when=asyncio.FIRST_COMPLETED)
    beating.cancel()
    log.info("insights ends by %s", " and ".join(task.get_name() for task in done))
    _end_process_after(_STOP_S)
    await app.stop()
    for task in done:
        task.result()


class Pulse:
    """Whether the event loop turns."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    async def beat(self) -> None:
        """For ever."""
        while True:
            self._last = time.monotonic()
            await asyncio.sleep(_BEAT_S)

    def age_s(self) -> float:
        """Since it turned last."""
        return time.monotonic() - self._last

    def stopped(self, limit_s: float) -> str:
        """What is wrong if it does not."""
        return f"the loop has not turned for {self.age_s():.1f} s" if self.age_s() > limit_s else ""


async def _superseded(generations: Generations, generation: int) -> None:
    while await asyncio.to_thread(generations.newest) <= generation:
        await asyncio.sleep(_LOOK_FOR_GENERATION_S)


async def _broken(app: App) -> None:
    await app.start()
    await app.wait_until_stopped()
    raise app.crash_reason or RuntimeError("Faust stopped by itself")


def _end_process_after(seconds: float) -> None:
    """Faust's shutdown can wait for ever for an agent. Nothing is lost: what was not committed comes again."""
    timer = threading.Timer(seconds, os._exit, (1,))
    timer.daemon = True
    timer.start()
