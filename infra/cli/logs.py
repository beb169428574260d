"""Logging of every process: to stderr, UTC, one event a line, also with a traceback."""

import logging
import time

from infra.redact import redacted


class OneLine(logging.Formatter):
    """`2026-11-30T19:06:08.123456Z INFO streams.director message`; line ends inside an event become ` | `.

    Secrets in it are hidden.
    """

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802, ARG002 (logging's name)
        second = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        return f"{second}.{int(record.created % 1 * 1e6):06d}Z"

    def format(self, record: logging.LogRecord) -> str:
        return redacted(" | ".join(super().format(record).splitlines()))


def set_up(level: int = logging.INFO) -> None:
    """Send every logger of the process to stderr. Called by `main()` only."""
    handler = logging.StreamHandler()
    handler.setFormatter(OneLine("%(asctime)s %(levelname)s %(name)s %(message)s"))
    logging.basicConfig(level=level, handlers=[handler], force=True)
