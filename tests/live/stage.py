"""Builders: stitched pieces as the stitcher leaves them in the store, verdicts on them, and the end of their video."""

import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import imageio_ffmpeg

from infra.objects import Objects
from schemas.codec import encode
from schemas.records import PieceChecked, PieceStitched, Verdict, VideoFinished
from streams.live.publisher import Publish
from tests.schemas.samples import sample
from tests.stitcher.clips import shot
from tests.stitcher.takes import Take, stitch, stitcher, take

LENGTHS = ((0, 24), (16, 38), (46, 40))
"""First frame and frames of three segments: pieces of 16, 30 and 40 frames."""
JOB = "job"
FOLDER = f"jobs/{JOB}/live"


@dataclass
class Stage:
    """A store with three pieces of one shot, and a publisher."""

    folder: Path

    def __post_init__(self) -> None:
        self.objects = Objects((self.folder / "objects").as_uri())
        self.take: Take = take(self.objects, *(shot(s, n, width=256, height=144) for s, n in LENGTHS))
        self.work = stitcher(self.objects, self.folder / "scratch")
        self.pieces = [replace(piece, engine="animatic") for piece in stitch(self.take, self.work)]
        self.clear()

    def clear(self) -> None:
        """Nothing is live, and the stitcher's answers are there."""
        self.objects.delete([stored.key for stored in self.objects.listed(FOLDER)])
        for piece in self.pieces:
            self.keep(piece)

    def publisher(self) -> Publish:
        """A new one, as after a restart."""
        return Publish(self.objects, self.folder / "publish")

    def keep(self, piece: PieceStitched) -> None:
        """The stitcher's answer, as its manifest."""
        self.objects.put_manifest(piece.request_hash, encode(piece))

    def read(self, name: str) -> str:
        """A playlist."""
        return self.objects.read(f"{FOLDER}/{name}").decode()

    def files(self) -> dict[str, bytes]:
        """Everything that players are given."""
        keys = [stored.key for stored in self.objects.listed(FOLDER)]
        return {key.rpartition("/")[2]: self.objects.read(key) for key in keys if "." in key.rpartition("/")[2]}


def checked(piece: PieceStitched, verdict: Verdict = Verdict.PASS, checked_us: int = 10) -> PieceChecked:
    """A verdict on it."""
    event = sample(PieceChecked)
    assert isinstance(event, PieceChecked)
    return replace(
        event,
        job_id=piece.job_id,
        piece=piece.piece,
        attempt=piece.attempt,
        request_hash=piece.request_hash,
        verdict=verdict,
        findings=(),
        checked_us=checked_us,
    )


def finished(pieces: list[PieceStitched]) -> VideoFinished:
    """The end of their video."""
    event = sample(VideoFinished)
    assert isinstance(event, VideoFinished)
    frames = sum(piece.frames for piece in pieces)
    return replace(event, job_id=JOB, frames=frames, format=pieces[0].format, engine=pieces[0].engine)


def ffmpeg(*arguments: str) -> str:
    """What ffmpeg prints; any damage is an error."""
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-nostdin", "-v", "error", "-xerror", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
