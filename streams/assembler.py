"""longtake.assemblies.requested.v1 -> longtake.videos.v1: pieces joined by copying their packets, sound mixed. Nothing is encoded twice."""

import logging
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from infra.assets.ahead import fetching_ahead
from infra.assets.cache import AssetCache
from infra.bus.clients import Member
from infra.bus.ended import EndedJobs, following, unless_ended
from infra.bus.process import stop_on_signals
from infra.bus.requests import remembered
from infra.bus.work import ThreadWork
from infra.bus.worker import run_worker
from infra.objects import BlobError, Objects, job_key
from infra.scratch import scratch_of
from infra.settings import Settings
from schemas.errors import BadInputError
from schemas.records import (
    AssemblyFailed,
    AssemblyRequested,
    Blob,
    PieceRef,
    RenditionPiece,
    RenditionVideo,
    Track,
    VideoAssembled,
)
from streams.beside import extras_of
from streams.captions.files import WEBVTT
from streams.fetching import AssetFiles, StoredAssets
from streams.joining import Part, join, longest_gop
from streams.mp4 import MP4, Clock, CodedVideo, CodedVideoError, clock_of, examine, try_key
from streams.sound import SoundError

log = logging.getLogger(__name__)


_MAIN = ""
"""Among the names of renditions: the video itself."""


class PieceFaultError(Exception):
    """A piece is lost, damaged or not what it is said to be: it has to be stitched again."""


