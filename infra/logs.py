"""Logging of every process: to stderr, UTC, one event a line, also with a traceback. As text or, for programs, as JSON."""

import json
import logging
import threading
import time
from typing import Literal

from infra.bus.in_hand import ids_in_hand
from infra.redact import redacted, visible

log = logging.getLogger(__name__)


class OneLine(logging.Formatter):
    """`2026-11-30T19:06:08.123456Z INFO streams.director message`; line ends inside an event become ` | `.

    Secrets in it are hidden, and control characters written out.
    """

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802, ARG002 (logging's name)
        second = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        return f"{second}.{int(record.created % 1 * 1e6):06d}Z"

    def format(self, record: logging.LogRecord) -> str:
        return visible(redacted(" | ".join(super().format(record).splitlines())))


class JsonLine(OneLine):
    """`{"time": ..., "level": ..., "logger": ..., "message": ..., "role": ...}`, and `job_id` and `trace_id` where a record is in hand.

    `error` is the traceback, if there is one. Secrets in it are hidden.
    """

    def __init__(self, role: str) -> None:
        super().__init__()
        self._role = role

    def format(self, record: logging.LogRecord) -> str:
        said = {
            "time": self.formatTime(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "role": self._role,
            **ids_in_hand(),
        }
        if record.exc_info:
            said["error"] = self.formatException(record.exc_info)
        # Before JSON escapes them, or a secret with a quotation mark in it would be missed.
        return json.dumps({name: redacted(value) for name, value in said.items()}, ensure_ascii=False)


def set_up(form: Literal["text", "json"] = "text", role: str = "") -> None:
    """Send every logger of the process to stderr. Called by `main()` only."""
    handler = logging.StreamHandler()
    text = OneLine("%(asctime)s %(levelname)s %(name)s %(message)s")
    handler.setFormatter(JsonLine(role) if form == "json" else text)
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    threading.excepthook = _log_thread


def _log_thread(ended: threading.ExceptHookArgs) -> None:
    """What Python would write to stderr as it is, secrets included."""
    name = ended.thread.name if ended.thread else "?"
    error = ended.exc_value or ended.exc_type()
    log.critical("thread %s was ended by an error", name, exc_info=error)
