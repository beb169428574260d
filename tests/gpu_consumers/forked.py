"""Engine processes that are forked from one in which everything is imported: they start in milliseconds, and end as others do."""

import contextlib
import multiprocessing
import socket
from multiprocessing.connection import Connection

import torch

from gpu_consumers.child import serve
from gpu_consumers.memory.topology import Device
from gpu_consumers.pipe import Open, ParentEnd
from gpu_consumers.process import EngineProcess

_GRACE_S = 5.0
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(
    [f"gpu_consumers.engines.{engine}.engine" for engine in ("animatic", "causal_dit")] + ["gpu_consumers.child"]
)


class ForkedProcess(EngineProcess):
    """Its environment is the test's: no device is pinned."""

    def __init__(self, config: Open, device: Device | None) -> None:
        ours, theirs = socket.socketpair()
        self._process = _context.Process(target=_child, args=(Connection(theirs.detach()),), daemon=True)
        self._process.start()
        assert self._process.pid
        self.pid = self._process.pid
        self._pipe = ParentEnd(ours.detach())
        self.send(config)

    def kill(self) -> None:
        with contextlib.suppress(ValueError):
            self._process.kill()

    def end(self) -> int:
        self._process.join(_GRACE_S)
        self._process.kill()
        self._process.join()
        code = self._process.exitcode
        self._pipe.close()
        self._process.close()
        return code or 0


def _child(connection: Connection) -> None:
    torch.set_num_threads(1)  # tiny models: threads cost more than the work
    serve(connection.fileno())
