"""The assembled video plays in a browser: to the end, at its length, and a seek shows the frame that belongs there."""

import json
import queue
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from infra.objects import Objects
from streams.assembler import Assemble
from tests.stitcher.clips import Frames
from tests.stitcher.takes import assembly, stitch, stitcher, take

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
TIMEOUT_S = 60.0
SEEKS = (0, 11, 12, 23, 24, 47)
PAGE = """<!doctype html><video id=v muted></video><script>
const v = document.getElementById('v'), c = document.createElement('canvas').getContext('2d');
const seen = {grey: []};
const on = name => new Promise((ok, no) => { v.addEventListener(name, ok, {once: true}); v.onerror = () => no(v.error.message); });
async function play() {
  v.src = URL.createObjectURL(await (await fetch('video.mp4')).blob());
  await on('canplay');
  Object.assign(seen, {duration: v.duration, width: v.videoWidth, height: v.videoHeight});
  c.canvas.width = v.videoWidth; c.canvas.height = v.videoHeight;
  for (const frame of SEEKS) {
    v.currentTime = (frame + 0.5) / 24;
    await on('seeked');
    let pixel = [0, 0, 0, 0];
    while (!pixel[3]) {  // a loaded machine says 'seeked' before there is a picture to draw
      await new Promise(later => setTimeout(later, 20));
      c.drawImage(v, 0, 0);
      pixel = c.getImageData(v.videoWidth / 2, v.videoHeight / 2, 1, 1).data;
    }
    seen.grey.push(pixel[0]);
  }
  v.currentTime = 0;
  await on('seeked');
  v.playbackRate = 4;
  await v.play();
  await on('ended');
  seen.ended = v.currentTime;
}
play().catch(e => { seen.error = String(e); }).finally(() => fetch('/seen', {method: 'POST', body: JSON.stringify(seen)}));
</script>"""


class Site(SimpleHTTPRequestHandler):
    """Serves a folder and takes the page's report."""

    def __init__(self, *args: Any, reports: "queue.Queue[dict[str, Any]]", **kwargs: Any) -> None:
        self._reports = reports
        super().__init__(*args, **kwargs)

    def do_POST(self) -> None:
        self._reports.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (http.server's name)
        pass


@contextmanager
def served(folder: Path, reports: "queue.Queue[dict[str, Any]]") -> Iterator[str]:
    handler = partial(Site, directory=str(folder), reports=reports)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/page.html"
        server.shutdown()
        thread.join()


@contextmanager
def browser(url: str) -> Iterator[None]:
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [
            str(CHROMIUM),
            *flags,
            "--autoplay-policy=no-user-gesture-required",
            f"--user-data-dir={profile}",
            url,
        ]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield
        finally:
            process.terminate()
            process.wait(20)


def greys(start: int, frames: int) -> Frames:
    """Each frame a grey of its own: 16 + 4 for each frame of the timeline."""
    values = np.arange(16 + 4 * start, 16 + 4 * (start + frames), 4, dtype=np.uint8)
    return np.broadcast_to(values[:, None, None, None], (frames, 144, 256, 3)).copy()


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this machine")
def test_the_video_plays_in_chromium(tmp_path: Path) -> None:
    objects = Objects((tmp_path / "objects").as_uri())
    work = stitcher(objects, tmp_path / "scratch")
    pieces = stitch(take(objects, greys(0, 12), greys(12, 12), greys(24, 24), overlap=0), work)
    clock = count(1)
    video = Assemble(objects, tmp_path / "scratch", "assemble-0", lambda: next(clock))(assembly(pieces)).video
    site = tmp_path / "site"
    site.mkdir()
    (site / "page.html").write_text(PAGE.replace("SEEKS", json.dumps(SEEKS)))
    shutil.copy(objects.get_file(video, tmp_path), site / "video.mp4")
    reports: queue.Queue[dict[str, Any]] = queue.Queue()
    with served(site, reports) as url, browser(url):
        seen = reports.get(timeout=TIMEOUT_S)
    assert "error" not in seen, seen
    assert (seen["width"], seen["height"], seen["duration"], seen["ended"]) == (256, 144, 2.0, 2.0)
    assert np.abs(np.array(seen["grey"]) - [16 + 4 * frame for frame in SEEKS]).max() <= 2
