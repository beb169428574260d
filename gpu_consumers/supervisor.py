"""Keeps an engine process running and every request answered, whatever becomes of the process."""

import logging
import os
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from multiprocessing.connection import wait

from gpu_consumers.blame import Ending, Stall, blame
from gpu_consumers.diagnose import abort_line
from gpu_consumers.engines.engine import EngineError
from gpu_consumers.failed import failed
from gpu_consumers.gauges import GpuMeter, count_busy, count_segment, heard
from gpu_consumers.hands import Hand, Hands
from gpu_consumers.memory.topology import Device
from gpu_consumers.oom import oom_kills
from gpu_consumers.pipe import Done, EngineOpened, FromChild, Generate, LastWords, Open, Ready, Step, Stop, Stopped
from gpu_consumers.process import EngineProcess
from gpu_consumers.remedies import Remedies
from infra.bus.errors import LostWorkerError
from infra.bus.in_hand import in_hand
from infra.bus.work import Answer
from schemas.codec import decode, encode
from schemas.records import SegmentFailed, SegmentGenerated, SegmentRequested
from schemas.topics import Event

_FRUITLESS = 3
"""Processes that end in a row without an answer and without anyone to blame: then something else is broken."""
log = logging.getLogger(__name__)


class EngineProcessError(LostWorkerError):
    """The engine process cannot be kept running, or was given up: the request is not answered and comes again."""


