"""A checked video becomes VideoFinished, and its row small."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from schemas.records import Blob, JobState, Scores, Stage, Verdict, VideoFinished
from streams.jobs import Step, plan_of, present

_MAX_WARNINGS = 100


def finished(job: JobState, now_us: int) -> Step:
    """The end of a job whose video is there and has passed. The row keeps what JobChanged says of its plan."""
    plan = plan_of(job)
    warnings = [warning for piece in job.pieces for warning in piece.warnings]
    event = VideoFinished(
        job_id=job.job_id,
        content_hash=job.content_hash,
        tenant=job.tenant,
        verdict=Verdict.PASS,
        warnings=(*job.assembly.warnings, *warnings)[:_MAX_WARNINGS],
        video=present(job.assembly.video),
        format=plan.format,
        frames=plan.frames,
        duration_us=job.assembly.duration_us,
        tracks=job.assembly.tracks,
        scores=combined([present(piece.scores) for piece in job.pieces]),
        seams=tuple(present(piece.seam) for piece in job.pieces),
        engine=plan.engine,
        engine_version=job.engine_version,
        attempts=job.attempts,
        submitted_us=job.submitted_us,
        finished_us=now_us,
        renditions=job.assembly.renditions,
        arm=job.arm,
        subtitles=job.assembly.subtitles,
        reworked=job.reworked,
        live=live_of(present(job.assembly.video)),
    )
    small = replace(plan, engine_options={}, negative=(), shots=(), renditions=(), assets=())
    small = replace(small, sounds=(), cards=(), curtains=(), captions=None)
    return replace(job, stage=Stage.FINISHED, plan=small, segments=(), pieces=(), reworked=()), (event,)


def live_of(video: Blob) -> str:
    """Where the live playlist of that video's job is: `.../jobs/ID/live/` beside `.../jobs/ID/videos/`."""
    folder = video.uri.rpartition("/videos/")[0]
    return f"{folder}/live/master.m3u8" if folder else ""


def combined(scores: Sequence[Scores]) -> Scores:
    """Scores of the whole from those of its pieces: means weighted by frames, minima exact.

    The p1 and the worst second are the worst of any piece: lower bounds, as a second across a seam is not measured.
    """
    frames = sum(s.frames for s in scores)

    def mean(of: Callable[[Scores], float]) -> float:
        return sum(of(s) * s.frames for s in scores) / frames if frames else 0.0

    return Scores(
        frames=frames,
        psnr_y_mean=mean(lambda s: s.psnr_y_mean),
        psnr_y_p1=min(s.psnr_y_p1 for s in scores),
        psnr_y_min=min(s.psnr_y_min for s in scores),
        ssim_mean=mean(lambda s: s.ssim_mean),
        vmaf_mean=mean(lambda s: s.vmaf_mean),
        vmaf_p1=min(s.vmaf_p1 for s in scores),
        vmaf_min=min(s.vmaf_min for s in scores),
        vmaf_worst_second=min(s.vmaf_worst_second for s in scores),
        vmaf_model=_all(s.vmaf_model for s in scores),
        libvmaf_version=_all(s.libvmaf_version for s in scores),
    )


def _all(names: Iterable[str]) -> str:
    """The name they share. More than one: workers of two releases made the pieces."""
    return ", ".join(sorted(set(names)))
