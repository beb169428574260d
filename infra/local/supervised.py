"""One process of the stack that is started again whenever it ends, unless it says that this is of no use; its bounded log."""

import logging
import math
import shutil
from collections.abc import Callable
from pathlib import Path

from infra.bus.process import SUSPECT
from infra.local.guardian import Guardian
from infra.local.process import Process
from infra.local.services import ProcessStatus

LOG_BYTES = 10 << 20
_QUICK_S = 10.0
_FIRST_S, _LONGEST_S = 0.5, 10.0

log = logging.getLogger(__name__)


def restart_delay_s(quick_deaths: int) -> float:
    """How long to wait before the next start, after so many lives in a row that ended within seconds: 0, 0.5, 1, 2 ... 10."""
    return min(_LONGEST_S, _FIRST_S * 2 ** (quick_deaths - 2)) if quick_deaths > 1 else 0.0


class Supervised:
    """Owns the lives of one process. `start` starts one."""

    def __init__(self, name: str, start: Callable[[], Process], guardian: Guardian) -> None:
        self.name = name
        self._start = start
        self._guardian = guardian
        self._process: Process | None = None
        self._restarts = 0
        self._quick_deaths = 0
        self._since_s = 0.0
        self._due_s = 0.0
        self._exit_code: int | None = None

    def status(self) -> ProcessStatus:
        """What to tell a person."""
        pid = self._process.pid if self._process else 0
        port = self._process.metrics_port if self._process else 0
        return ProcessStatus(
            name=self.name, pid=pid, restarts=self._restarts, exit_code=self._exit_code, metrics_port=port
        )

    def start(self, now_s: float) -> None:
        """Begin its first life."""
        self._process = self._start()
        self._guardian.watch(self._process.pid)
        self._since_s = now_s

    def turn(self, now_s: float) -> bool:
        """See whether it has ended, and start it again when that is due. True if its status has changed."""
        if self._process and not self._process.running():
            self._bury(self._process, now_s)
            if self._due_s > now_s:
                return True
        if self._process or self._due_s > now_s:
            return False
        self._restarts += 1
        self.start(now_s)
        return True

    def terminate(self) -> None:
        """Ask it to end; it is not started again as long as `turn` is not called."""
        if self._process:
            self._process.terminate()

    def stop(self, grace_s: float) -> None:
        """End it, by force after `grace_s`."""
        if self._process:
            self._process.stop(grace_s)
            self._guardian.forget(self._process.pid)

    def _bury(self, process: Process, now_s: float) -> None:
        process.kill()
        self._guardian.forget(process.pid)
        self._process = None
        self._exit_code = process.exit_code()
        if self._exit_code == SUSPECT:
            self._due_s = math.inf
            log.critical(
                "%s has stopped itself and is not started again: see its log, then 'longtake up' anew", self.name
            )
            return
        self._quick_deaths = self._quick_deaths + 1 if now_s - self._since_s < _QUICK_S else 1
        delay_s = restart_delay_s(self._quick_deaths)
        self._due_s = now_s + delay_s
        log.warning("%s ended with %s, starts again in %.1f s", self.name, self._exit_code, delay_s)


def bound_logs(folder: Path) -> None:
    """Move what is in each log of more than `LOG_BYTES` to `NAME.log.1`. Lines written in that instant are lost.

    The processes go on writing to the same open file, in append mode.
    """
    for file in folder.glob("*.log"):
        if file.stat().st_size > LOG_BYTES:
            shutil.copyfile(file, file.with_suffix(".log.1"))
            with file.open("r+b") as emptied:
                emptied.truncate(0)
