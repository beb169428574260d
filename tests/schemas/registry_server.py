"""A small schema registry that speaks Confluent's REST API, with its rules about modes, ids and versions."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

VERSIONS = re.compile(r"/subjects/([^/]+)/versions(?:/(\d+))?")
MODE = re.compile(r"/mode/([^/?]+)(\?force=true)?")


class RegistryServer(ThreadingHTTPServer):
    """`schemas[subject][version] = (id, schema)`; a subject takes given ids only in mode IMPORT."""

    daemon_threads = True

    def __init__(self, *, imports: bool = True) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.imports = imports
        self.schemas: dict[str, dict[int, tuple[int, Any]]] = {}
        self.modes: dict[str, str] = {}
        self.seen_authorization: set[str | None] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def register(self, subject: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        held = self.schemas.setdefault(subject, {})
        importing = self.modes.get(subject) == "IMPORT"
        if "id" in body and self.imports and not importing:
            return 422, {"error_code": 42205, "message": f"Subject {subject} is not in import mode"}
        taken = {i: schema for versions in self.schemas.values() for i, schema in versions.values()}
        number = body["id"] if importing and self.imports else len(taken) + 100
        schema = json.loads(body["schema"])
        if taken.get(number, schema) != schema:
            return 422, {"error_code": 42205, "message": f"Overwrite new schema with id {number} is not permitted."}
        held[body.get("version", len(held) + 1)] = (number, schema)
        return 200, {"id": number}

    def set_mode(self, subject: str, mode: str, force: bool) -> tuple[int, dict[str, Any]]:
        if not self.imports:
            return 200, {"mode": "READWRITE"}
        if mode == "IMPORT" and self.schemas.get(subject) and not force:
            return 422, {"error_code": 42205, "message": "Cannot import since found existing subjects"}
        self.modes[subject] = mode
        return 200, {"mode": mode}


class _Handler(BaseHTTPRequestHandler):
    server: RegistryServer

    def do_GET(self) -> None:
        match = VERSIONS.fullmatch(self.path)
        assert match
        found = self.server.schemas.get(match[1], {}).get(int(match[2]))
        if found is None:
            self._answer(404, {"error_code": 40401, "message": "Subject or version not found."})
        else:
            self._answer(200, {"subject": match[1], "version": int(match[2]), "id": found[0]})

    def do_POST(self) -> None:
        match = VERSIONS.fullmatch(self.path)
        assert match
        self._answer(*self.server.register(match[1], self._body()))

    def do_PUT(self) -> None:
        match = MODE.fullmatch(self.path)
        assert match
        self._answer(*self.server.set_mode(match[1], self._body()["mode"], bool(match[2])))

    def _body(self) -> dict[str, Any]:
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        self.server.seen_authorization.add(self.headers.get("Authorization"))
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Quiet."""


@contextmanager
def registry_server(*, imports: bool = True) -> Iterator[RegistryServer]:
    server = RegistryServer(imports=imports)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