class Supervisor:
    """Owns the engine process, in a thread of its own. What a dead process had in hand goes to the next, save what is to blame."""

    def __init__(
        self,
        config: Open,
        limit_s: float,
        slot: int = 0,
        start: Callable[[Open, Device | None], EngineProcess] = EngineProcess,
    ) -> None:
        """`slot`: the worker's number on this machine, which decides its device."""
        self._config = config
        self._start = start
        self._remedies = Remedies(slot)
        self._hands = Hands(limit_s)
        self._new: queue.SimpleQueue[Hand] = queue.SimpleQueue()
        self._ended: queue.SimpleQueue[tuple[str, int]] = queue.SimpleQueue()
        self._numbers = 0
        self._ready = False
        self._gpu = GpuMeter()
        self._versions: dict[str, str] = {}
        self._fruitless = 0
        self._busy_us = self._busy_before_us = (0, 0)
        self._last_words: LastWords | None = None
        self._lock = threading.Lock()
        """Of `_over`: after it nothing is put into `_new`."""
        self._over = False
        self._stop = threading.Event()
        self._woken, self._wake = os.pipe()
        self._thread = threading.Thread(target=self._run, name="supervisor", daemon=True)
        self._thread.start()

    def submit(self, request: SegmentRequested, trace_id: str = "") -> Answer:
        """Start the work. The future raises EngineProcessError if the process cannot be kept running."""
        answer: Answer = Future()
        answer.set_running_or_notify_cancel()
        with self._lock:
            self._numbers += 1
            if self._over:
                answer.set_exception(EngineProcessError("the engine process is not running"))
            else:
                self._new.put(Hand(number=self._numbers, request=request, answer=answer, trace_id=trace_id))
                os.write(self._wake, b"\0")
        return answer

    def stop(self, job_id: str, before_us: int) -> None:
        """Requests made before `before_us` for this job are of no use any more: their answers are empty within a second or so."""
        with self._lock:
            if not self._over:
                self._ended.put((job_id, before_us))
                os.write(self._wake, b"\0")

    def unready(self) -> str:
        """Why no new request should come now."""
        return "the engine process is starting" if not self._ready else self._gpu.full()

    def close(self) -> None:
        """Kill the process and give up what is in hand."""
        self._stop.set()
        with self._lock:
            if not self._over:
                os.write(self._wake, b"\0")
        self._thread.join()

    def busy_us(self) -> tuple[int, int]:
        """`(busy, waiting)` so far, as of the last answer: see `BusyMeter`."""
        return self._busy_us

    def _run(self) -> None:
        why = "given up"
        try:
            while not self._stop.is_set():
                self._live()
        except EngineProcessError as error:
            why = str(error)
            log.error("%s", why)
        finally:
            self._give_up(why)

    def _live(self) -> None:
        """One process from its start to its end, and what follows from it."""
        kills = oom_kills()
        self._busy_before_us, self._last_words = self._busy_us, None
        self._hands.restart(time.monotonic())
        device = self._remedies.begin()
        self._ready = False
        self._gpu.watch(device.uuid if device else "")
        process = self._start(self._config, device)
        for hand in self._hands:
            process.send(_generate(hand))
        self._pass_on(process)
        try:
            stall = self._serve(process)
        finally:
            exit_code = process.end()
        if not (self._stop.is_set() or self._replaceable()):
            oom_killed = oom_kills() > kills
            self._after(Ending(exit_code=exit_code, oom_killed=oom_killed, last_words=self._last_words, stall=stall))

    def _serve(self, process: EngineProcess) -> Stall | None:
        """Pass requests and answers on until the process is gone, has to go, or stalls."""
        while True:
            ready = wait([process.connection, self._woken], self._hands.left_s(time.monotonic()))
            if self._woken in ready:
                os.read(self._woken, 4096)
                self._pass_on(process)
                self._drop_ended(process)
            if process.connection in ready and not self._hear(process.receive()):
                return None
            if self._stop.is_set() or self._replaceable():
                process.kill()
                return None
            if any(hand.stop_by_s <= time.monotonic() for hand in self._hands):
                process.kill()
                return None
            stall = None if ready else self._hands.overdue(time.monotonic())
            if stall:
                process.kill()
                return stall

    def _replaceable(self) -> bool:
        return self._remedies.due and not self._hands

    def _pass_on(self, process: EngineProcess) -> None:
        while not (self._new.empty() or self._remedies.due):
            hand = self._new.get()
            self._hands.add(hand, time.monotonic())
            process.send(_generate(hand))

    def _drop_ended(self, process: EngineProcess) -> None:
        while not self._ended.empty():
            for hand in self._hands.stop(*self._ended.get(), time.monotonic()):
                process.send(Stop(number=hand.number))

    def _dropped(self, number: int) -> None:
        hand = self._hands.pop(number)
        with in_hand(hand.ids):
            log.info("%s segment %d is dropped: its job has ended", hand.request.job_id, hand.request.segment)
        hand.answer.set_result(())

    def _hear(self, message: FromChild | None) -> bool:
        """Take in what the process says. False: it says no more."""
        now_s = time.monotonic()
        heard()
        self._hands.heard(now_s)
        match message:
            case Step():
                hand = self._hands.step(message.number, message.stage, now_s)
                log.debug("%s segment %d: %s", hand.request.job_id, hand.request.segment, hand.stage)
            case Done():
                self._done(message)
            case Stopped():
                self._dropped(message.number)
            case EngineOpened():
                self._versions[message.name] = message.version
            case LastWords():
                self._last_words = message
            case Ready():
                self._ready = True
                log.info("%s: the engine process is ready after %.1f s: %s", *self._said(message))
            case None:
                return False
        return True

    def _said(self, ready: Ready) -> tuple[str, float, str]:
        return self._config.worker, ready.seconds, ready.warmed or "nothing warmed"

    def _done(self, message: Done) -> None:
        self._fruitless = 0
        self._busy_us = (self._busy_before_us[0] + message.busy_us, self._busy_before_us[1] + message.waiting_us)
        count_busy(self._busy_us)
        self._gpu.pool(message.fragmentation)
        hand = self._hands.pop(message.number)
        event = decode(message.event)
        with in_hand(hand.ids):
            self._log_answer(hand.request, event)
        if isinstance(event, SegmentFailed):
            self._remedies.failed(hand.request, event.kind)
        count_segment(event)
        hand.answer.set_result((event,))

    def _after(self, ending: Ending) -> None:
        """Fail the request to blame; the others go to the next process. A process that had one to drop has ended because of that."""
        if stopping := self._hands.stopping():
            for hand in stopping:
                self._dropped(hand.number)
            return
        blamed = blame(self._hands.suspects(), ending)
        log.warning("%s: the engine process ended: %s; %d in hand", self._config.worker, ending, len(self._hands))
        if not ending.last_words and not ending.stall:
            self._hands.crashed()
        if blamed:
            self._fruitless = 0
            hand = self._hands.pop(blamed.number)
            self._remedies.failed(hand.request, blamed.kind)
            version = self._versions.get(hand.request.engine, "")
            error = EngineError(blamed.kind, blamed.reason)
            event = failed(hand.request, error, engine_version=version, worker=self._config.worker)
            with in_hand(hand.ids):
                self._log_answer(hand.request, event)
            count_segment(event)
            hand.answer.set_result((event,))
            return
        self._fruitless += 1
        if self._fruitless >= _FRUITLESS:
            raise EngineProcessError(
                f"{_FRUITLESS} engine processes ended in a row and no request is to blame: {ending}"
            )

    def _log_answer(self, request: SegmentRequested, event: Event) -> None:
        match event:
            case SegmentGenerated():
                log.info(
                    "%s segment %d attempt %d generated: denoised in %.2f s, decoded in %.2f s, stored in %.2f s; "
                    "the engine was busy for %.1f of the %.1f s in which requests waited",
                    *(event.job_id, event.segment, event.attempt),
                    *(event.denoise_us / 1e6, event.decode_us / 1e6, event.store_us / 1e6),
                    *(self._busy_us[0] / 1e6, self._busy_us[1] / 1e6),
                )
            case SegmentFailed():
                device = self._remedies.device
                log.warning("%s", abort_line(request, event, device.uuid if device else ""))
            case _:
                raise EngineProcessError(f"the engine process answered with a {type(event).__name__}")

    def _give_up(self, why: str) -> None:
        with self._lock:
            self._over = True
            os.close(self._wake)
        os.close(self._woken)
        waiting = [self._new.get() for _ in range(self._new.qsize())]
        for hand in (*self._hands, *waiting):
            hand.answer.set_exception(EngineProcessError(why))


def _generate(hand: Hand) -> Generate:
    return Generate(number=hand.number, request=encode(hand.request), trace_id=hand.trace_id)
