"""The engine process: five stages, a thread each, so that the next segment is denoised while this one is decoded and stored.

Started by `process.py` as `python -m gpu_consumers.child FD`. It can be killed at any time: what it has stored is under keys of
its own, and what it holds in memory can be restored.
"""

import logging
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

from gpu_consumers.busy import BusyMeter
from gpu_consumers.engines.engine import Engine, EngineError, NoRoomError
from gpu_consumers.faults import classify
from gpu_consumers.held import HeldStates
from gpu_consumers.inject import Faults, FaultyStages
from gpu_consumers.memory.pool import Pool, cuda_stats, empty_cuda_cache
from gpu_consumers.pipe import (
    ENGINE_STAGES,
    ChildEnd,
    Done,
    EngineOpened,
    Generate,
    LastWords,
    Open,
    Ready,
    Stage,
    Step,
    Stop,
    Stopped,
)
from gpu_consumers.stages import Beat, Decoded, Denoised, Fetched, Saved, Stages
from gpu_consumers.warm import begin, warm_request
from infra import logs
from infra.bus.in_hand import Ids, in_hand
from infra.bus.process import run_process
from infra.objects import Objects
from schemas.codec import decode, encode
from schemas.engines import add_installed
from schemas.records import FailureKind, SegmentFailed, SegmentGenerated, SegmentRequested

In = TypeVar("In")
Out = TypeVar("Out")
_DISCARD = frozenset({FailureKind.OUT_OF_MEMORY, FailureKind.DEVICE_LOST, FailureKind.KERNEL, FailureKind.SYNC})
"""After these the process is not used again: allocators and drivers do not come back whole."""
_BROKEN = frozenset({*_DISCARD, FailureKind.IO})
"""What an error that is not an EngineError may say of the machine; of the picture only the engine can speak."""
_AHEAD = 1
"""Segments that wait between two stages: more would only hold memory."""
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task(Generic[In]):
    """A request on its way, with what the stage before made of it."""

    number: int
    request: SegmentRequested
    made: In
    trace_id: str = ""


class StoppedError(Exception):
    """The request in hand is of no use any more."""


