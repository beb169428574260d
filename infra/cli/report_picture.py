"""The picture of a report: contact sheet, VMAF and PSNR of every frame, seams, and the time each kind of work took."""

import io
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.transforms import Bbox

from infra.cli.jobs import shift_px
from infra.cli.report import Picture, Report
from schemas.records import Seam, SeamKind

VMAF_GATE, PSNR_GATE = 82.0, 38.0
INK, PAPER, FAINT, GRID = "#1d2430", "#ffffff", "#6b7686", "#e3e8ee"
_BLUE, _GREEN = "#2f6fde", "#1a9a6c"
_SEAMS = {
    SeamKind.FIRST: FAINT,
    SeamKind.CONTINUOUS: "#8b95a5",
    SeamKind.DISSOLVE: "#b06ad4",
    SeamKind.WIPE: "#7a5cd6",
    SeamKind.CUT: "#e08a1e",
}
_COLUMNS = 4
_STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "text.color": INK,
    "axes.edgecolor": GRID,
    "axes.labelcolor": FAINT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
}


def png(report: Report) -> bytes:
    """The whole report as a PNG."""
    rows = -(-len(report.sheet) // _COLUMNS)
    height, width = report.sheet[0][1].shape[:2]
    sheet_in = 14 / _COLUMNS * height / width * rows
    table_in = 0.26 * (len(report.video.seams) + 2)
    heights = [0.9, sheet_in, 2.1, 2.1, 1.5, table_in]
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(14, sum(heights) + 1.6), dpi=100)
        grid = figure.add_gridspec(
            len(heights), 1, height_ratios=heights, left=0.085, right=0.975, top=0.99, bottom=0.02, hspace=0.28
        )
        _header(figure.add_subplot(grid[0]), report)
        _sheet(figure, grid, report.sheet)
        _curve(figure.add_subplot(grid[2]), report, "VMAF", report.scores.vmaf, VMAF_GATE)
        _curve(figure.add_subplot(grid[3]), report, "PSNR-Y, dB", report.scores.psnr_y, PSNR_GATE)
        _time(figure.add_subplot(grid[4]), report)
        _seams(figure.add_subplot(grid[5]), report)
        out = io.BytesIO()
        figure.savefig(out, format="png")
    return out.getvalue()


def facts(report: Report) -> list[tuple[str, str]]:
    """The head of a report: name and value."""
    video, scores = report.video, report.video.scores
    return [
        ("verdict", video.verdict.value),
        ("length", f"{video.duration_us / 1e6:.3f} s, {video.frames} frames"),
        (
            "picture",
            f"{video.format.width}x{video.format.height} at {video.format.fps_num / video.format.fps_den:.6g} fps",
        ),
        ("VMAF", f"{scores.vmaf_mean:.2f}, worst frame {scores.vmaf_min:.2f}"),
        ("PSNR-Y", f"{scores.psnr_y_mean:.2f} dB, worst frame {scores.psnr_y_min:.2f}"),
        ("SSIM", f"{scores.ssim_mean:.4f}"),
        ("engine", f"{video.engine} {video.engine_version}, busy {report.timing.engine_busy_share:.0%}"),
        ("made in", f"{report.timing.wall_s:.1f} s"),
    ]


def seam_cells(piece: int, start: int, seam: Seam) -> list[str]:
    """A row of the seam table."""
    shift = shift_px(seam.shift_x_px, seam.shift_y_px)
    measured = seam.kind is SeamKind.CONTINUOUS
    return [
        str(piece),
        str(start),
        seam.kind.value,
        str(seam.overlap_frames),
        f"{seam.offset_frames:+d}" if measured else "",
        f"{shift:.2f}" if measured else "",
        f"{seam.gain:.4f}" if measured else "",
        f"{seam.psnr_before_db:.1f} > {seam.psnr_after_db:.1f}" if measured else "",
        seam.blend,
        f"{seam.score:.2f}",
    ]


SEAM_HEADS = ("piece", "frame", "seam", "overlap", "offset", "shift, px", "gain", "PSNR, dB", "blend", "score")


def _header(axes: Axes, report: Report) -> None:
    axes.axis("off")
    axes.text(0, 0.72, report.title[:90] or report.video.job_id, fontsize=19, fontweight="bold", va="center")
    axes.text(1, 0.72, report.video.job_id, fontsize=9, color=FAINT, ha="right", va="center")
    known = facts(report)
    for index, (name, value) in enumerate(known):
        x = index / len(known)
        axes.text(x, 0.16, name, fontsize=7.5, color=FAINT, va="center")
        axes.text(x, -0.16, value.replace(", ", "\n", 1), fontsize=8.5, va="top")


