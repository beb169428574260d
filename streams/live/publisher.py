"""longtake.pieces.checked.v1, longtake.videos.finished.v1 -> HLS in the object store: pieces that passed, in order, while the job runs.

A verdict names the request of its piece, and the stitcher has kept its answer under it before it was announced: pieces.v1 need not
be read. All is derived from the store's listing, so a restart has nothing to find again, and a record may come twice.
"""

import logging
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from infra.bus.clients import Member
from infra.bus.later import TRANSIENT
from infra.bus.message import Message
from infra.bus.process import stop_on_signals
from infra.bus.reader import event_of
from infra.bus.requests import recalled
from infra.bus.work import ThreadWork
from infra.bus.worker import run_worker
from infra.objects import BlobError, Objects
from infra.scratch import scratch_of
from infra.settings import Settings
from schemas.engines import ENGINES, add_installed
from schemas.errors import BadInputError
from schemas.records import Blob, PieceChecked, PieceStitched, Verdict, VideoFinished, VideoFormat
from schemas.topics import Event
from streams.live.fragments import FragmentError, fragment, header
from streams.live.names import (
    MAIN,
    MASTER,
    Redo,
    Segment,
    Shelf,
    Waiting,
    end_name,
    init_name,
    live_key,
    playlist_name,
    rendition_strand,
    shelf,
)
from streams.live.playlists import Rung, master_playlist, media_playlist
from streams.mp4 import CodedVideoError, clock_of, examine

PLAYLIST = "application/vnd.apple.mpegurl"
_NOTE = "text/plain"
_AGAIN_S = (1.0, 2.0, 5.0, 10.0, 30.0)

log = logging.getLogger(__name__)


class UnfitError(Exception):
    """A piece that cannot follow what is published: another attempt may."""


def run(settings: Settings, slot: int) -> None:
    """Serve the topics until SIGTERM or SIGINT. Raises: BusError: start the process again."""
    add_installed()
    member = Member(role="publish", topics=(PieceChecked.topic, VideoFinished.topic), slot=slot)
    publish = Publish(Objects(settings.objects), scratch_of(settings, member.name))
    work = ThreadWork(patient(publish), settings.slots)
    run_worker(settings, member, work, stop_on_signals())


def patient(handle: Callable[[Event], None]) -> Callable[[Message], Sequence[Event]]:
    """A handler that waits in place while the store is away: put back, a VideoFinished would be on its topic twice."""

    def handler(message: Message) -> Sequence[Event]:
        event = event_of(message)
        for tries in range(1 << 30):
            try:
                handle(event)
                break
            except TRANSIENT as error:
                log.warning("job %s: %s waits: %r", message.job_id, message.id, error)
                time.sleep(_AGAIN_S[min(tries, len(_AGAIN_S) - 1)])
        return ()

    return handler


