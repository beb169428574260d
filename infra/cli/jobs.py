"""Commands that read about jobs and act on them: jobs, show, fetch, cancel, retry."""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from infra.bus.writer import publish
from infra.cli.errors import CliError, Exit
from infra.cli.lookup import JobView, finished_video, job_view, last_jobs
from infra.cli.output import Cell, clipped, console, moment, now_us, print_json, say, table
from infra.cli.reach import reach
from infra.objects import Objects, file_digest
from schemas.headers import trace_root
from schemas.records import Blob, CancelRequested, JobChanged, RetryRequested, Stage, Verdict, VideoFinished

_FIRST_MISSING = 2**31 - 1
_AGAIN = {Verdict.REENCODE: "encoded again", Verdict.REGENERATE: "generated again"}

JobId = Annotated[str, typer.Argument(metavar="JOB")]
Json = Annotated[bool, typer.Option("--json", help="For programs.")]


def jobs(
    ctx: typer.Context,
    stage: Annotated[Stage | None, typer.Option(help="Only jobs in this stage.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="The newest ones.")] = 50,
    as_json: Json = False,
) -> None:
    """List jobs, the newest first."""
    found = [job for job in last_jobs(reach(ctx, "kafka")) if stage in (None, job.stage)][:limit]
    if as_json:
        print_json(found)
        return
    rows = [
        (
            job.job_id,
            job.stage.value,
            f"{job.segments_generated}/{job.segments}",
            f"{job.pieces_checked}/{job.segments}",
            job.frames,
            f"{job.format.width}x{job.format.height}",
            job.engine,
            moment(job.submitted_us),
            clipped(job.reason or job.title),
        )
        for job in found
    ]
    columns = ("job", "stage", "segments", "pieces", "frames", "size", "engine", "submitted", "")
    console().print(table("", columns, rows))


def show(ctx: typer.Context, job_id: JobId, as_json: Json = False) -> None:
    """Show all about one job: state, remarks on its prompt, its video, its seams."""
    view = job_view(reach(ctx, "kafka"), job_id)
    if as_json:
        print_json(view)
        return
    if view.job:
        _show_job(view.job)
    for refused in view.refusals:
        say(f"refused      {moment(refused.refused_us)} {refused.field}: {refused.message} [{refused.rule}]")
    if view.video:
        _show_video(view.video)


def fetch(
    ctx: typer.Context,
    job_id: JobId,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Default: JOB.mp4 here.")] = None,
    rendition: Annotated[str | None, typer.Option(help="The one for this device; default: JOB-RENDITION.mp4.")] = None,
) -> None:
    """Copy a finished video here, checked against its sha256, and the file of its subtitles if there is one."""
    settings = reach(ctx, "kafka", "objects")
    video = finished_video(settings, job_id)
    blob = _video_for(video, rendition)
    target = output or Path(f"{job_id}-{rendition}.mp4" if rendition else f"{job_id}.mp4")
    part = target.with_name(target.name + ".part")
    with TemporaryDirectory() as folder:
        shutil.copyfile(Objects(settings.objects).get_file(blob, Path(folder)), part)
    if file_digest(part, "sha256") != blob.digest:
        part.unlink()
        raise CliError(Exit.FAILED, f"the copy of {blob.uri} is damaged: is the disk full?")
    part.replace(target)
    say(f"{target}  {blob.size_bytes:,} bytes  {blob.digest}")
    if video.subtitles and not rendition:
        beside = target.with_suffix(".vtt")
        beside.write_bytes(Objects(settings.objects).get_bytes(video.subtitles))
        say(f"{beside}  {video.subtitles.size_bytes:,} bytes")


def cancel(
    ctx: typer.Context, job_id: JobId, reason: Annotated[str, typer.Option(help="Is shown with the job.")] = ""
) -> None:
    """Stop a job. It keeps what is done, so that it can be retried."""
    settings = reach(ctx, "kafka")
    _stage_of(job_view(settings, job_id), {Stage.QUEUED, Stage.GENERATING, Stage.ASSEMBLING, Stage.CHECKING}, job_id)
    event = CancelRequested(job_id=job_id, reason=reason, requested_us=now_us())
    publish(settings, [event], trace_root(job_id))
    say(f"asked to cancel {job_id}")


def retry(
    ctx: typer.Context,
    job_id: JobId,
    from_segment: Annotated[
        int | None,
        typer.Option(
            min=0, max=_FIRST_MISSING, help="Generate again from this one; not given: from the first missing one."
        ),
    ] = None,
) -> None:
    """Run a failed or cancelled job again. What it has is kept, but for segments from --from-segment on."""
    settings = reach(ctx, "kafka")
    _stage_of(job_view(settings, job_id), {Stage.FAILED, Stage.CANCELLED}, job_id)
    first = _FIRST_MISSING if from_segment is None else from_segment
    event = RetryRequested(job_id=job_id, from_segment=first, requested_us=now_us())
    publish(settings, [event], trace_root(job_id))
    say(f"asked to retry {job_id}")


def seam_rows(video: VideoFinished) -> list[tuple[Cell, ...]]:
    """One row of `SEAM_COLUMNS` per piece."""
    return [
        (
            piece,
            seam.kind.value,
            seam.offset_frames,
            shift_px(seam.shift_x_px, seam.shift_y_px),
            f"{seam.gain:.4f}",
            seam.psnr_after_db,
            seam.score,
            seam.blend,
        )
        for piece, seam in enumerate(video.seams)
    ]


SEAM_COLUMNS = ("piece", "seam", "offset", "shift px", "gain", "psnr after", "score", "blend")


def shift_px(x: float, y: float) -> float:
    """Length of a shift."""
    return (x * x + y * y) ** 0.5


def _video_for(video: VideoFinished, rendition: str | None) -> Blob:
    if rendition is None:
        return video.video
    found = next((each for each in video.renditions if each.name == rendition), None)
    if found is None:
        there = ", ".join(each.name for each in video.renditions) or "none"
        raise CliError(Exit.NOT_FOUND, f"{video.job_id} has no rendition {rendition!r}; there are: {there}")
    return found.video


def _stage_of(view: JobView, wanted: set[Stage], job_id: str) -> None:
    stage = view.job.stage if view.job else None
    if stage not in wanted:
        raise CliError(Exit.REFUSED, f"{job_id} is {stage.value if stage else 'refused'}: nothing to do")


def _show_job(job: JobChanged) -> None:
    seconds = job.frames * job.format.fps_den / job.format.fps_num
    say(f"job          {job.job_id}  ({job.tenant}, content {job.content_hash})")
    say(f"stage        {job.stage.value} since {moment(job.changed_us)}" + (f": {job.reason}" if job.reason else ""))
    say(f"title        {job.title}")
    say(
        f"video        {seconds:.3f} s, {job.frames} frames, {job.format.width}x{job.format.height} at "
        f"{job.format.fps_num}/{job.format.fps_den} fps, engine {job.engine}"
    )
    say(
        f"done         segments {job.segments_generated}/{job.segments}, stitched {job.pieces_stitched}, "
        f"checked {job.pieces_checked}, again {job.attempts}"
    )
    for lint in job.lint:
        say(f"remark       {'' if lint.shot < 0 else f'shot {lint.shot}: '}{lint.message} [{lint.code}]")


def _show_video(video: VideoFinished) -> None:
    scores = video.scores
    say(f"file         {video.video.uri}")
    say(f"             {video.video.size_bytes:,} bytes, {video.video.digest}")
    if video.live:
        say(f"live         {video.live}")
    say(
        f"quality      PSNR-Y {scores.psnr_y_mean:.2f} dB (worst frame {scores.psnr_y_min:.2f}), VMAF "
        f"{scores.vmaf_mean:.2f} (worst {scores.vmaf_min:.2f}), SSIM {scores.ssim_mean:.4f}, {scores.vmaf_model}"
    )
    for each in video.renditions:
        say(f"rendition    {each.name}: {each.width}x{each.height}, {each.codec}, {each.video.size_bytes:,} bytes")
    for rework in video.reworked:
        what = (
            "joined again" if rework.index < 0 else f"piece {rework.index} {_AGAIN.get(rework.verdict, rework.verdict)}"
        )
        say(f"reworked     {what}: {rework.finding.gate} was {rework.finding.value:g} ({rework.finding.limit:g})")
    for finding in video.warnings:
        say(
            f"warning      {finding.gate} at frame {finding.frame}: {finding.value:g} ({finding.limit:g}) {finding.detail}"
        )
    console().print(table("", SEAM_COLUMNS, seam_rows(video)))
