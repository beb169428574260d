"""`longtake report`: one picture or page about a finished job."""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import av
import numpy as np
import typer
from numpy.typing import NDArray

from infra.cli.errors import CliError, Exit
from infra.cli.lookup import finished_video, job_view
from infra.cli.measured import FrameScores, Timing, frame_scores, timing
from infra.cli.output import say
from infra.cli.reach import reach
from infra.cli.report_json import json_report, page
from infra.clickhouse import connect
from infra.objects import Objects
from infra.settings import Settings
from schemas.records import Lint, VideoFinished

SHEET_FRAMES = 12
Picture = NDArray[np.uint8]
"""[H, W, 3] RGB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All that a report shows."""

    title: str
    remarks: tuple[Lint, ...]
    """On the prompt."""
    video: VideoFinished
    starts: tuple[int, ...]
    """First frame of every piece."""
    scores: FrameScores
    timing: Timing
    sheet: tuple[tuple[int, Picture], ...]
    """Frame numbers and frames, evenly spread."""


def report(
    ctx: typer.Context,
    job_id: Annotated[str, typer.Argument(metavar="JOB")],
    output: Annotated[Path, typer.Option("--output", "-o", help="A .png, .html or .json file.")],
) -> None:
    """Draw a job: contact sheet, quality of every frame with the seams marked, where the time went. Or all of it as JSON."""
    if output.suffix not in (".png", ".html", ".json"):
        raise CliError(Exit.USAGE, f"--output ends in .png, .html or .json: {output}")
    if output.suffix == ".json":
        output.write_bytes(machine_readable(reach(ctx, "kafka", "clickhouse"), job_id))
    else:
        write_report(gather(reach(ctx, "kafka", "clickhouse", "objects"), job_id), output)
    say(str(output))


def write_report(what: Report, output: Path) -> None:
    """As a picture or, by the suffix, as one self-contained page."""
    from infra.cli.report_page import page as html  # matplotlib takes half a second to load: only when it draws
    from infra.cli.report_picture import png

    if output.suffix == ".html":
        output.write_text(html(what), encoding="utf-8")
    else:
        output.write_bytes(png(what))


def machine_readable(settings: Settings, job_id: str) -> bytes:
    """The report for programs. Raises: CliError if the job has no finished video, or no rows yet."""
    video, client = finished_video(settings, job_id), connect(settings)
    if not client.query("SELECT 1 FROM videos WHERE job_id = {job:String}", {"job": job_id}).result_rows:
        raise CliError(Exit.NOT_FOUND, f"ClickHouse has no video of {job_id!r}")
    return page(json_report(video, job_view(settings, job_id).job, client))


def gather(settings: Settings, job_id: str) -> Report:
    """Read everything a report shows. Raises: CliError if the job has no finished video."""
    video = finished_video(settings, job_id)
    job = job_view(settings, job_id).job
    client = connect(settings)
    scores = frame_scores(client, job_id)
    if not scores.frame:
        raise CliError(Exit.NOT_FOUND, f"ClickHouse has no frames of {job_id!r}")
    with TemporaryDirectory() as folder:
        sheet = contact_sheet(Objects(settings.objects).get_file(video.video, Path(folder)), video.frames)
    starts = tuple(scores.frame[scores.piece.index(piece)] for piece in sorted(set(scores.piece)))
    return Report(
        title=job.title if job else "",
        remarks=job.lint if job else (),
        video=video,
        starts=starts,
        scores=scores,
        timing=timing(client, job_id),
        sheet=sheet,
    )


def contact_sheet(file: Path, frames: int) -> tuple[tuple[int, Picture], ...]:
    """Frames from the first to the last one, evenly spread."""
    wanted = {round(index * (frames - 1) / (SHEET_FRAMES - 1)) for index in range(SHEET_FRAMES)}
    with av.open(str(file)) as container:
        decoded = enumerate(container.decode(video=0))
        return tuple(
            (index, np.asarray(frame.to_ndarray(format="rgb24"), np.uint8))
            for index, frame in decoded
            if index in wanted
        )
