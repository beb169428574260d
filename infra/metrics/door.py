"""`/metrics`, `/healthz` and `/readyz` of one process, for Prometheus and for probes. On loopback unless told otherwise."""

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

from prometheus_client import REGISTRY
from prometheus_client.exposition import choose_encoder

from infra.metrics.meters import LOOP_AGE, READY
from infra.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What a process says of itself. Each answers with what is wrong, or with nothing; both may be asked by any thread."""

    age_s: Callable[[], float]
    """Since the loop turned last."""
    unhealthy: Callable[[], str]
    """Start it again."""
    unready: Callable[[], str]
    """It takes no new work now; what it has it goes on with."""


class Door:
    """Owns the listening socket and its threads. A context manager. Without a `settings.metrics_port` it stays shut."""

    def __init__(self, settings: Settings, health: Health) -> None:
        """Raises: OSError if the port is taken."""
        LOOP_AGE.set_function(health.age_s)
        READY.set_function(lambda: float(not health.unready()))
        self._server: _Server | None = None
        if settings.metrics_port:
            self._server = _Server((settings.metrics_host, settings.metrics_port), health)

    def __enter__(self) -> Self:
        if self._server:
            threading.Thread(target=self._server.serve_forever, name="door", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server:
            self._server.shutdown()
            self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], health: Health) -> None:
        self.health = health
        super().__init__(address, _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: _Server  # pyright: ignore[reportIncompatibleVariableOverride] (it is made with no other)
    timeout = 5

    def do_GET(self) -> None:
        match self.path.partition("?")[0]:
            case "/metrics":
                encode, content_type = choose_encoder(self.headers.get("Accept", ""))
                self._answer(HTTPStatus.OK, encode(REGISTRY), content_type)
            case "/healthz":
                self._say(self.server.health.unhealthy())
            case "/readyz":
                self._say(self.server.health.unready())
            case _:
                self._answer(HTTPStatus.NOT_FOUND, b"/metrics, /healthz or /readyz\n")

    def _say(self, problem: str) -> None:
        self._answer(HTTPStatus.SERVICE_UNAVAILABLE if problem else HTTPStatus.OK, (problem or "ok").encode() + b"\n")

    def _answer(self, status: HTTPStatus, body: bytes, content_type: str = "text/plain; charset=utf-8") -> None:
        with contextlib.suppress(ConnectionError):
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (its name in the library)
        """Probes come every few seconds: no line for each."""
