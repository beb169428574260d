"""A local server that speaks the Gemini API's video protocol as its public documentation records it.

Clips are small MP4s whose n-th frame has a luma of its own, so that a test sees which frames it got. An extension is the clip
it extends with 7 s behind it.
"""

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import av
import numpy as np

KEY = "local-test-key"
SIZE = (128, 72)
_FILES = "https://generativelanguage.googleapis.com/v1beta/files"
"""Addresses as the real API gives them; the client asks for them where it asks for everything."""
Answer = tuple[int, dict[str, Any]]


@dataclass(slots=True)
class Gemini:
    """What was asked, what is made, and what goes wrong: `answers` come first, in order, instead of the usual ones."""

    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    """Bodies of predictLongRunning."""
    answers: list[Answer] = field(default_factory=list)
    """To predictLongRunning."""
    outcomes: list[dict[str, Any]] = field(default_factory=list)
    """Of operations: what a finished one holds."""
    hiccups: list[Answer] = field(default_factory=list)
    """To questions after an operation."""
    polls_each: int = 2
    """How often an operation is asked after until it is done."""
    clips: dict[str, list[int]] = field(default_factory=dict)
    """File name to the luma of its frames."""
    _polls: dict[str, int] = field(default_factory=dict)

    def submit(self, key: str, model: str, body: dict[str, Any]) -> Answer:
        if key != KEY:
            return refusal(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.")
        self.asked.append(body)
        if self.answers:
            return self.answers.pop(0)
        name = f"models/{model}/operations/op{len(self._polls)}"
        self._polls[name] = 0
        return 200, {"name": name}

    def poll(self, name: str) -> Answer:
        if self.hiccups:
            return self.hiccups.pop(0)
        self._polls[name] += 1
        if self._polls[name] < self.polls_each:
            return 200, {"name": name}
        outcome = self.outcomes.pop(0) if self.outcomes else {"response": {"generateVideoResponse": self._made()}}
        return 200, {"name": name, "done": True, **outcome}

    def _made(self) -> dict[str, Any]:
        body = self.asked[-1]
        (wish,) = body["instances"]
        file = f"clip{len(self.clips)}"
        if "video" in wish:
            before = self.clips[wish["video"]["uri"].rpartition("/")[2].partition(":")[0]]
            self.clips[file] = [*before, *lumas(len(before), 168)]
        else:
            first = 230 if "image" in wish else 0
            self.clips[file] = lumas(first, 24 * body["parameters"]["durationSeconds"])
        return {"generatedSamples": [{"video": {"uri": f"{_FILES}/{file}:download?alt=media"}}]}


def lumas(first: int, count: int) -> list[int]:
    """Of frames `first` on."""
    return [20 + 8 * ((first + index) % 25) for index in range(count)]


def refusal(code: int, status: str, message: str, delay_s: float | None = None) -> Answer:
    """An error as google.rpc words it."""
    details = (
        [] if delay_s is None else [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{delay_s}s"}]
    )
    return code, {"error": {"code": code, "status": status, "message": message, "details": details}}


def mp4(lumas_of_frames: list[int]) -> bytes:
    """A clip as Veo's are: H.264 in MP4, 24 frames per second."""
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=Fraction(24), options={"preset": "ultrafast", "crf": "8"})
        stream.width, stream.height = SIZE
        stream.pix_fmt = "yuv420p"
        stream.thread_count = 1
        for luma in lumas_of_frames:
            picture = np.full((SIZE[1], SIZE[0], 3), luma, np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())
    return file.getvalue()


@contextmanager
def served() -> Iterator[Gemini]:
    """The server, on loopback."""
    gemini = Gemini()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            assert self.path.startswith("/v1beta/models/")
            assert self.path.endswith(":predictLongRunning")
            model = self.path.removeprefix("/v1beta/models/").removesuffix(":predictLongRunning")
            self._answer(*gemini.submit(self.headers["x-goog-api-key"], model, body))

        def do_GET(self) -> None:
            name = self.path.removeprefix("/v1beta/")
            if name.startswith("files/"):
                file, _, rest = name.removeprefix("files/").partition(":")
                assert rest == "download?alt=media"
                self._send(200, "video/mp4", mp4(gemini.clips[file]))
            else:
                self._answer(*gemini.poll(name))

        def _answer(self, code: int, content: dict[str, Any]) -> None:
            self._send(code, "application/json", json.dumps(content).encode())

        def _send(self, code: int, kind: str, content: bytes) -> None:
            self.send_response(code)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (http.server's name)
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    gemini.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield gemini
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
