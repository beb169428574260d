"""`longtake link`: a finished video for somebody who has no credentials."""

from typing import Annotated

import typer

from infra.cli.lookup import finished_video
from infra.cli.output import say
from infra.cli.reach import reach
from infra.objects import Objects

_LONGEST_H = 7 * 24
"""What S3's signatures allow."""


def link(
    ctx: typer.Context,
    job_id: Annotated[str, typer.Argument(metavar="JOB")],
    hours: Annotated[float, typer.Option(min=0.01, max=_LONGEST_H, help="How long it is good for.")] = 1.0,
) -> None:
    """Print a signed URL of a finished video. Whoever has it can download the video until then: treat it as a secret."""
    settings = reach(ctx, "kafka", "objects")
    video = finished_video(settings, job_id).video
    say(Objects(settings.objects).link(video, round(hours * 3600)))
