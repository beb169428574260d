"""A real browser plays the stream with hls.js while it grows, from its first frame to its end."""

import queue
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.assembler.test_chromium import CHROMIUM, TIMEOUT_S, browser, served
from tests.live.stage import FOLDER, Stage, checked, finished

PLAYER = Path(__file__).parents[2] / "examples" / "player" / "hls.light.min.js"
PAGE = """<!doctype html><video id=v muted></video><script src="hls.js"></script><script>
const v = document.getElementById('v'), tell = seen => fetch('/seen', {method: 'POST', body: JSON.stringify(seen)});
const h = new Hls({startPosition: 0});
h.on(Hls.Events.ERROR, (_, e) => { if (e.fatal) tell({error: e.details}); });
v.addEventListener('timeupdate', () => tell({frames: v.getVideoPlaybackQuality().totalVideoFrames}), {once: true});
v.addEventListener('ended', () => tell({
  ended: v.currentTime, duration: v.duration, width: v.videoWidth, ranges: v.buffered.length, start: v.buffered.start(0),
  end: v.buffered.end(0)
}));
h.on(Hls.Events.MANIFEST_PARSED, () => v.play());
h.loadSource('live/master.m3u8');
h.attachMedia(v);
</script>"""


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this machine")
def test_a_growing_stream_plays_in_chromium_from_its_first_frame_to_its_end(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    site = tmp_path / "site"
    site.mkdir()
    (site / "page.html").write_text(PAGE)
    shutil.copy(PLAYER, site / "hls.js")
    stage.publisher()(checked(stage.pieces[0]))
    (site / "live").symlink_to(tmp_path / "objects" / FOLDER)
    reports: queue.Queue[dict[str, Any]] = queue.Queue()
    with served(site, reports) as url, browser(url):
        assert "error" not in (begun := reports.get(timeout=TIMEOUT_S)), begun
        for piece in stage.pieces[1:]:
            stage.publisher()(checked(piece))
        stage.publisher()(finished(stage.pieces))
        seen = reports.get(timeout=TIMEOUT_S)
    assert "error" not in seen, seen
    length_s = 86 / 24
    assert (seen["width"], seen["ranges"], seen["start"]) == (256, 1, 0)
    assert [seen[name] for name in ("ended", "duration", "end")] == [pytest.approx(length_s, abs=0.001)] * 3
