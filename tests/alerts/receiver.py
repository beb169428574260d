"""The other side of a webhook, on this machine: it remembers what came and answers as it is told."""

import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A status, the body, a header. Status 0: the connection is closed without a word."""

    status: int = 200
    body: bytes = b"ok"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One request."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)


@dataclass(slots=True)
class Receiver:
    """`answers` are given in turn, then always 200."""

    url: str
    answers: list[Answer] = field(default_factory=list[Answer])
    received: list[Received] = field(default_factory=list[Received])


@contextmanager
def receiver() -> Generator[Receiver]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    found = Receiver(url=f"http://127.0.0.1:{server.server_port}/hook/canary-path-7f3a91")
    server.receiver = found  # pyright: ignore[reportAttributeAccessIssue]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        found: Receiver = self.server.receiver  # pyright: ignore[reportAttributeAccessIssue]
        body = self.rfile.read(int(self.headers["content-length"]))
        found.received.append(
            Received(path=self.path, headers={k.lower(): v for k, v in self.headers.items()}, body=body)
        )
        answer = found.answers.pop(0) if found.answers else Answer()
        if not answer.status:
            self.close_connection = True
            return
        self.send_response(answer.status)
        for name, value in {"content-length": str(len(answer.body)), **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (its name in the library)
        """Quiet."""