class Pipeline:
    """The threads and the queues between them. Heartbeats and answers go to the worker as they come."""

    def __init__(self, pipe: ChildEnd, config: Open) -> None:
        self._pipe = pipe
        self._meter = BusyMeter()
        self._stages = self._made(config)
        self._pool = Pool(cuda_stats, self._rebuild_pool)
        self._in_hand: dict[int, tuple[int, Stage]] = {}
        """Of each thread: number and stage."""
        self._unwanted: set[int] = set()
        """Requests to be dropped at their next step."""
        self._to_warm: queue.Queue[SegmentRequested | None] = queue.Queue()
        """None: begin to denoise."""
        self._warmed: queue.Queue[str] = queue.Queue()
        self._asked: queue.Queue[Task[None]] = queue.Queue()
        self._fetched: queue.Queue[Task[Fetched]] = queue.Queue()
        self._denoised: queue.Queue[Task[Denoised]] = queue.Queue(_AHEAD)
        self._saved: queue.Queue[Task[Saved]] = queue.Queue(_AHEAD)
        self._decoded: queue.Queue[Task[Decoded]] = queue.Queue(_AHEAD)

    def start(self) -> None:
        """Start the threads. What one of them raises, other than a segment's failure, ends the process."""
        threading.excepthook = self._die
        stages = self._stages
        for loop in (
            partial(self._loop, Stage.FETCH, stages.fetch, self._asked, self._after_fetch),
            self._denoise,
            partial(self._loop, Stage.SAVE, stages.save, self._denoised, self._saved.put),
            partial(self._loop, Stage.DECODE, stages.decode, self._saved, self._after_decode),
            partial(self._loop, Stage.STORE, stages.store, self._decoded, self._after_store),
        ):
            threading.Thread(target=loop, daemon=True).start()

    def warm(self, request: SegmentRequested) -> str:
        """Make an engine ready, before anything is submitted; what that took, in words."""
        begin(request)
        self._to_warm.put(request)
        return self._warmed.get()

    def work(self) -> None:
        """Begin to denoise."""
        self._to_warm.put(None)

    def _denoise(self) -> None:
        """The thread that the engine belongs to."""
        while (request := self._to_warm.get()) is not None:
            self._warmed.put(self._stages.warm(request))
        self._loop(Stage.RESTORE, self._stages.denoise, self._fetched, self._denoised.put)

    def _made(self, config: Open) -> Stages:
        made = partial(FaultyStages, faults=Faults(folder=Path(config.faults))) if config.faults else Stages
        return made(
            objects=Objects(config.objects),
            worker=config.worker,
            held=HeldStates(config.held_states),
            meter=self._meter,
            on_engine=self._engine_opened,
        )

    def _rebuild_pool(self) -> None:
        """States in memory go too: they lie all over it, and come again from their latents, bit by bit the same."""
        log.warning("the memory pool is rebuilt")
        while self._stages.held.drop_idlest():
            pass
        empty_cuda_cache()

    def submit(self, number: int, request: SegmentRequested, trace_id: str) -> None:
        """Take a request in."""
        self._meter.arrived(number)
        self._asked.put(Task(number=number, request=request, made=None, trace_id=trace_id))

    def stop(self, number: int) -> None:
        """Drop a request at its next step. One that is answered already stays so."""
        self._unwanted.add(number)

    def _loop(
        self,
        first: Stage,
        work: Callable[[SegmentRequested, In, Beat], Out],
        source: "queue.Queue[Task[In]]",
        sink: Callable[[Task[Out]], None],
    ) -> None:
        while True:
            task = source.get()
            about = in_hand(Ids(job_id=task.request.job_id, trace_id=task.trace_id))
            try:
                with about, self._pool.segment() if first in ENGINE_STAGES else nullcontext():
                    self._beat(task.number, first)
                    made = work(task.request, task.made, partial(self._beat, task.number))
            except StoppedError:
                self._dropped(task.number)
            except EngineError as error:
                if error.kind in _DISCARD and not isinstance(error, NoRoomError):
                    raise
                self._answer(task.number, self._stages.failed(task.request, error))
            else:
                self._beat(task.number, Stage.QUEUED)
                sink(Task(number=task.number, request=task.request, made=made, trace_id=task.trace_id))
                del made
            del task  # a state that is given up is gone only when nothing refers to it

    def _after_fetch(self, task: Task[Fetched | SegmentGenerated]) -> None:
        if isinstance(task.made, SegmentGenerated):
            self._answer(task.number, task.made)
        else:
            self._fetched.put(Task(number=task.number, request=task.request, made=task.made, trace_id=task.trace_id))

    def _after_decode(self, task: Task[Decoded]) -> None:
        self._meter.served(task.number)
        self._decoded.put(task)

    def _after_store(self, task: Task[SegmentGenerated]) -> None:
        self._answer(task.number, task.made)

    def _answer(self, number: int, event: SegmentGenerated | SegmentFailed) -> None:
        self._meter.served(number)
        busy_us, waiting_us = self._meter.totals_us()
        self._pipe.send(
            Done(
                number=number,
                event=encode(event),
                busy_us=busy_us,
                waiting_us=waiting_us,
                fragmentation=self._pool.fragmentation,
            )
        )

    def _dropped(self, number: int) -> None:
        self._unwanted.discard(number)
        self._meter.served(number)
        self._pipe.send(Stopped(number=number))

    def _beat(self, number: int, stage: Stage) -> None:
        if number in self._unwanted and stage is not Stage.QUEUED:
            raise StoppedError
        self._in_hand[threading.get_ident()] = (number, stage)
        self._pipe.send(Step(number=number, stage=stage))

    def _engine_opened(self, engine: Engine) -> None:
        self._pipe.send(EngineOpened(name=engine.name, version=engine.version))

    def _die(self, error: threading.ExceptHookArgs) -> None:
        """Say whose fault it is, and end. While an engine is made ready it is nobody's."""
        ident = (error.thread and error.thread.ident) or 0
        if ident in self._in_hand:
            number, stage = self._in_hand[ident]
            reason = f"{error.exc_type.__name__}: {error.exc_value}"
            self._pipe.send(LastWords(number=number, stage=stage, kind=_kind(error.exc_value), reason=reason))
            log.critical("ended by request %d in %s", number, stage, exc_info=error.exc_value)
        else:
            log.critical("ended while an engine was made ready", exc_info=error.exc_value)
        sys.stderr.flush()
        os._exit(1)


def _kind(error: BaseException | None) -> FailureKind:
    if isinstance(error, EngineError):
        return error.kind
    kind = classify(f"{type(error).__name__}: {error}")  # torch is not imported to ask
    return kind if kind and kind in _BROKEN else FailureKind.CRASHED


def serve(fd: int) -> None:
    """Serve the worker at the other end of this socket. Never returns."""
    begun_s = time.monotonic()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C: the worker decides
    pipe = ChildEnd(fd)
    config = pipe.receive()
    assert isinstance(config, Open)  # noqa: S101
    logs.set_up(config.logs, "engine")
    add_installed()
    pipeline = Pipeline(pipe, config)
    pipeline.start()
    warmed = pipeline.warm(warm_request(config.warm)) if config.warm else ""
    pipeline.work()
    pipe.send(Ready(seconds=time.monotonic() - begun_s, warmed=warmed))
    while True:
        message = pipe.receive()
        if isinstance(message, Stop):
            pipeline.stop(message.number)
            continue
        assert isinstance(message, Generate)  # noqa: S101
        request = decode(message.request)
        assert isinstance(request, SegmentRequested)  # noqa: S101
        pipeline.submit(message.number, request, message.trace_id)


if __name__ == "__main__":
    run_process(partial(serve, int(sys.argv[1])))
