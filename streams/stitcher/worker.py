"""longtake.pieces.requested.v1 -> longtake.pieces.v1: align, blend, encode once."""

import logging
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from infra.assets.cache import AssetCache
from infra.bus.clients import Member
from infra.bus.ended import EndedJobs, following, unless_ended
from infra.bus.process import stop_on_signals
from infra.bus.requests import remembered
from infra.bus.work import ThreadWork
from infra.bus.worker import run_worker
from infra.objects import Objects
from infra.scratch import scratch_of
from infra.settings import Settings
from schemas.records import Blob, PieceRequested, PieceStitched, RenditionPiece, Seam, SeamKind, SeamRejected
from streams.cards import designed_frames
from streams.fetching import AssetFiles, StoredAssets
from streams.mp4 import MP4, try_key
from streams.stitcher.alignment import SeamError
from streams.stitcher.dressing import Dressing, burnt_lines, card_pictures
from streams.stitcher.inputs import Inputs, open_inputs
from streams.stitcher.join import Join, become, begin, continue_shot
from streams.stitcher.ladder import Rung
from streams.stitcher.limits import Limits
from streams.stitcher.piece import Look, Piece, make_piece
from streams.stitcher.segment import SegmentLostError

log = logging.getLogger(__name__)


def run(settings: Settings, slot: int) -> None:
    """Serve the topic until SIGTERM or SIGINT. Raises: BusError: start the process again."""
    member = Member(role="stitch", topics=(PieceRequested.topic,), slot=slot)
    objects = Objects(settings.objects)
    cache = AssetCache(settings, objects)
    stitch = Stitch(objects, scratch_of(settings, member.name), member.name, lambda: time.time_ns() // 1000, cache)
    ended = EndedJobs()
    work = ThreadWork(unless_ended(ended, remembered(objects, PieceRequested, stitch)), settings.slots)
    with following(settings, ended.add):
        run_worker(settings, member, work, stop_on_signals())


class Stitch:
    """Does what a request for a piece asks for. Piece and reference are stored before there is an event that points at them.

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

    def __call__(self, request: PieceRequested) -> PieceStitched | SeamRejected:
        """The piece, or that its segment cannot be joined or is lost: the same answer whenever it is asked.

        Raises: BadInputError for a request that no other try would meet.
        """
        started_us = self._now_us()
        with tempfile.TemporaryDirectory(dir=self._scratch, prefix="stitch-") as name:
            folder = Path(name)
            try:
                inputs = open_inputs(request, self._objects, folder)
                join = _join(request, inputs, Limits())
            except SegmentLostError as lost:
                log.warning("%s piece %s: %s", request.job_id, request.piece, lost)
                seam = Seam(kind=request.seam, overlap_frames=request.head_overlap)
                return self._rejected(request, SeamError(str(lost), seam), lost.blobs)
            except SeamError as rejection:
                log.info("%s piece %s rejected: %s", request.job_id, request.piece, rejection.reason)
                return self._rejected(request, rejection)
            look = Look(
                dressing=Dressing(request, burnt_lines(request, self._assets, folder)),
                cards=list(card_pictures(request, self._assets, folder)),
            )
            piece = make_piece(request, join, inputs.previous, look, folder, self._now_us)
            log.info("%s piece %s stitched, score %.2f", request.job_id, request.piece, join.seam.score)
            return self._stored(request, join, piece, started_us)

    def _rejected(self, request: PieceRequested, rejection: SeamError, lost: tuple[Blob, ...] = ()) -> SeamRejected:
        return SeamRejected(
            job_id=request.job_id,
            piece=request.piece,
            attempt=request.attempt,
            request_hash=request.request_hash,
            reason=rejection.reason,
            seam=rejection.seam,
            rejected_us=self._now_us(),
            worker=self._worker,
            lost=lost,
        )

    def _stored(self, request: PieceRequested, join: Join, piece: Piece, started_us: int) -> PieceStitched:
        video_key, reference_key = (
            try_key(request.job_id, kind, f"{request.piece}-{request.attempt}") for kind in ("pieces", "references")
        )
        return PieceStitched(
            job_id=request.job_id,
            piece=request.piece,
            attempt=request.attempt,
            request_hash=request.request_hash,
            format=request.format,
            start_frame=request.start_frame,
            frames=request.frames,
            video=self._objects.put_file(video_key, piece.video, MP4),
            reference=self._objects.put_file(reference_key, piece.reference, MP4),
            reference_head_context=piece.head_context,
            reference_tail_context=piece.tail_context,
            decoder_config=piece.coded.config_digest,
            seam=join.seam,
            correction=join.new.correction,
            encode=request.encode,
            generated_us=piece.generated_us,
            decoded_us=piece.decoded_us,
            encoded_us=piece.encoded_us,
            started_us=started_us,
            finished_us=self._now_us(),
            worker=self._worker,
            engine=request.engine,
            engine_version=request.engine_version,
            renditions=tuple(self._rendition(request, rung) for rung in piece.renditions),
            designed_frames=_designed(request),
        )

    def _rendition(self, request: PieceRequested, rung: Rung) -> RenditionPiece:
        key = try_key(request.job_id, "pieces", f"{request.piece}-{request.attempt}-{rung.rendition.name}")
        return RenditionPiece(
            name=rung.rendition.name,
            codec=rung.rendition.codec,
            width=rung.rendition.width,
            height=rung.rendition.height,
            video=self._objects.put_file(key, rung.path, MP4),
            decoder_config=rung.coded.config_digest,
        )


def _designed(request: PieceRequested) -> tuple[int, ...]:
    wiped = (request.start_frame, request.start_frame + request.head_overlap)
    runs = designed_frames(request.cards, request.curtains)
    return (*wiped, *runs) if request.seam is SeamKind.WIPE else runs


def _join(request: PieceRequested, inputs: Inputs, limits: Limits) -> Join:
    previous = inputs.previous
    if previous is None or request.seam in (SeamKind.FIRST, SeamKind.CUT):
        return begin(inputs.new, request.seam)
    if request.seam in (SeamKind.DISSOLVE, SeamKind.WIPE):
        return become(previous, inputs.new, request.seam, request.head_overlap)
    return continue_shot(previous, inputs.new, request.head_overlap, request.tail_overlap, limits)
