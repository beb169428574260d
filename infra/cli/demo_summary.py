"""The numbers of the demo, each from where an outsider finds it, and whether they agree."""

from dataclasses import dataclass
from pathlib import Path

import av

from infra.cli.jobs import shift_px
from infra.cli.measured import FrameScores, Quality, Timing
from infra.objects import file_digest
from schemas.records import SeamKind, Verdict, VideoFinished

_SCORE_TOLERANCE = 0.01
"""Scores in ClickHouse are 32-bit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeamSummary:
    """Where a piece joins the one before it."""

    piece: int
    offset_frames: int
    shift_px: float
    gain: float
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoSummary:
    """`summary.json`. `frames` are those decoded from the file, the scores and rows are ClickHouse's, the rest is announced.

    `seams` has one entry less than there are pieces: nothing is before the first one. `wall_s` is the demo's own time, from
    the start of the stack to the finished report.
    """

    job_id: str
    verdict: Verdict
    frames: int
    fps: float
    duration_s: float
    video: str
    sha256: str
    pieces: int
    frame_rows: int
    distinct_frame_rows: int
    finished_events: int
    psnr_y_mean: float
    psnr_y_min: float
    vmaf_mean: float
    vmaf_min: float
    seams: tuple[SeamSummary, ...]
    engine_busy_share: float
    wall_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the demo got hold of."""

    announced: VideoFinished
    finished_events: int
    file: Path
    quality: Quality
    scores: FrameScores
    timing: Timing
    wall_s: float


def summarize(outcome: Outcome) -> DemoSummary:
    """The numbers of an outcome; the file's are measured on the file."""
    announced, quality = outcome.announced, outcome.quality
    frames, fps, duration_s = _measured(outcome.file)
    seams = tuple(
        SeamSummary(
            piece=piece,
            offset_frames=seam.offset_frames,
            shift_px=shift_px(seam.shift_x_px, seam.shift_y_px),
            gain=seam.gain,
            score=seam.score,
        )
        for piece, seam in enumerate(announced.seams)
        if seam.kind is not SeamKind.FIRST
    )
    return DemoSummary(
        job_id=announced.job_id,
        verdict=announced.verdict,
        frames=frames,
        fps=fps,
        duration_s=duration_s,
        video=str(outcome.file),
        sha256=file_digest(outcome.file, "sha256").removeprefix("sha256:"),
        pieces=len(set(outcome.scores.piece)),
        frame_rows=quality.frame_rows,
        distinct_frame_rows=quality.distinct_frame_rows,
        finished_events=outcome.finished_events,
        psnr_y_mean=quality.psnr_y_mean,
        psnr_y_min=quality.psnr_y_min,
        vmaf_mean=quality.vmaf_mean,
        vmaf_min=quality.vmaf_min,
        seams=seams,
        engine_busy_share=outcome.timing.engine_busy_share,
        wall_s=outcome.wall_s,
    )


def disagreements(summary: DemoSummary, announced: VideoFinished, frames: int) -> list[str]:
    """What does not fit together, in words; `frames` is what the storyboard asks for. Empty: all is well."""
    rate = announced.format.fps_num / announced.format.fps_den
    scores = announced.scores
    claims = [
        (summary.verdict is Verdict.PASS, f"the verdict is {summary.verdict.value}"),
        (summary.finished_events == 1, f"{summary.finished_events} VideoFinished were announced"),
        (f"sha256:{summary.sha256}" == announced.video.digest, "the file is not the one that was announced"),
        *((n == frames, f"{n} {what}, not {frames}") for n, what in _frame_counts(summary, announced)),
        (summary.pieces == len(announced.seams), f"{summary.pieces} pieces, {len(announced.seams)} announced"),
        (len(summary.seams) == summary.pieces - 1, f"{len(summary.seams)} seams of {summary.pieces} pieces"),
        (abs(summary.fps - rate) < 1e-6, f"the file has {summary.fps} fps, not {rate}"),
        (abs(summary.duration_s - frames / rate) < 0.0005, f"the file is {summary.duration_s} s long"),
        *(
            (abs(a - b) <= _SCORE_TOLERANCE, f"{name} is {a} in ClickHouse, {b} announced")
            for name, a, b in (
                ("psnr_y_mean", summary.psnr_y_mean, scores.psnr_y_mean),
                ("psnr_y_min", summary.psnr_y_min, scores.psnr_y_min),
                ("vmaf_mean", summary.vmaf_mean, scores.vmaf_mean),
                ("vmaf_min", summary.vmaf_min, scores.vmaf_min),
            )
        ),
    ]
    return [words for holds, words in claims if not holds]


def _frame_counts(summary: DemoSummary, announced: VideoFinished) -> list[tuple[int, str]]:
    return [
        (summary.frames, "frames decoded"),
        (announced.frames, "frames announced"),
        (summary.frame_rows, "rows of frames"),
        (summary.distinct_frame_rows, "different frames in the rows"),
    ]


def _measured(file: Path) -> tuple[int, float, float]:
    """Frames that decode, frames per second, seconds."""
    with av.open(str(file)) as container:
        stream = container.streams.video[0]
        frames = sum(1 for _ in container.decode(stream))
        seconds = float((stream.duration or 0) * (stream.time_base or 0))
        return frames, float(stream.average_rate or 0), seconds
