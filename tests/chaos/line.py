"""The whole line under attack: short jobs through every worker, while a schedule of faults comes true."""

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import av
import xxhash

from infra.bus import clients
from infra.bus.outputs import Cause, outputs_of
from infra.bus.reader import event_of
from infra.local.supervisor import worker_commands
from infra.objects import Objects
from infra.settings import Settings
from schemas import records as r
from schemas.headers import trace_root
from schemas.topics import TOPICS
from tests.chaos import verify
from tests.chaos.inject import Injector
from tests.chaos.outcome import Outcome
from tests.chaos.schedule import Fault, Line, end_s
from tests.chaos.stack import Stack, running_stack, with_wrong_clocks
from tests.chaos.store import Store, chaotic_store
from tests.chaos.watch import Tail

WORKERS: Mapping[str, int] = {
    "director": 2,
    "generate": 4,
    "stitch": 2,
    "assemble": 1,
    "check-pieces": 2,
    "check-videos": 1,
    "publish": 1,
    "insights": 1,
}
FRAMES = 48
_TEXTS = (
    "A fox runs over a snowy field at dawn, tracking shot",
    "A whale swims underwater, slow pan left",
    "A train crosses a bridge in the rain, static shot",
    "A kite flies above a beach at noon, tilt up",
)
ScheduleOf = Callable[[int, Line], tuple[Fault, ...]]
_TURN_S = 0.05
_PATIENCE_S = 600.0
"""For what is left to do after the last fault."""
_KEPT = [topic.name for topic in TOPICS if topic.name not in {r.JobState.topic, r.JobProgress.topic}]


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How large a run is."""

    jobs: int
    session_s: float = 20.0
    workers: Mapping[str, int] = field(default_factory=lambda: WORKERS)


def line_of(form: Form, store: Store) -> Line:
    """What there is to break."""
    return Line(
        workers=form.workers, session_s=form.session_s, clickhouse=True, store=frozenset(store.faults), clock=True
    )


def prompt(number: int) -> r.PromptSubmitted:
    """The prompt of a job. Jobs of one text are the same film."""
    return r.PromptSubmitted(
        job_id=f"job-{number}", text=_TEXTS[number % len(_TEXTS)], width=128, height=72, duration_s=FRAMES / 24, seed=7
    )


def run_line(seed: int, form: Form, schedule_of: ScheduleOf, folder: Path) -> Outcome:
    """A stack in `folder`; a few undisturbed jobs, then the attacked ones; then everything is looked at."""
    with chaotic_store(folder / "objects", seed) as store:
        settings = Settings(
            state=folder / "state",
            objects=store.url,
            session_timeout_ms=round(form.session_s * 1000),
            scan_s=5.0,
            min_free_bytes=64 << 20,
            sweep_s=10.0,
            sweep_grace_s=120.0,
        )
        commands = with_wrong_clocks(worker_commands({**form.workers, "sweep": 1}), settings)
        line = line_of(form, store)
        schedule = schedule_of(seed, line)
        with running_stack(settings, commands, store.environment) as stack:
            return _attacked(seed, form, stack, store, line, schedule)


def _attacked(seed: int, form: Form, stack: Stack, store: Store, line: Line, schedule: tuple[Fault, ...]) -> Outcome:
    run = Run(stack, seed)
    models = len(_TEXTS)
    run.submit(range(models))
    run.until_finished(models)
    films = [run.film(f"job-{number}") for number in range(models)]
    injector = Injector(stack, line, store, run.tail, seed)
    left, to_come = list(schedule), list(range(models, form.jobs + models))
    started_s, every_s = time.monotonic(), end_s(schedule) / form.jobs
    try:
        while left or to_come or not injector.quiet() or run.finished < form.jobs + models:
            now_s = time.monotonic() - started_s
            if now_s > end_s(schedule) + _PATIENCE_S:
                break
            due = min(len(to_come), 1 + int(now_s / every_s) - (form.jobs - len(to_come)))
            run.submit([to_come.pop(0) for _ in range(max(0, due))])
            injector.turn(left, now_s)
            run.look()
            time.sleep(_TURN_S)
    finally:
        injector.end()
    until_s = time.monotonic() + _PATIENCE_S
    while not injector.drained() and time.monotonic() < until_s:
        run.look()
        time.sleep(_TURN_S)
    run.look()
    jobs = {f"job-{number}": films[number % models] for number in range(form.jobs + models)}
    return Outcome(
        seed=seed,
        schedule=schedule,
        recoveries=tuple(injector.watch.done),
        unrecovered=tuple(injector.watch.unrecovered()),
        injected=len(injector.injected),
        wall_s=time.monotonic() - started_s,
        **verify.line(stack.settings, run.tail.kept, jobs, run.film),
    )


class Run:
    """Producer and subscriber of a run."""

    def __init__(self, stack: Stack, seed: int) -> None:
        self.tail = Tail(stack.settings, _KEPT)
        self._objects = Objects(stack.settings.objects)
        self._producer = clients.plain_producer(stack.settings, "longtake.chaos.producer")
        self._chance = random.Random(f"{seed}/prompts")
        self._scratch = stack.settings.state / "films"
        self._scratch.mkdir()
        self._seen = 0
        self._videos: dict[str, r.VideoFinished] = {}

    @property
    def finished(self) -> int:
        """Jobs whose video was announced."""
        return len(self._videos)

    def videos(self) -> list[r.VideoFinished]:
        """Every announcement of a video, each as often as it was made."""
        events = [event_of(message) for message in self.tail.kept if message.topic == r.VideoFinished.topic]
        return [event for event in events if isinstance(event, r.VideoFinished)]

    def submit(self, numbers: Sequence[int]) -> None:
        """Send prompts, each once or twice, without waiting for the broker, which may be away."""
        now_us = time.time_ns() // 1000
        for number in numbers:
            wish = prompt(number)
            cause = Cause(id=wish.job_id, traceparent=trace_root(wish.job_id), source="chaos", time_us=now_us)
            for output in outputs_of([wish] * self._chance.choice([1, 1, 2]), cause):
                self._producer.produce(output.topic, output.value, output.key, headers=list(output.headers))
        self._producer.poll(0)

    def look(self) -> None:
        """Read what the line has said."""
        self._producer.poll(0)
        self.tail.drain()
        for message in self.tail.kept[self._seen :]:
            if message.topic == r.VideoFinished.topic:
                event = event_of(message)
                assert isinstance(event, r.VideoFinished)
                self._videos[event.job_id] = event
        self._seen = len(self.tail.kept)

    def until_finished(self, count: int) -> None:
        """Wait for the undisturbed jobs."""
        until_s = time.monotonic() + _PATIENCE_S
        while self.finished < count:
            assert time.monotonic() < until_s, f"{self.finished} of {count} undisturbed jobs were finished"
            self.look()
            time.sleep(_TURN_S)

    def film(self, job_id: str) -> tuple[str, ...]:
        """A digest of every frame of the job's video. Raises: KeyError if there is none; BlobError."""
        path = self._objects.get_file(self._videos[job_id].video, self._scratch)
        with av.open(str(path)) as container:
            return tuple(_digests(container))


def _digests(container: "av.container.InputContainer") -> Iterator[str]:
    for frame in container.decode(video=0):
        yield xxhash.xxh3_64_hexdigest(frame.to_ndarray().tobytes())
