"""A film of three pieces as Kafka brings it to QC, with everything that can happen on the way, and a short one by a newer engine.

`film`: segment 1 crashed once, its seam was rejected once; segment 2 was black once. `short`: one piece, no trouble.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from infra.bus.message import Message
from infra.inserts import Database
from infra.objects import Objects
from infra.settings import Settings
from qc_consumers.check import bench_of
from qc_consumers.pieces import CheckPieces
from qc_consumers.videos import CheckVideos
from schemas.codec import sealed
from schemas.records import (
    AssemblyRequested,
    Blob,
    FailureKind,
    JobChanged,
    Lint,
    PieceChecked,
    PieceRef,
    PieceStitched,
    Scores,
    Seam,
    SeamKind,
    SeamRejected,
    SegmentFailed,
    SegmentGenerated,
    Stage,
    Verdict,
    VideoAssembled,
    VideoFinished,
)
from schemas.topics import Event
from streams.assembler import Assemble
from tests.qc.clips import JOB, SIZE, START_US, bunny, ffmpeg, message, stitched, with_black

PIECE = 24
SEGMENT_US = 1_000_000
FADE = Seam(
    kind=SeamKind.CONTINUOUS,
    overlap_frames=4,
    offset_frames=1,
    offset_margin_db=9.0,
    shift_x_px=0.5,
    shift_y_px=-0.25,
    gain=1.04,
    psnr_before_db=28.0,
    psnr_after_db=41.0,
    luma_jump_ratio=1.5,
    warp_error_ratio=1.1,
    score=0.7,
    blend="fade",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Film:
    """Where its rows are, its messages in the order of their records, and what QC answered."""

    settings: Settings
    messages: tuple[Message, ...]
    answers: tuple[Event, ...]


def shown(settings: Settings, folder: Path) -> Film:
    """Run QC over the films, with rows in the ClickHouse of `settings`."""
    messages = tuple(message(event) for event in [*film(settings, folder), *short(settings, folder)])
    return Film(settings=settings, messages=messages, answers=tuple(checked(settings, messages)))


def checked(settings: Settings, messages: Sequence[Message]) -> Iterator[Event]:
    """What the two workers answer."""
    database = Database(settings)
    pieces = CheckPieces(bench_of(settings, database, "check-pieces-0"))
    videos = CheckVideos(bench_of(settings, database, "check-videos-0"))
    for each in messages:
        handler = pieces if each.topic in {PieceStitched.topic, SegmentGenerated.topic} else videos
        yield from handler(each)


def film(settings: Settings, folder: Path) -> Iterator[Event]:
    """The records of the job `film`."""
    objects, frames = Objects(settings.objects), bunny()[: 3 * PIECE]
    yield changed(Stage.GENERATING, 0)
    yield generated(0, 1)
    yield crashed(1, 1)
    yield generated(1, 2)
    first = stitched(objects, folder, frames[: PIECE + 1], context=(0, 1), engine="animatic", engine_version="1")
    yield first
    yield rejected(1, 1)
    yield generated(1, 3)
    own, late = frames[PIECE - 1 : 2 * PIECE + 1], START_US + 7_000_000
    second = stitched(
        objects, folder, own, context=(1, 1), piece=1, attempt=2, start_frame=PIECE, seam=FADE, finished_us=late
    )
    yield second
    yield generated(2, 1)
    black = with_black(frames[2 * PIECE - 1 :], [9])
    yield stitched(objects, folder, black, context=(1, 0), piece=2, start_frame=2 * PIECE)
    yield generated(2, 2)
    end = frames[2 * PIECE - 1 :]
    third = stitched(objects, folder, end, context=(1, 0), piece=2, attempt=2, start_frame=2 * PIECE)
    yield third
    yield changed(Stage.ASSEMBLING, 3)
    yield joined(objects, folder, first, second, third)
    yield replace(finished("1.0"), attempts=3)
    yield changed(Stage.FINISHED, 3)


def short(settings: Settings, folder: Path) -> Iterator[Event]:
    """The records of the job `short`."""
    objects, frames = Objects(settings.objects), bunny()[:PIECE]
    yield replace(changed(Stage.GENERATING, 0), job_id="short")
    yield replace(generated(0, 1), job_id="short", engine_version="1.1")
    (folder / "short").mkdir()
    only = stitched(objects, folder / "short", frames, job_id="short", request_hash="1" * 32)
    yield only
    yield joined(objects, folder, only)
    yield replace(finished("1.1"), job_id="short", finished_us=START_US + 4_000_000)
    yield replace(changed(Stage.FINISHED, 1), job_id="short")


def joined(objects: Objects, folder: Path, *pieces: PieceStitched) -> VideoAssembled:
    """The pieces as the assembler joins them."""
    request = AssemblyRequested(
        job_id=pieces[0].job_id,
        attempt=1,
        request_hash="",
        format=SIZE,
        frames=sum(piece.frames for piece in pieces),
        pieces=tuple(
            PieceRef(
                piece=piece.piece,
                start_frame=piece.start_frame,
                frames=piece.frames,
                video=piece.video,
                decoder_config=piece.decoder_config,
            )
            for piece in pieces
        ),
        requested_us=START_US,
    )
    return Assemble(objects, folder / "scratch", "assemble-0", lambda: START_US + 11_000_000)(sealed(request))


def faststart(source: Path, target: Path) -> Path:
    ffmpeg("-i", source, "-c", "copy", "-video_track_timescale", "24000", "-movflags", "+faststart", target)
    return target


def blob(name: str, shape: tuple[int, ...] = ()) -> Blob:
    return Blob(uri=f"file:///objects/{name}", digest="xxh3:" + "0" * 32, size_bytes=1000, media_type="x", shape=shape)


def generated(segment: int, attempt: int) -> SegmentGenerated:
    start = START_US + (segment + attempt - 1) * SEGMENT_US
    return SegmentGenerated(
        job_id=JOB,
        segment=segment,
        attempt=attempt,
        request_hash="3" * 32,
        start_frame=segment * PIECE,
        engine="animatic",
        engine_version="1.0",
        latents=blob(f"segments/{segment}-{attempt}-latents"),
        frames=blob(f"segments/{segment}-{attempt}-frames", (PIECE, SIZE.height, SIZE.width, 3)),
        restored=attempt > 1,
        started_us=start,
        finished_us=start + SEGMENT_US - segment * 100_000,
        denoise_us=600_000,
        decode_us=200_000,
        store_us=50_000,
        worker="generate-0",
    )


def crashed(segment: int, attempt: int) -> SegmentFailed:
    return SegmentFailed(
        job_id=JOB,
        segment=segment,
        attempt=attempt,
        request_hash="3" * 32,
        kind=FailureKind.CRASHED,
        reason="the engine's process ended with -9",
        retryable=True,
        engine="animatic",
        engine_version="1.0",
        failed_us=START_US + 1_500_000,
        worker="generate-0",
    )


def rejected(piece: int, attempt: int) -> SeamRejected:
    return SeamRejected(
        job_id=JOB,
        piece=piece,
        attempt=attempt,
        request_hash="4" * 32,
        reason="ghosting",
        seam=replace(FADE, score=-0.2, sharpness_ratio=0.6),
        rejected_us=START_US + 3_000_000,
        worker="stitch-0",
    )


def changed(stage: Stage, pieces: int) -> JobChanged:
    done = stage is Stage.FINISHED
    return JobChanged(
        job_id=JOB,
        tenant="studio",
        content_hash="5" * 32,
        stage=stage,
        reason="",
        title="A rabbit in a meadow",
        engine="animatic",
        format=SIZE,
        frames=3 * PIECE,
        segments=3,
        segments_generated=pieces,
        pieces_stitched=pieces,
        pieces_checked=pieces,
        attempts=pieces,
        lint=(Lint(shot=0, code="no_camera", message="no camera term"),),
        video=blob("videos/film.mp4") if done else None,
        submitted_us=START_US - 500_000,
        changed_us=START_US + pieces * SEGMENT_US + done * 9_000_000,
        arm="sharper.0/control",
    )


def finished(engine_version: str) -> VideoFinished:
    scores = Scores(
        frames=3 * PIECE,
        psnr_y_mean=41.0,
        psnr_y_p1=39.0,
        psnr_y_min=38.5,
        ssim_mean=0.98,
        vmaf_mean=95.0,
        vmaf_p1=92.0,
        vmaf_min=91.0,
        vmaf_worst_second=93.0,
        vmaf_model="vmaf_v0.6.1",
        libvmaf_version="3",
    )
    return VideoFinished(
        job_id=JOB,
        content_hash="5" * 32,
        tenant="studio",
        verdict=Verdict.PASS,
        warnings=(),
        video=blob("videos/film.mp4"),
        format=SIZE,
        frames=3 * PIECE,
        duration_us=3_000_000,
        tracks=(),
        scores=scores,
        seams=(FADE,),
        engine="animatic",
        engine_version=engine_version,
        attempts=0,
        submitted_us=START_US - 500_000,
        finished_us=START_US + 12_000_000,
    )


def verdicts(film: Film) -> list[tuple[int, int, Verdict]]:
    """Piece, attempt and verdict of each PieceChecked of `film`."""
    return [(e.piece, e.attempt, e.verdict) for e in film.answers if isinstance(e, PieceChecked) and e.job_id == JOB]
