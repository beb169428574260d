"""Events of a job as the line publishes them, with defaults. Times are microseconds after an arbitrary start."""

from schemas.records import (
    Blob,
    FailureKind,
    JobChanged,
    PieceChecked,
    Scores,
    SegmentFailed,
    SegmentGenerated,
    Stage,
    Verdict,
    VideoFormat,
)

START_US = 1_800_000_000_000_000
SECOND_US = 1_000_000
_BLOB = Blob(uri="file:///objects/x", digest="xxh3:0", size_bytes=1, media_type="application/x-safetensors")


def generated(
    job_id: str = "film",
    segment: int = 0,
    *,
    attempt: int = 1,
    frames: int = 40,
    start_frame: int = 0,
    started_s: float = 0.0,
    finished_s: float = 2.0,
    busy_s: float = 1.0,
    version: str = "1",
) -> SegmentGenerated:
    return SegmentGenerated(
        job_id=job_id,
        segment=segment,
        attempt=attempt,
        request_hash="0",
        start_frame=start_frame,
        engine="animatic",
        engine_version=version,
        latents=_BLOB,
        frames=Blob(uri="file:///objects/y", digest="xxh3:1", size_bytes=1, media_type="x/y", shape=(frames, 8, 8, 3)),
        restored=False,
        started_us=at(started_s),
        finished_us=at(finished_s),
        denoise_us=int(busy_s * SECOND_US * 0.75),
        decode_us=int(busy_s * SECOND_US * 0.25),
        store_us=5,
        worker="test",
    )


def failed(job_id: str = "film", segment: int = 0, *, attempt: int = 1, failed_s: float = 1.0) -> SegmentFailed:
    return SegmentFailed(
        job_id=job_id,
        segment=segment,
        attempt=attempt,
        request_hash="0",
        kind=FailureKind.CRASHED,
        reason="killed",
        retryable=True,
        engine="animatic",
        engine_version="1",
        failed_us=at(failed_s),
        worker="test",
    )


def changed(
    job_id: str = "film",
    *,
    stage: Stage = Stage.GENERATING,
    frames: int = 288,
    segments_generated: int = 0,
    changed_s: float = 0.0,
) -> JobChanged:
    return JobChanged(
        job_id=job_id,
        tenant="default",
        content_hash="0",
        stage=stage,
        reason="",
        title="",
        engine="animatic",
        format=VideoFormat(width=64, height=36, fps_num=24, fps_den=1),
        frames=frames,
        segments=9,
        segments_generated=segments_generated,
        pieces_stitched=0,
        pieces_checked=0,
        attempts=0,
        lint=(),
        video=None,
        submitted_us=at(0),
        changed_us=at(changed_s),
    )


def checked(
    job_id: str = "film", piece: int = 0, *, attempt: int = 1, frames: int = 32, checked_s: float = 3.0
) -> PieceChecked:
    scores = Scores(
        frames=frames,
        psnr_y_mean=45.0,
        psnr_y_p1=44.0,
        psnr_y_min=43.0,
        ssim_mean=0.99,
        vmaf_mean=97.0,
        vmaf_p1=95.0,
        vmaf_min=94.0,
        vmaf_worst_second=95.0,
        vmaf_model="vmaf_v0.6.1",
        libvmaf_version="3",
    )
    return PieceChecked(
        job_id=job_id,
        piece=piece,
        attempt=attempt,
        request_hash="0",
        verdict=Verdict.PASS,
        findings=(),
        scores=scores,
        checked_us=at(checked_s),
        worker="test",
    )


def at(seconds: float) -> int:
    return START_US + int(seconds * SECOND_US)