def _sheet(figure: Figure, grid: GridSpec, sheet: Sequence[tuple[int, Picture]]) -> None:
    rows = -(-len(sheet) // _COLUMNS)
    cells = grid[1].subgridspec(rows, _COLUMNS, wspace=0.02, hspace=0.03)
    for index, (number, picture) in enumerate(sheet):
        axes = figure.add_subplot(cells[index // _COLUMNS, index % _COLUMNS])
        axes.imshow(picture, aspect="auto", interpolation="lanczos")
        axes.axis("off")
        axes.text(
            0.985, 0.04, str(number), transform=axes.transAxes, ha="right", color="white", fontsize=8,
            bbox={"boxstyle": "round,pad=0.25", "facecolor": "#000000a0", "edgecolor": "none"},
        )  # fmt: skip


def _curve(axes: Axes, report: Report, name: str, values: Sequence[float], gate: float) -> None:
    fps = report.video.format.fps_num / report.video.format.fps_den
    seconds = [frame / fps for frame in report.scores.frame]
    colour = _BLUE if name == "VMAF" else _GREEN
    axes.fill_between(seconds, values, min(gate, *values) - 2, color=colour, alpha=0.10, linewidth=0)
    axes.plot(seconds, values, color=colour, linewidth=1.3)
    axes.axhline(gate, color="#d64545", linewidth=0.9, linestyle=(0, (4, 3)))
    axes.annotate(f"gate {gate:g}", (0, gate), xytext=(4, 3), textcoords="offset points", color="#d64545", fontsize=7.5)
    for start, seam in zip(report.starts, report.video.seams, strict=False):
        if start:
            axes.axvline(start / fps, color=_SEAMS[seam.kind], linewidth=1.0, linestyle=":", zorder=0)
            axes.annotate(
                seam.kind.value[:4], (start / fps, 1), xycoords=("data", "axes fraction"), xytext=(0, 2),
                textcoords="offset points", ha="center", fontsize=6.5, color=_SEAMS[seam.kind],
            )  # fmt: skip
    axes.set_xlim(0, seconds[-1] + 1 / fps)
    axes.set_ylim(min(gate, *values) - 2, max(values) + (1 if name == "VMAF" else 0.6))
    axes.set_ylabel(name)
    axes.grid(axis="y", color=GRID, linewidth=0.7)
    axes.xaxis.set_major_formatter("{x:g} s")
    axes.tick_params(length=0)


def _time(axes: Axes, report: Report) -> None:
    steps = report.timing.steps[::-1]
    for row, step in enumerate(steps):
        spans = [(begin, end - begin) for begin, end in step.spans_s]
        axes.broken_barh(spans, (row - 0.3, 0.6), facecolor=_BLUE, alpha=0.35, edgecolor=PAPER, linewidth=0.8)
        last_s = max(end for _, end in step.spans_s)
        axes.text(last_s, row, f"  {step.work_s:.1f} s of work", va="center", fontsize=8, color=FAINT)
    axes.set_yticks(range(len(steps)), [step.name for step in steps], color=INK)
    axes.set_xlim(0, report.timing.wall_s * 1.1)
    axes.set_ylim(-0.6, len(steps) - 0.4)
    axes.set_xlabel("seconds after the prompt was submitted")
    axes.tick_params(length=0)
    axes.spines["left"].set_visible(False)


def _seams(axes: Axes, report: Report) -> None:
    axes.axis("off")
    rows = [seam_cells(i, s, seam) for i, (s, seam) in enumerate(zip(report.starts, report.video.seams, strict=False))]
    grid = axes.table(cellText=rows, colLabels=SEAM_HEADS, loc="upper center", cellLoc="center", bbox=Bbox.unit())
    grid.auto_set_font_size(False)
    grid.set_fontsize(8.5)
    for (row, column), cell in grid.get_celld().items():
        cell.set_edgecolor(GRID)
        cell.set_linewidth(0.6)
        cell.visible_edges = "B"
        cell.get_text().set_color(FAINT if row == 0 else INK)
        if row and column == SEAM_HEADS.index("seam"):
            cell.get_text().set_color(_SEAMS[report.video.seams[row - 1].kind])
