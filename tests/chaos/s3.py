"""An object store that speaks enough of S3 for obstore, in a folder, and that fails, stalls or is full when it is told to.

It stands at a real boundary: the product reaches it over HTTP as it would reach any other S3.
"""

import os
import random
import shutil
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import xxhash

BUCKET = "longtake"
_CREDENTIALS = {"AWS_ACCESS_KEY_ID": "chaos", "AWS_SECRET_ACCESS_KEY": "chaos", "AWS_REGION": "us-east-1"}


class S3Server(ThreadingHTTPServer):
    """Owns the server and what is wrong with it. The three faults may be changed at any time, by one thread."""

    daemon_threads = True

    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder = folder
        self.error_share = 0.0
        """Of the requests: half of those get a 503, half lose their connection."""
        self.slow_s = 0.0
        """How long a GET waits, at most."""
        self.full = False
        """Nothing can be written: 507, as MinIO says it."""
        self.failed = 0
        self._random = random.Random(seed)
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        """As `Settings.objects` wants it."""
        return f"s3://{BUCKET}/line"

    def handle_error(self, request: object, client_address: object) -> None:
        """Nothing: clients are killed here."""

    def environment(self) -> dict[str, str]:
        """What makes obstore come here."""
        endpoint = f"http://127.0.0.1:{self.server_address[1]}"
        return {**_CREDENTIALS, "AWS_ENDPOINT": endpoint, "AWS_ALLOW_HTTP": "true"}

    def misfortune(self) -> float:
        """In [0, 1): below `error_share` the request fails."""
        with self._lock:
            return self._random.random()


@contextmanager
def s3_server(folder: Path, seed: int) -> Iterator[S3Server]:
    """A running server for an empty bucket in `folder`."""
    folder.mkdir(parents=True)
    server = S3Server(folder, seed)
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: S3Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (its name there)
        """Nothing: the workers' logs say what matters."""

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self._fails():
            return
        if self.server.full:
            self._answer(507, b"<Error><Code>XMinioStorageFull</Code></Error>")
            return
        path = self._upload() or self._path()
        part = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(body)
        part.replace(path)
        self._answer(200, etag=_etag(body))

    def do_GET(self) -> None:
        if self._fails():
            return
        if self.server.slow_s:
            time.sleep(self.server.misfortune() * self.server.slow_s)
        if "list-type" in self._query():
            self._list()
            return
        try:
            data = self._path().read_bytes()
        except (FileNotFoundError, IsADirectoryError):
            self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
            return
        self._answer(200, data, etag=_etag(data))

    def do_HEAD(self) -> None:
        if self._fails():
            return
        path = self._path()
        data = path.read_bytes() if path.is_file() else None
        self._answer(404 if data is None else 200, data or b"", etag=_etag(data or b""))

    def do_DELETE(self) -> None:
        if not self._fails():
            self._path().unlink(missing_ok=True)
            self._answer(204)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self._fails():
            return
        query = self._query()
        if "uploads" in query:
            answer = f"<InitiateMultipartUploadResult><UploadId>{uuid.uuid4().hex}</UploadId></InitiateMultipartUploadResult>"
        elif "uploadId" in query:
            answer = self._completed(query["uploadId"][0])
        else:
            self._answer(501)
            return
        self._answer(200, answer.encode())

    def _completed(self, upload: str) -> str:
        path, folder = self._path(), self.server.folder / ".uploads" / upload
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = path.with_name(f".{path.name}.{upload}")
        with whole.open("wb") as output:
            for part in sorted(folder.iterdir(), key=lambda part: int(part.name)):
                output.write(part.read_bytes())
        whole.replace(path)
        shutil.rmtree(folder)
        return "<CompleteMultipartUploadResult><ETag>whole</ETag></CompleteMultipartUploadResult>"

    def _list(self) -> None:
        prefix = self._query().get("prefix", [""])[0]
        found = [
            f"<Contents><Key>{escape(key)}</Key><LastModified>{_time(path)}</LastModified><ETag>x</ETag>"
            f"<Size>{path.stat().st_size}</Size></Contents>"
            for key, path in self._objects()
            if key.startswith(prefix)
        ]
        inside = f"<IsTruncated>false</IsTruncated>{''.join(found)}"
        self._answer(200, f"<ListBucketResult>{inside}</ListBucketResult>".encode())

    def _objects(self) -> Iterator[tuple[str, Path]]:
        for folder, _, names in os.walk(self.server.folder):
            for name in sorted(names):
                path = Path(folder, name)
                key = str(path.relative_to(self.server.folder))
                if not name.startswith(".") and not key.startswith(".uploads"):
                    yield key, path

    def _query(self) -> dict[str, list[str]]:
        return parse_qs(urlsplit(self.path).query, keep_blank_values=True)

    def _path(self) -> Path:
        return self.server.folder / unquote(urlsplit(self.path).path).removeprefix(f"/{BUCKET}").strip("/")

    def _upload(self) -> Path | None:
        query = self._query()
        if "uploadId" not in query:
            return None
        return self.server.folder / ".uploads" / query["uploadId"][0] / query["partNumber"][0]

    def _fails(self) -> bool:
        luck, share = self.server.misfortune(), self.server.error_share
        if luck >= share:
            return False
        self.server.failed += 1
        if luck < share / 2:
            self._answer(503, b"<Error><Code>SlowDown</Code></Error>")
        else:
            self.close_connection = True
        return True

    def _answer(self, status: int, body: bytes = b"", etag: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        if etag:
            self.send_header("ETag", etag)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _etag(data: bytes) -> str:
    return f'"{xxhash.xxh3_64_hexdigest(data)}"'


def _time(path: Path) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(path.stat().st_mtime))
