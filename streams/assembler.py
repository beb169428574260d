"""longtake.assemblies.requested.v1 -> longtake.videos.v1: pieces joined by copying their packets. Nothing is encoded twice."""

import logging
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import av
from av.video.stream import VideoStream

from infra.bus.clients import Member
from infra.bus.process import stop_on_signals
from infra.bus.requests import remembered
from infra.bus.work import ThreadWork
from infra.bus.worker import run_worker
from infra.objects import BlobError, Objects, job_key
from infra.settings import Settings
from schemas.errors import BadInputError
from schemas.records import AssemblyRequested, PieceRef, Track, VideoAssembled
from streams.mp4 import MP4, Clock, CodedVideo, CodedVideoError, clock_of, content_key, examine

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A piece on disk, examined, and its first frame in the video."""

    path: Path
    start_frame: int
    coded: CodedVideo


def run(settings: Settings, slot: int) -> None:
    """Serve the topic until SIGTERM or SIGINT. Raises: BusError: start the process again."""
    member = Member(role="assemble", topics=(AssemblyRequested.topic,), slot=slot)
    objects = Objects(settings.objects)
    assemble = Assemble(objects, settings.state / "scratch", member.name, lambda: time.time_ns() // 1000)
    work = ThreadWork(remembered(objects, AssemblyRequested, assemble), settings.slots)
    run_worker(settings, member, work, stop_on_signals())


class Assemble:
    """Does what a request for an assembly asks for. The video is stored before there is an event that points at it.

    `scratch` is a folder for temporary files, `worker` the name of this process in events.
    """

    def __init__(self, objects: Objects, scratch: Path, worker: str, now_us: Callable[[], int]) -> None:
        self._objects = objects
        self._scratch = scratch
        self._worker = worker
        self._now_us = now_us
        scratch.mkdir(parents=True, exist_ok=True)

    def __call__(self, request: AssemblyRequested) -> VideoAssembled:
        """The video. Raises: BadInputError if the pieces do not make it up: another try would find the same."""
        try:
            job_key(request.job_id, "videos", "0")
        except ValueError as error:
            raise BadInputError(field="job_id", rule="format", message=str(error)) from error
        with tempfile.TemporaryDirectory(dir=self._scratch, prefix="assemble-") as folder:
            return self._assembled(request, Path(folder))

    def _assembled(self, request: AssemblyRequested, folder: Path) -> VideoAssembled:
        started_us = self._now_us()
        clock = clock_of(request.format)
        parts = self._parts(request, clock, folder)
        video = folder / "video.mp4"
        join(parts, clock, video)
        key = content_key(request.job_id, "videos", str(request.attempt), video)
        duration_us = round(request.frames * clock.step * clock.tick_s * 1_000_000)
        log.info("%s assembled: %s frames of %s pieces", request.job_id, request.frames, len(parts))
        return VideoAssembled(
            job_id=request.job_id,
            attempt=request.attempt,
            request_hash=request.request_hash,
            format=request.format,
            frames=request.frames,
            duration_us=duration_us,
            video=self._objects.put_file(key, video, MP4, algorithm="sha256"),
            tracks=(Track(kind="video", codec="h264", duration_us=duration_us, samples=request.frames),),
            piece_starts=tuple(part.start_frame for part in parts),
            gop_frames=longest_gop(parts),
            started_us=started_us,
            finished_us=self._now_us(),
            worker=self._worker,
        )

    def _parts(self, request: AssemblyRequested, clock: Clock, folder: Path) -> list[Part]:
        parts: list[Part] = []
        start_frame = 0
        for index, piece in enumerate(request.pieces):
            parts.append(self._part(piece, f"pieces[{index}]", start_frame, clock, folder))
            start_frame += piece.frames
            if parts[index].coded.config != parts[0].coded.config:
                raise BadInputError(
                    field=f"pieces[{index}].decoder_config",
                    rule="decoder_config",
                    message=f"piece {piece.piece} would not play behind piece {request.pieces[0].piece}: encode it again",
                )
        if start_frame != request.frames or not parts:
            raise BadInputError(field="frames", rule="frames", message=f"pieces have {start_frame} of {request.frames}")
        return parts

    def _part(self, piece: PieceRef, field: str, start_frame: int, clock: Clock, folder: Path) -> Part:
        try:
            path = self._objects.get_file(piece.video, folder)
            coded = examine(path, clock)
        except BlobError as error:
            raise BadInputError(field=f"{field}.video", rule="blob", message=str(error)) from error
        except CodedVideoError as error:
            raise BadInputError(field=f"{field}.video", rule="piece", message=f"piece {piece.piece} {error}") from error
        if piece.start_frame != start_frame:
            message = f"piece {piece.piece} starts at {piece.start_frame}, not {start_frame}"
            raise BadInputError(field=f"{field}.start_frame", rule="timeline", message=message)
        if coded.frames != piece.frames:
            message = f"piece {piece.piece} has {coded.frames} frames, not {piece.frames}"
            raise BadInputError(field=f"{field}.frames", rule="frames", message=message)
        if coded.config_digest != piece.decoder_config:
            message = f"piece {piece.piece} has {coded.config_digest}, not {piece.decoder_config}"
            raise BadInputError(field=f"{field}.decoder_config", rule="decoder_config", message=message)
        return Part(path=path, start_frame=start_frame, coded=coded)


def join(parts: Sequence[Part], clock: Clock, path: Path) -> None:
    """Write the parts' packets as one MP4 with the index in front (faststart).

    Frame n is shown at exactly n steps. Decoding runs ahead by the longest delay of any part, as a constant offset: an edit
    list takes it back, so that the first frame is at 0.
    """
    delay = max(part.coded.delay_frames for part in parts)
    options = {"movflags": "+faststart", "video_track_timescale": str(clock.timescale)}
    with av.open(str(path), "w", format="mp4", options=options) as output:
        stream: VideoStream | None = None
        decoded = 0
        for part in parts:
            with av.open(str(part.path)) as container:
                source = container.streams.video[0]
                stream = stream or output.add_stream_from_template(source)
                for packet in container.demux(source):
                    if not packet.size:  # the last one, which flushes decoders
                        continue
                    packet.pts = (packet.pts or 0) + part.start_frame * clock.step
                    packet.dts = (decoded - delay) * clock.step
                    packet.duration = clock.step
                    packet.stream = stream
                    output.mux(packet)
                    decoded += 1


def longest_gop(parts: Sequence[Part]) -> int:
    """Frames from one IDR to the next, or to the end, at most."""
    idr_frames = [part.start_frame + frame for part in parts for frame in part.coded.idr_frames]
    end = parts[-1].start_frame + parts[-1].coded.frames
    return max(after - before for before, after in pairwise([*idr_frames, end]))
