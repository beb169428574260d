"""Checking a piece, against the `ffmpeg-quality-metrics` package; writing its rows, against a bare `insert_arrow`; checking a long video, against a short one."""

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from ffmpeg_quality_metrics import FfmpegQualityMetrics

from infra.clickhouse import connect
from infra.inserts import Database, Rows
from infra.objects import Objects
from infra.settings import Settings
from qc_consumers.check import Bench, Check, Measured, bench_of
from qc_consumers.frames import frame_columns
from qc_consumers.metrics.packets import scan_packets
from qc_consumers.pieces import check_piece
from qc_consumers.proof import proof_of_piece
from qc_consumers.videos import check_video
from schemas.records import PieceStitched, VideoAssembled, VideoFormat
from streams.stitcher.encode import REFERENCE
from tests.qc.clips import DATA, FFMPEG, bunny, decoded, encoded, stitched, stored
from tests.qc.film import PIECE, joined

_SIZE = VideoFormat(width=640, height=360, fps_num=24, fps_den=1)
_FRAMES = 40
"""Of a piece: the animatic's segments are as long."""
_ROUNDS = 5
_INSERTS = 60
_FAR_FUTURE_US = 1 << 60
"""Records that are newer than the server: nothing to look for, as nearly always."""
_TOLERANCE = 0.01


def measure(settings: Settings) -> dict[str, float]:
    """`qc_ratio`: how many times as long the package takes for the same scores, without detectors, as it comes: it scores on one thread.
    `qc_per_core_ratio`: how many times as much processor time. `qc_same_threads_ratio`: with as many threads as ours. `rows_ratio`: speed of our inserts in that of bare ones. `video_check_ratio`: time
    for 120 s of video over that for 12 s."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bench = bench_of(
            settings.model_copy(update={"objects": (folder / "objects").as_uri(), "state": folder / "state"}),
            Database(settings),
            "benchmark",
        )
        event = _piece(bench.objects, folder)
        measured = check_piece(event, bench).measured
        return {
            **_scoring(event, bench, measured, folder),
            **_inserting(settings, event, measured),
            **_checking(bench, folder),
        }


def _scoring(event: PieceStitched, bench: Bench, measured: Measured, folder: Path) -> dict[str, float]:
    piece, reference = bench.objects.get_file(event.video, folder), bench.objects.get_file(event.reference, folder)
    ours_s: list[float] = []
    theirs_s: list[float] = []
    threaded_s: list[float] = []
    ours_cpu_s: list[float] = []
    theirs_cpu_s: list[float] = []
    package: dict[str, list[dict[str, float]]] = {}
    for _ in range(_ROUNDS):  # by turns: neighbours on the machine disturb all alike
        begun = _processor_s()
        ours_s.append(_seconds(lambda: check_piece(event, bench)))
        between = _processor_s()
        theirs_s.append(_seconds(lambda: package.update(_by_package(reference, piece, 0))))
        ours_cpu_s.append(between - begun)
        theirs_cpu_s.append(_processor_s() - between)
        threaded_s.append(_seconds(lambda: _by_package(reference, piece, bench.threads)))
    _assert_equal(measured, package)
    ours, theirs, threaded = (statistics.median(times) for times in (ours_s, theirs_s, threaded_s))
    return {
        "qc_fps": _FRAMES / ours,
        "package_fps": _FRAMES / theirs,
        "qc_ratio": theirs / ours,
        "qc_per_core_ratio": statistics.median(theirs_cpu_s) / statistics.median(ours_cpu_s),
        "qc_same_threads_ratio": threaded / ours,
    }


def _by_package(reference: Path, piece: Path, threads: int) -> dict[str, list[dict[str, float]]]:
    """0 threads: its default."""
    metrics = FfmpegQualityMetrics(str(reference), str(piece), ffmpeg_path=FFMPEG, threads=threads)
    options = {"model_path": "vmaf_v0.6.1.json", "n_threads": threads}
    return metrics.calculate(["psnr", "ssim", "vmaf"], options)  # pyright: ignore[reportArgumentType, reportReturnType]


def _assert_equal(measured: Measured, package: dict[str, list[dict[str, float]]]) -> None:
    quality = measured.quality
    assert quality is not None
    pairs = (
        (quality.psnr_y, package["psnr"], "psnr_y"),
        (quality.ssim, package["ssim"], "ssim_y"),
        (quality.vmaf, package["vmaf"], "vmaf"),
    )
    for ours, theirs, name in pairs:
        np.testing.assert_allclose(ours, [frame[name] for frame in theirs], atol=_TOLERANCE, err_msg=name)


def _inserting(settings: Settings, event: PieceStitched, measured: Measured) -> dict[str, float]:
    database, client = Database(settings), connect(settings)
    check = Check(measured=measured, checked_us=1, took_us=1, checker="benchmark")
    ours_s: list[float] = []
    bare_s: list[float] = []
    for number in range(-5, _INSERTS):
        rows = _rows(replace(event, job_id=f"ours-{number}"), check)
        bare = _arrow(_rows(replace(event, job_id=f"bare-{number}"), check))
        ours = _seconds(lambda rows=rows: database.insert(rows))
        theirs = _seconds(lambda bare=bare: client.insert_arrow("frame_log", bare, settings={"async_insert": 0}))
        if number >= 0:  # the first ones open connections
            ours_s.append(ours)
            bare_s.append(theirs)
    ours, bare = statistics.median(ours_s), statistics.median(bare_s)
    return {"rows_per_s": _FRAMES / ours, "bare_rows_per_s": _FRAMES / bare, "rows_ratio": bare / ours}


def _rows(event: PieceStitched, check: Check) -> Rows:
    columns = frame_columns(event, check, "0" * 32)
    return Rows(table="frame_log", key=("job_id", "piece", "attempt"), since_us=_FAR_FUTURE_US, columns=columns)


def _arrow(rows: Rows) -> pa.Table:
    return pa.table({name: list(column) for name, column in rows.columns.items()})


def _checking(bench: Bench, folder: Path) -> dict[str, float]:
    short, long = (_video(bench.objects, folder, seconds) for seconds in (12, 120))
    times = [
        (_seconds(lambda: check_video(short, bench)), _seconds(lambda: check_video(long, bench)))
        for _ in range(_ROUNDS)
    ]
    short_s, long_s = min(a for a, _ in times), min(b for _, b in times)
    return {"video_check_s": short_s, "video_check_120_s": long_s, "video_check_ratio": long_s / short_s}


def _video(objects: Objects, folder: Path, seconds: int) -> VideoAssembled:
    """Joined from checked pieces of one second."""
    first = stitched(objects, folder, bunny()[:PIECE], job_id=f"film-{seconds}")
    scan = scan_packets(objects.get_file(first.video, folder))
    pieces = [replace(first, piece=number, start_frame=number * PIECE) for number in range(seconds)]
    for piece in pieces:
        objects.put_manifest(proof_of_piece(piece, scan), b"checked")
    return joined(objects, folder, *pieces)


def _piece(objects: Objects, folder: Path) -> PieceStitched:
    frames = decoded(DATA / "bigbuckbunny.mp4", _SIZE)[:_FRAMES]
    video = encoded(folder / "piece.mp4", frames, _SIZE)
    reference = encoded(folder / "reference.mp4", frames, _SIZE, REFERENCE)
    template = stitched(objects, folder, bunny()[:_FRAMES])
    return replace(
        template,
        format=_SIZE,
        video=stored(objects, "piece.mp4", video),
        reference=stored(objects, "reference.mp4", reference),
    )


def _processor_s() -> float:
    """Of this process and of those it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
