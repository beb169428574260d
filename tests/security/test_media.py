"""What lies where a piece should be is read as MP4 or not at all: a playlist or a script there names no other file."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from qc_consumers.metrics.packets import UnreadableError, scan_packets
from qc_consumers.metrics.quality import Pair, QualityError, measure_quality, scoring_command
from streams.mp4 import Clock, CodedVideoError, examine
from tests.qc.clips import bunny, encoded

FRAMES = 12


@pytest.fixture(scope="module")
def secret(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A good video that the request does not name."""
    return encoded(tmp_path_factory.mktemp("secret") / "secret.mp4", bunny()[:FRAMES])


@pytest.fixture(params=["playlist", "script"])
def trap(request: pytest.FixtureRequest, secret: Path, tmp_path: Path) -> Path:
    """A file that libav reads as the other video if it may choose the format."""
    text = {
        "playlist": f"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:0.5,\nfile://{secret}\n#EXT-X-ENDLIST\n",
        "script": f"ffconcat version 1.0\nfile 'file:{secret}'\n",
    }[request.param]
    trap = tmp_path / "piece.mp4"
    trap.write_text(text)
    return trap


def test_a_piece_that_is_a_playlist_is_no_piece(trap: Path) -> None:
    with pytest.raises(CodedVideoError, match="cannot be read"):
        examine(trap, Clock(timescale=24_000, step=1000))
    with pytest.raises(UnreadableError):
        scan_packets(trap)


def test_a_piece_that_is_a_playlist_is_not_scored(trap: Path, secret: Path, tmp_path: Path) -> None:
    pair = Pair(piece=trap, reference=secret, width=320, height=180, fps=Fraction(24), frames=FRAMES, head=0, tail=0)
    with pytest.raises(QualityError):
        measure_quality(pair, tmp_path, lambda *_: None, threads=1, timeout_s=30)
    copy = tmp_path / "copy.mp4"
    copy.write_bytes(secret.read_bytes())
    good = replace(pair, piece=copy)
    assert measure_quality(good, tmp_path, lambda *_: None, threads=1, timeout_s=30).vmaf


def test_a_piece_is_not_scored_against_itself(secret: Path) -> None:
    pair = Pair(piece=secret, reference=secret, width=320, height=180, fps=Fraction(24), frames=FRAMES, head=0, tail=0)
    with pytest.raises(QualityError, match="itself"):
        scoring_command(pair, 1)
