"""longtake.prompts.v1, jobs.v1, progress.v1, prompts.refused.v1, videos.finished.v1 -> what the line says of its jobs, in memory.

A door keeps nothing of its own: any number of them say the same, and each can be started anew.
"""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException

from infra.bus.errors import BusError
from infra.bus.message import Message
from infra.bus.reader import Reader, event_of
from infra.settings import Settings
from schemas.codec import content_hash, to_json
from schemas.errors import BadInputError
from schemas.records import JobChanged, JobProgress, PromptRefused, PromptSubmitted, VideoFinished
from schemas.topics import Event

SOURCES = (PromptSubmitted.topic, JobChanged.topic, JobProgress.topic, PromptRefused.topic, VideoFinished.topic)
_KEPT = 10_000
"""Events that a subscriber who lost its connection can be told again."""
_PROMPTS = 4
"""Of different content under one id: only one of them became the job."""
_TURN_S = 0.2
_SILENCE_S = 15.0
_PAUSE_S = 10.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """All that is known of one job. `changed` is None if it was only refused."""

    changed: JobChanged | None = None
    progress: JobProgress | None = None
    refused: PromptRefused | None = None
    video: VideoFinished | None = None
    prompts: tuple[PromptSubmitted, ...] = ()
    """As submitted under this id, the newest last."""

    @property
    def prompt(self) -> PromptSubmitted | None:
        """The one that became the job, or the newest if none has."""
        accepted = self.changed.content_hash if self.changed else None
        fitting = [p for p in self.prompts if accepted in (None, content_hash(p))]
        return fitting[-1] if fitting else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """An event as subscribers get it. `number` counts what this process has read."""

    number: int
    job_id: str
    name: str
    json: str


class View:
    """Owns the thread that reads the topics, from their beginning. A context manager."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._jobs: dict[str, Job] = {}
        self._told: deque[Told] = deque(maxlen=_KEPT)
        self._number = 0
        self._wakers: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()
        self._stop = threading.Event()
        self._caught_up = threading.Event()
        self._thread = threading.Thread(target=self._run, name="view", daemon=True)
        self._problem = "the topics have not been read yet"

    @property
    def problem(self) -> str:
        """Why what it says may be old; empty: it is not."""
        dead = self._caught_up.is_set() and not self._thread.is_alive()
        return "an error has ended the reading of the topics: see the log" if dead else self._problem

    def job(self, job_id: str) -> Job | None:
        """What is known of a job."""
        with self._lock:
            return self._jobs.get(job_id)

    def jobs(self) -> list[JobChanged]:
        """The last state of every job, the newest job first."""
        with self._lock:
            found = [job.changed for job in self._jobs.values() if job.changed]
        return sorted(found, key=lambda job: (job.submitted_us, job.job_id), reverse=True)

    def caught_up(self, timeout_s: float) -> bool:
        """Wait until all that was there at the start is read."""
        return self._caught_up.wait(timeout_s)

    async def follow(self, job_id: str, after: int | None) -> AsyncGenerator[Told | None]:
        """Events of a job (empty: of all), for ever; those kept behind number `after`, None: only what comes. None: still here."""
        place = (asyncio.get_running_loop(), asyncio.Event())
        with self._lock:
            seen = self._number if after is None else min(after, self._number)
            self._wakers.add(place)
        try:
            while True:
                place[1].clear()
                with self._lock:
                    news = [told for told in self._told if told.number > seen]
                for told in news:
                    seen = told.number
                    if job_id in ("", told.job_id):
                        yield told
                try:
                    await asyncio.wait_for(place[1].wait(), _SILENCE_S)
                except TimeoutError:
                    yield None
        finally:
            with self._lock:
                self._wakers.discard(place)

    def take(self, event: Event) -> None:
        """Remember an event and tell who follows."""
        match event:
            case JobChanged():
                self._put(event, changed=event)
            case JobProgress():
                self._put(event, progress=event)
            case PromptRefused():
                self._put(event, refused=event)
            case VideoFinished():
                self._put(event, video=event)
            case PromptSubmitted():
                self._remember(event)
            case _:
                pass

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _put(self, event: JobChanged | JobProgress | PromptRefused | VideoFinished, **known: Event) -> None:
        with self._lock:
            self._number += 1
            self._jobs[event.job_id] = replace(self._jobs.get(event.job_id, Job()), **known)  # type: ignore[arg-type]
            name, text = type(event).__name__, to_json(event).decode()
            self._told.append(Told(number=self._number, job_id=event.job_id, name=name, json=text))
            wakers = list(self._wakers)
        for loop, waker in wakers:
            loop.call_soon_threadsafe(waker.set)

    def _remember(self, prompt: PromptSubmitted) -> None:
        try:
            content_hash(prompt)
        except (ValueError, TypeError, OverflowError):
            return  # it has numbers that no accepted prompt can have
        with self._lock:
            job = self._jobs.get(prompt.job_id, Job())
            others = [p for p in job.prompts if p != prompt]
            self._jobs[prompt.job_id] = replace(job, prompts=(*others, prompt)[-_PROMPTS:])

    def _run(self) -> None:
        pause_s = _TURN_S
        while not self._stop.is_set():
            try:
                self._follow_topics()
            except (BusError, KafkaException) as error:
                self._problem = f"Kafka is away: {error}"
                log.warning("the view reads again in %.1f s: %s", pause_s, error)
                self._stop.wait(pause_s)
                pause_s = min(2 * pause_s, _PAUSE_S)

    def _follow_topics(self) -> None:
        with Reader.from_beginning(self._settings, SOURCES) as reader:
            for message in reader.to_end():
                if self._stop.is_set():
                    return
                self._read(message)
            self._caught_up.set()
            self._problem = ""
            while not self._stop.is_set():
                message = reader.poll(_TURN_S)
                if message:
                    self._read(message)

    def _read(self, message: Message) -> None:
        if message.value is None:
            return
        try:
            self.take(event_of(message))
        except BadInputError as error:
            log.warning("%s cannot be read: %s", message.id, error)
