"""The names of a job's live objects. They say all that a playlist needs, so the store's listing is the only state there is.

`main` is the video itself, `r-NAME` a rendition: no rendition's name can be another file's.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from infra.objects import Stored, job_key

MASTER = "master.m3u8"
MAIN = "main"
KIND = "live"
"""The folder of a job."""
_SEGMENT = re.compile(r"(?P<strand>.+)-(?P<piece>\d{5})-(?P<start>\d+)-(?P<frames>\d+)\.m4s")
_WAITING = re.compile(r"wait-(?P<piece>\d{5})-(?P<attempt>\d+)-(?P<checked>\d+)-(?P<hash>.+)")
_REDO = re.compile(r"redo-(?P<piece>\d{5})-(?P<checked>\d+)")
_END = re.compile(r"end-(?P<frames>\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A published piece: once its name is in a playlist, its bytes never change."""

    strand: str
    piece: int
    start_frame: int
    frames: int
    size_bytes: int = 0

    @property
    def name(self) -> str:
        """Of its file."""
        return f"{self.strand}-{self.piece:05}-{self.start_frame}-{self.frames}.m4s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A piece that passed, and whose turn has not come. `request_hash` is what the stitcher's answer is kept under."""

    piece: int
    attempt: int
    checked_us: int
    request_hash: str

    @property
    def name(self) -> str:
        """Of its note."""
        return f"wait-{self.piece:05}-{self.attempt}-{self.checked_us}-{self.request_hash}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Redo:
    """A segment was sent back to be made again: what was stitched of it, or of one behind it, before then does not count."""

    piece: int
    checked_us: int

    @property
    def name(self) -> str:
        """Of its note."""
        return f"redo-{self.piece:05}-{self.checked_us}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """What the store has of a job's live streams."""

    segments: Mapping[str, tuple[Segment, ...]]
    """Of each strand those that follow each other from frame 0 on."""
    waiting: tuple[Waiting, ...]
    redone: tuple[Redo, ...]
    end_frames: int | None
    """Of the finished video; None: it is not finished yet."""

    @property
    def main(self) -> tuple[Segment, ...]:
        """The video itself."""
        return self.segments.get(MAIN, ())

    @property
    def ended(self) -> bool:
        """Whether all of the finished video is there."""
        return bool(self.main) and sum(segment.frames for segment in self.main) == self.end_frames


def init_name(strand: str) -> str:
    """Of the header of a strand's segments."""
    return f"{strand}.init.mp4"


def playlist_name(strand: str) -> str:
    """Of a strand's playlist."""
    return f"{strand}.m3u8"


def rendition_strand(name: str) -> str:
    """Of a rendition of that name."""
    return f"r-{name}"


def end_name(frames: int) -> str:
    """Of the note that the video is finished, and so long."""
    return f"end-{frames}"


def live_key(job_id: str, name: str) -> str:
    """Its object. Raises: ValueError unless job and name are fit for keys."""
    return job_key(job_id, KIND, name)


def shelf(listed: Iterable[Stored]) -> Shelf:
    """What is there, from the objects of a job's folder."""
    found: dict[str, dict[int, Segment]] = {}
    waiting: list[Waiting] = []
    redone: list[Redo] = []
    end_frames: int | None = None
    for stored in sorted(listed, key=lambda stored: stored.key):
        name = stored.key.rpartition("/")[2]
        if match := _SEGMENT.fullmatch(name):
            piece, start, frames = (int(match[group]) for group in ("piece", "start", "frames"))
            segment = Segment(
                strand=match["strand"], piece=piece, start_frame=start, frames=frames, size_bytes=stored.size_bytes
            )
            found.setdefault(segment.strand, {}).setdefault(piece, segment)
        elif match := _WAITING.fullmatch(name):
            numbers = {
                "piece": int(match["piece"]),
                "attempt": int(match["attempt"]),
                "checked_us": int(match["checked"]),
            }
            waiting.append(Waiting(**numbers, request_hash=match["hash"]))
        elif match := _REDO.fullmatch(name):
            redone.append(Redo(piece=int(match["piece"]), checked_us=int(match["checked"])))
        elif match := _END.fullmatch(name):
            end_frames = int(match["frames"])
    segments = {strand: _continuous(pieces) for strand, pieces in found.items()}
    return Shelf(segments=segments, waiting=tuple(waiting), redone=tuple(redone), end_frames=end_frames)


def _continuous(pieces: Mapping[int, Segment]) -> tuple[Segment, ...]:
    run: list[Segment] = []
    while (segment := pieces.get(len(run))) and segment.start_frame == (
        run[-1].start_frame + run[-1].frames if run else 0
    ):
        run.append(segment)
    return tuple(run)
