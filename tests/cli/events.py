"""What the line announces about a job, with defaults."""

from infra.bus.writer import publish
from infra.settings import Settings
from schemas.headers import trace_root
from schemas.records import (
    Blob,
    JobChanged,
    JobProgress,
    PromptRefused,
    Scores,
    Seam,
    SeamKind,
    Stage,
    Verdict,
    VideoFinished,
    VideoFormat,
)
from schemas.topics import Event

FORMAT = VideoFormat(width=160, height=96, fps_num=24, fps_den=1)
SUBMITTED_US = 1_800_000_000_000_000
BLOB = Blob(uri="file:///nowhere/video.mp4", digest="sha256:0", size_bytes=3, media_type="video/mp4")


def say(settings: Settings, *events: Event) -> None:
    publish(settings, events, trace_root("test"))


def job(
    job_id: str = "film",
    stage: Stage = Stage.GENERATING,
    *,
    done: int = 0,
    content_hash: str = "abc",
    reason: str = "",
    submitted_us: int = SUBMITTED_US,
) -> JobChanged:
    return JobChanged(
        job_id=job_id,
        tenant="default",
        content_hash=content_hash,
        stage=stage,
        reason=reason,
        title="[bold]A fox[/bold]",
        engine="animatic",
        format=FORMAT,
        frames=48,
        segments=2,
        segments_generated=done,
        pieces_stitched=done,
        pieces_checked=done,
        attempts=0,
        lint=(),
        video=None,
        submitted_us=submitted_us,
        changed_us=SUBMITTED_US,
    )


def progress(job_id: str = "film", *, generated: int = 24) -> JobProgress:
    return JobProgress(
        job_id=job_id,
        stage=Stage.GENERATING,
        frames=48,
        frames_generated=generated,
        frames_checked=0,
        generate_fps=61.0,
        remaining_s=3.0,
        updated_us=SUBMITTED_US,
    )


def refused(job_id: str = "film", *, content_hash: str = "abc") -> PromptRefused:
    return PromptRefused(
        job_id=job_id,
        field="fps",
        rule="range",
        message="0 is not above 0",
        content_hash=content_hash,
        refused_us=SUBMITTED_US,
    )


def finished(job_id: str = "film", *, video: Blob = BLOB) -> VideoFinished:
    scores = Scores(
        frames=48,
        psnr_y_mean=41.0,
        psnr_y_p1=40.0,
        psnr_y_min=39.5,
        ssim_mean=0.99,
        vmaf_mean=95.0,
        vmaf_p1=92.0,
        vmaf_min=91.0,
        vmaf_worst_second=93.0,
        vmaf_model="vmaf_v0.6.1",
        libvmaf_version="3",
    )
    return VideoFinished(
        job_id=job_id,
        content_hash="abc",
        tenant="default",
        verdict=Verdict.PASS,
        warnings=(),
        video=video,
        format=FORMAT,
        frames=48,
        duration_us=2_000_000,
        tracks=(),
        scores=scores,
        seams=(
            Seam(kind=SeamKind.FIRST, overlap_frames=0),
            Seam(
                kind=SeamKind.CONTINUOUS, overlap_frames=8, offset_frames=1, shift_x_px=0.3, shift_y_px=0.4, gain=1.03
            ),
        ),
        engine="animatic",
        engine_version="1",
        attempts=0,
        submitted_us=SUBMITTED_US,
        finished_us=SUBMITTED_US + 9_000_000,
    )