class Publish:
    """Puts verified pieces and what lists them into the store. Threads may share it."""

    def __init__(self, objects: Objects, scratch: Path) -> None:
        self._objects = objects
        self._scratch = scratch
        scratch.mkdir(parents=True, exist_ok=True)

    def __call__(self, event: Event) -> None:
        """What the event changes. Raises: BadInputError if its job or hash cannot name an object; errors of the store."""
        try:
            match event:
                case PieceChecked(verdict=Verdict.PASS):
                    self._passed(event)
                case PieceChecked(verdict=Verdict.REGENERATE):
                    redo = Redo(piece=event.piece, checked_us=event.checked_us)
                    self._put(event.job_id, redo.name, b"", _NOTE)
                case VideoFinished():
                    self._put(event.job_id, end_name(event.frames), b"", _NOTE)
                    self._list(event.job_id, event.format, event.engine)
                case _:
                    pass
        except ValueError as error:
            raise BadInputError(field="job_id", rule="format", message=str(error), job_id=_job_of(event)) from error

    def _passed(self, event: PieceChecked) -> None:
        """Note it, then publish whatever has its turn, and list what is there: a crash may have been in between."""
        piece = recalled(self._objects, event.request_hash, (PieceStitched,))
        if piece is None:
            log.warning("job %s: piece %s: the stitcher's answer is gone", event.job_id, event.piece)
            return
        if event.piece >= len(self._shelf(event.job_id).main):
            attempt, checked_us = event.attempt, event.checked_us
            note = Waiting(piece=event.piece, attempt=attempt, checked_us=checked_us, request_hash=event.request_hash)
            self._put(event.job_id, note.name, b"", _NOTE)
        published = True
        while published:
            published = self._next(event.job_id)
            self._list(event.job_id, piece.format, piece.engine)

    def _next(self, job_id: str) -> bool:
        """Publish the piece whose turn it is. False: it has not passed yet."""
        now = self._shelf(job_id)
        ready = [note for note in now.waiting if note.piece == len(now.main)]
        for note in sorted(ready, key=lambda note: -note.attempt):
            piece = recalled(self._objects, note.request_hash, (PieceStitched,))
            try:
                if piece is None or (piece.job_id, piece.piece) != (job_id, note.piece):
                    raise UnfitError("the stitcher's answer is gone")
                if any(redo.piece <= piece.piece and piece.finished_us <= redo.checked_us for redo in now.redone):
                    raise UnfitError("its segment, or one before it, is made again")
                if piece.start_frame != sum(segment.frames for segment in now.main):
                    raise UnfitError(f"begins at frame {piece.start_frame}")
                self._publish(piece)
            except (UnfitError, BlobError, CodedVideoError, FragmentError) as error:
                log.warning(
                    "job %s: piece %s, attempt %s is not published: %s", job_id, note.piece, note.attempt, error
                )
                continue
            done = [waiting for waiting in now.waiting if waiting.piece <= note.piece]
            self._objects.delete(live_key(job_id, waiting.name) for waiting in done)
            log.info("job %s: piece %s is live", job_id, note.piece)
            return True
        return False

    def _publish(self, piece: PieceStitched) -> None:
        """Every strand's segment; the video's own comes last, because it counts."""
        for rendition in piece.renditions:
            strand = rendition_strand(rendition.name)
            self._segment(piece, strand, rendition.video, rendition.codec, rendition.decoder_config)
        self._segment(piece, MAIN, piece.video, "h264", piece.decoder_config)

    def _segment(self, piece: PieceStitched, strand: str, video: Blob, codec: str, config: str) -> None:
        clock = clock_of(piece.format)
        with tempfile.TemporaryDirectory(dir=self._scratch, prefix="live-") as folder:
            path = self._objects.get_file(video, Path(folder))
            coded = examine(path, clock, codec)
            if coded.frames != piece.frames:
                raise UnfitError(f"{strand}: {coded.frames} frames, not {piece.frames}")
            made = fragment(path, coded, clock, number=piece.piece, start_frame=piece.start_frame)
        init = live_key(piece.job_id, init_name(strand))
        self._objects.put_new(init, made.init)
        if header(self._objects.read(init)).config_digest != config:
            raise UnfitError(f"{strand}: would not play behind what is published")
        segment = Segment(strand=strand, piece=piece.piece, start_frame=piece.start_frame, frames=piece.frames)
        self._objects.put_new(live_key(piece.job_id, segment.name), made.media)

    def _list(self, job_id: str, size: VideoFormat, engine: str) -> None:
        """Playlists of what is there. Whoever writes last has looked again since: of two writers none hides the other's."""
        limits = ENGINES.get(engine)
        listed: Shelf | None = None
        while (now := self._shelf(job_id)) != listed and now.main:
            rungs: list[Rung] = []
            for strand, segments in now.segments.items():
                shown, init = segments[: len(now.main)], live_key(job_id, init_name(strand))
                if not shown:
                    continue
                ended = now.ended and len(shown) == len(now.main)
                most = limits.max_segment_frames if limits else 0
                text = media_playlist(strand, shown, size, most, ended=ended)
                self._put(job_id, playlist_name(strand), text.encode(), PLAYLIST)
                rungs.append(Rung(strand=strand, header=header(self._objects.read(init)), segments=shown))
            self._put(job_id, MASTER, master_playlist(rungs, size).encode(), PLAYLIST)
            listed = now

    def _shelf(self, job_id: str) -> Shelf:
        return shelf(self._objects.listed(live_key(job_id, MASTER).rpartition("/")[0]))

    def _put(self, job_id: str, name: str, data: bytes, media_type: str) -> None:
        self._objects.put_bytes(live_key(job_id, name), data, media_type)


def _job_of(event: Event) -> str:
    return event.job_id if isinstance(event, PieceChecked | VideoFinished) else ""
