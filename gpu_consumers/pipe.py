"""What the generate worker and its engine process say to each other: small messages over a socket pair, nothing pickled.

Records travel as their Avro bytes; tensors never do. `number` names a request within one worker process.
"""

import os
import threading
from enum import StrEnum
from multiprocessing.connection import Connection
from typing import Literal, TypeAlias

import msgspec

from schemas.records import FailureKind

_MAX_BYTES = 16 << 20


class Stage(StrEnum):
    """Where a request is. All but QUEUED have a thread of their own in the engine process."""

    QUEUED = "queued"
    FETCH = "fetch"
    """Looking for the manifest, reading the latents of the segments before."""
    RESTORE = "restore"
    """Making the engine and the job's state."""
    DENOISE = "denoise"
    SAVE = "save"
    """Storing the latents: before anything is decoded."""
    DECODE = "decode"
    STORE = "store"


ENGINE_STAGES = frozenset({Stage.RESTORE, Stage.DENOISE, Stage.DECODE})
"""Those that run the engine's code."""


class Open(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """The first message to the engine process."""

    objects: str
    worker: str
    held_states: int
    warm: str = ""
    """What to make ready before it says so (`warm.py`); empty: nothing."""
    logs: Literal["text", "json"] = "text"
    faults: str = ""
    """A folder of faults on purpose (`inject.py`); empty: none."""


class Generate(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """Work for the engine process: a SegmentRequested in Avro."""

    number: int
    request: bytes
    trace_id: str = ""
    """For the lines that are logged meanwhile."""


class Stop(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """The request is of no use any more: drop it at its next step."""

    number: int


class Ready(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """The engine process is up, `seconds` after its start; `warmed`: what was made ready, in words."""

    seconds: float = 0.0
    warmed: str = ""


class EngineOpened(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """An engine was made."""

    name: str
    version: str


class Step(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """The heartbeat: a request has entered a stage or made a step in it."""

    number: int
    stage: Stage


class Done(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """A request is answered by a SegmentGenerated or SegmentFailed in Avro; how busy the engine was until now.

    `fragmentation` is the share of the allocator's pool that lies idle between blocks in use (`memory/fragmentation.py`).
    """

    number: int
    event: bytes
    busy_us: int
    waiting_us: int
    fragmentation: float = 0.0


class Stopped(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """A request was dropped."""

    number: int


class LastWords(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """The engine process ends itself because of this request: an error that it cannot go on after."""

    number: int
    stage: Stage
    kind: FailureKind
    reason: str


ToChild: TypeAlias = Open | Generate | Stop
FromChild: TypeAlias = Ready | EngineOpened | Step | Done | Stopped | LastWords

_to_child = msgspec.msgpack.Decoder(ToChild)
_from_child = msgspec.msgpack.Decoder(FromChild)


class ParentEnd:
    """The worker's end. Used by one thread."""

    def __init__(self, fd: int) -> None:
        self.connection = Connection(fd)

    def send(self, message: ToChild) -> None:
        """Raises: OSError if the process is gone."""
        self.connection.send_bytes(msgspec.msgpack.encode(message))

    def receive(self) -> FromChild | None:
        """The next message; None: the process is gone."""
        try:
            return _from_child.decode(self.connection.recv_bytes(_MAX_BYTES))
        except (EOFError, OSError):
            return None

    def close(self) -> None:
        self.connection.close()


class ChildEnd:
    """The engine process's end. Any thread may send; if the worker is gone, the process ends."""

    def __init__(self, fd: int) -> None:
        self._connection = Connection(fd)
        self._lock = threading.Lock()

    def send(self, message: FromChild) -> None:
        try:
            with self._lock:
                self._connection.send_bytes(msgspec.msgpack.encode(message))
        except OSError:
            os._exit(0)

    def receive(self) -> ToChild:
        try:
            return _to_child.decode(self._connection.recv_bytes(_MAX_BYTES))
        except (EOFError, OSError):
            os._exit(0)