def run(settings: Settings, slot: int) -> None:
    """Serve the topic until SIGTERM or SIGINT. Raises: BusError: start the process again."""
    member = Member(role="assemble", topics=(AssemblyRequested.topic,), slot=slot)
    objects = Objects(settings.objects)
    cache = AssetCache(settings, objects)
    assemble = Assemble(objects, scratch_of(settings, member.name), member.name, lambda: time.time_ns() // 1000, cache)
    ended = EndedJobs()
    work = ThreadWork(unless_ended(ended, remembered(objects, AssemblyRequested, assemble)), settings.slots)
    with following(settings, ended.add), fetching_ahead(settings, cache) as ahead:
        run_worker(settings, member, work, stop_on_signals(), ahead.hold)


class Assemble:
    """Does what a request for an assembly asks for. The video is stored before there is an event that points at it.

    `scratch` is a folder for temporary files, `worker` the name of this process in events, `assets` where they come from if not
    from the store.
    """

    def __init__(
        self,
        objects: Objects,
        scratch: Path,
        worker: str,
        now_us: Callable[[], int],
        assets: AssetFiles | None = None,
    ) -> None:
        self._objects = objects
        self._assets = assets or StoredAssets(objects)
        self._scratch = scratch
        self._worker = worker
        self._now_us = now_us
        scratch.mkdir(parents=True, exist_ok=True)

    def __call__(self, request: AssemblyRequested) -> VideoAssembled | AssemblyFailed:
        """The video, or which pieces are at fault. Raises: BadInputError if the request makes no sense."""
        try:
            job_key(request.job_id, "videos", "0")
        except ValueError as error:
            raise BadInputError(field="job_id", rule="format", message=str(error)) from error
        with tempfile.TemporaryDirectory(dir=self._scratch, prefix="assemble-") as folder:
            return self._assembled(request, Path(folder))

    def _assembled(self, request: AssemblyRequested, folder: Path) -> VideoAssembled | AssemblyFailed:
        started_us = self._now_us()
        clock = clock_of(request.format)
        _check_timeline(request)
        strands, faults = self._strands(request, clock, folder)
        if faults:
            return self._failed(request, tuple(faults), "; ".join(faults.values()))
        parts = strands.pop(_MAIN)
        video = folder / "video.mp4"
        length_s = request.frames * clock.step * clock.tick_s
        try:
            extras = extras_of(request, length_s, self._assets, folder)
            join(parts, clock, video, extras.writers)
        except (BlobError, SoundError) as error:
            return self._failed(request, (), str(error))
        renditions = tuple(
            RenditionVideo(
                name=name,
                codec=coded.codec_string,
                width=coded.width,
                height=coded.height,
                video=self._stored(request, path, f"-{name}"),
            )
            for name, path, coded in self._renditions(request, strands, clock, folder)
        )
        duration_us = round(length_s * 1_000_000)
        log.info("%s assembled: %s frames of %s pieces", request.job_id, request.frames, len(parts))
        return VideoAssembled(
            job_id=request.job_id,
            attempt=request.attempt,
            request_hash=request.request_hash,
            format=request.format,
            frames=request.frames,
            duration_us=duration_us,
            video=self._stored(request, video, ""),
            tracks=(
                Track(kind="video", codec="h264", duration_us=duration_us, samples=request.frames),
                *extras.tracks,
            ),
            piece_starts=tuple(part.start_frame for part in parts),
            gop_frames=longest_gop(parts),
            started_us=started_us,
            finished_us=self._now_us(),
            worker=self._worker,
            renditions=renditions,
            loudness_lufs=extras.lufs,
            sounds_us=extras.sounds_us,
            subtitles=self._subtitles(request, extras.webvtt),
            designed_frames=request.designed_frames,
        )

    def _subtitles(self, request: AssemblyRequested, text: str) -> Blob | None:
        if not text:
            return None
        key = try_key(request.job_id, "videos", f"{request.attempt}-subtitles", ".vtt")
        return self._objects.put_bytes(key, text.encode(), WEBVTT)

    def _renditions(
        self, request: AssemblyRequested, strands: Mapping[str, Sequence[Part]], clock: Clock, folder: Path
    ) -> Iterator[tuple[str, Path, CodedVideo]]:
        """Name, file and what is in it. Raises: CodedVideoError, RuntimeError if joining went wrong, which is a bug."""
        for index, (name, parts) in enumerate(strands.items()):
            path, first = folder / f"rendition-{index}.mp4", parts[0].coded
            join(parts, clock, path)
            coded = examine(path, clock, first.codec)
            if (coded.frames, coded.config) != (request.frames, first.config):
                raise RuntimeError(f"{request.job_id} rendition {name}: not what its pieces are")
            yield name, path, coded

    def _stored(self, request: AssemblyRequested, path: Path, suffix: str) -> Blob:
        key = try_key(request.job_id, "videos", f"{request.attempt}{suffix}")
        return self._objects.put_file(key, path, MP4, algorithm="sha256")

    def _failed(self, request: AssemblyRequested, pieces: tuple[int, ...], reason: str) -> AssemblyFailed:
        log.warning("%s not assembled: %s", request.job_id, reason)
        return AssemblyFailed(
            job_id=request.job_id,
            attempt=request.attempt,
            request_hash=request.request_hash,
            pieces=pieces,
            reason=reason,
            failed_us=self._now_us(),
            worker=self._worker,
        )

    def _strands(
        self, request: AssemblyRequested, clock: Clock, folder: Path
    ) -> tuple[dict[str, list[Part]], dict[int, str]]:
        """The parts of the main video and of each rendition in order, and what is wrong with pieces, by number."""
        names = dict.fromkeys(rendition.name for piece in request.pieces for rendition in piece.renditions)
        strands: dict[str, list[Part]] = {}
        faults: dict[int, str] = {}
        for name in (_MAIN, *names):
            parts: dict[int, Part] = {}
            for piece in request.pieces:
                try:
                    parts[piece.piece] = self._part(piece, name, clock, folder)
                except PieceFaultError as error:
                    faults.setdefault(piece.piece, f"piece {piece.piece}: {_of(name)}{error}")
            usual = Counter(part.coded.config for part in parts.values()).most_common(1)
            odd = [number for number, part in parts.items() if part.coded.config != usual[0][0]]
            for number in odd:
                faults.setdefault(number, f"piece {number}: {_of(name)}would not play between the others")
            strands[name] = list(parts.values())
        return strands, faults

    def _part(self, piece: PieceRef, name: str, clock: Clock, folder: Path) -> Part:
        source = piece if name == _MAIN else next((r for r in piece.renditions if r.name == name), None)
        if source is None:
            raise PieceFaultError("is missing")
        try:
            path = self._objects.get_file(source.video, folder)
            coded = examine(path, clock, source.codec if isinstance(source, RenditionPiece) else "h264")
        except (BlobError, CodedVideoError) as error:
            raise PieceFaultError(str(error)) from error
        if coded.frames != piece.frames:
            raise PieceFaultError(f"{coded.frames} frames, not {piece.frames}")
        if coded.config_digest != source.decoder_config:
            raise PieceFaultError(f"decoder configuration {coded.config_digest}, not {source.decoder_config}")
        return Part(path=path, start_frame=piece.start_frame, coded=coded)


def _of(name: str) -> str:
    return name and f"rendition {name}: "


def _check_timeline(request: AssemblyRequested) -> None:
    """Raises: BadInputError unless the pieces tile the video."""
    end = 0
    for index, piece in enumerate(request.pieces):
        if piece.start_frame != end:
            message = f"piece {piece.piece} starts at {piece.start_frame}, not {end}"
            raise BadInputError(field=f"pieces[{index}].start_frame", rule="timeline", message=message)
        end += piece.frames
    if end != request.frames or not request.pieces:
        raise BadInputError(field="frames", rule="frames", message=f"pieces have {end} of {request.frames}")
