"""`make matrix`: every resolution x codec x rate control, encoded in pieces, joined, probed and gated; docs/matrix.md says how it went."""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from pathlib import Path

import av
import numpy as np
from av.video.reformatter import Interpolation

from qc_consumers.gates import Claim, Facts, Seen, file_evidence, worst
from qc_consumers.metrics.container import scan_container
from qc_consumers.metrics.packets import scan_packets
from qc_consumers.metrics.pictures import watch
from qc_consumers.profile import Profile, load_profiles, profile_for
from qc_consumers.video_gates import container_evidence, timeline_evidence
from schemas.records import Blob, Correction, Finding, Rendition, Track, Verdict, VideoAssembled, VideoFormat
from streams.encoding.coding import coding_of
from streams.encoding.levels import LEVELS, faults
from streams.encoding.presets import PROFILES
from streams.joining import Part, join
from streams.mp4 import CodedVideo, clock_of, examine
from streams.stitcher.encode import Encoder
from streams.stitcher.picture import Frame, render, rounded
from tests.stitcher.clips import shot

PAGE = Path("docs") / "matrix.md"
SIZES = ((426, 240), (640, 360), (960, 540), (1280, 720), (1920, 1080), (540, 960), (540, 540), (7680, 4320))
CODECS = (("h264", 8), ("h264", 10), ("hevc", 8), ("hevc", 10), ("av1", 8), ("av1", 10))
RATES = ("crf", "capped_crf", "vbr", "cbr")
PIECES = (30, 20)
"""Frames of each: the first has more than one group of pictures."""
_LARGEST = 4096
"""Pixels on a side: beyond it all cells are refused."""
_GOP = 24
_FPS = Fraction(24)
_CRF = {"h264": 24.0, "hevc": 26.0, "av1": 35.0}
_SPEED = {"h264": "veryfast", "hevc": "superfast", "av1": "10"}
_BITS_PER_PIXEL = {"h264": 0.12, "hevc": 0.09, "av1": 0.09}
_NOTHING = Blob(uri="", digest="", size_bytes=0, media_type="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One way to encode."""

    width: int
    height: int
    codec: str
    bits: int
    rate_control: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a cell: a reason why it was refused, or what the gates say of a video of two pieces."""

    cell: Cell
    refused: str = ""
    codec: str = ""
    kbps: float = 0.0
    psnr_y: float = 0.0
    """Of the decoded video against the pictures at its size."""
    findings: tuple[Finding, ...] = ()
    cpu_s: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether no gate wants anything done."""
        return not self.refused and worst(self.findings) is Verdict.PASS


def cells() -> Iterator[Cell]:
    """All of them."""
    for (width, height), (codec, bits), rate_control in product(SIZES, CODECS, RATES):
        yield Cell(width=width, height=height, codec=codec, bits=bits, rate_control=rate_control)


def rendition_of(cell: Cell) -> Rendition | str:
    """With the lowest level that has room for it; or why there is none."""
    profiles = PROFILES.get((cell.codec, cell.bits))
    if profiles is None:
        return f"{cell.codec} with {cell.bits} bits: hardly any device decodes it"
    kbps = round(cell.width * cell.height * _FPS * Fraction(_BITS_PER_PIXEL[cell.codec]) / 1000)
    needs_crf = cell.rate_control in ("crf", "capped_crf")
    has_peak = cell.rate_control == "capped_crf" or (cell.rate_control == "vbr" and cell.codec != "av1")
    rendition = Rendition(
        name="cell",
        codec=cell.codec,
        bits=cell.bits,
        profile=profiles[-1],
        level="",
        width=cell.width,
        height=cell.height,
        rate_control=cell.rate_control,
        crf=_CRF[cell.codec] if needs_crf else 0.0,
        bitrate_kbps=0 if needs_crf else kbps,
        peak_kbps=kbps * 3 // 2 if has_peak else 0,
        speed=_SPEED[cell.codec],
        gop_frames=_GOP,
        tile_columns=2 if cell.codec == "av1" and cell.width >= 1280 else 1,
        nvenc=False,
    )
    reason = ""
    for level in LEVELS[cell.codec]:
        found = replace(rendition, level=level)
        reason = "; ".join(fault.message for fault in faults(found, _FPS))
        if not reason:
            return found
    return reason


def tried(cell: Cell, pictures: Sequence[Frame], profiles: Sequence[Profile]) -> Outcome:
    """Encode the pictures as two pieces, join them, look at what came out. Raises: CodedVideoError if a piece is none."""
    rendition = rendition_of(cell)
    if isinstance(rendition, str):
        return Outcome(cell=cell, refused=rendition)
    size = VideoFormat(width=cell.width, height=cell.height, fps_num=_FPS.numerator, fps_den=_FPS.denominator)
    clock, started = clock_of(size), time.process_time()
    with tempfile.TemporaryDirectory() as name:
        folder, parts = Path(name), list[Part]()
        for index, frames in enumerate(PIECES):
            start = sum(PIECES[:index])
            path = folder / f"{index}.mp4"
            with Encoder(path, size, coding_of(rendition), lambda: 0) as encoder:
                for picture in pictures[start : start + frames]:
                    encoder.write(picture)
                encoder.finish()
            parts.append(Part(path=path, start_frame=start, coded=examine(path, clock, cell.codec)))
        cpu_s = time.process_time() - started
        if len({part.coded.config for part in parts}) > 1:
            raise RuntimeError(f"{cell}: the decoder configurations of its pieces differ")
        video = folder / "video.mp4"
        join(parts, clock, video)
        coded = examine(video, clock, cell.codec)
        return Outcome(
            cell=cell,
            codec=coded.codec_string,
            kbps=video.stat().st_size * 8 / 1000 / float(sum(PIECES) / _FPS),
            psnr_y=_psnr_y(video, pictures, cell),
            findings=tuple(_judged(video, size, coded, profiles)),
            cpu_s=cpu_s,
        )


def _judged(video: Path, size: VideoFormat, coded: CodedVideo, profiles: Sequence[Profile]) -> Iterator[Finding]:
    """What the gates of a rendition say."""
    scan, container, frames = scan_packets(video), scan_container(video), sum(PIECES)
    duration_us = round(frames / _FPS * 1_000_000)
    event = VideoAssembled(
        job_id="matrix",
        attempt=1,
        request_hash="",
        format=size,
        frames=frames,
        duration_us=duration_us,
        video=_NOTHING,
        tracks=(Track(kind="video", codec=coded.codec, duration_us=duration_us, samples=frames),),
        piece_starts=tuple(sum(PIECES[:index]) for index in range(len(PIECES))),
        gop_frames=_GOP,
        started_us=0,
        finished_us=0,
        worker="matrix",
    )
    claim = Claim(start_frame=0, frames=frames, format=size)
    facts = Facts(claim=claim, scan=scan, pictures=watch(video, (), step=8, threads=1), seen=Seen())
    evidence = (
        *container_evidence(event, container),
        *timeline_evidence(event, facts, container),
        *file_evidence(facts, profile_for(profiles, scan.transfer)),
    )
    yield from profile_for(profiles, scan.transfer).judged(evidence)


def _psnr_y(video: Path, pictures: Sequence[Frame], cell: Cell) -> float:
    """Mean over the frames, in dB, of 8 bits."""
    found: list[float] = []
    with av.open(str(video)) as container:
        for frame, picture in zip(container.decode(video=0), pictures, strict=True):
            original = av.VideoFrame.from_ndarray(picture, format="yuv420p")
            scaled = original.reformat(cell.width, cell.height, "yuv420p", interpolation=Interpolation.LANCZOS)
            shown = frame.reformat(format="yuv420p")
            luma = [each.to_ndarray()[: cell.height].astype(np.float32) for each in (scaled, shown)]
            error = luma[0] - luma[1]
            found.append(10 * np.log10(255**2 / max(float(np.square(error).mean()), 1e-6)))
    return float(np.mean(found))


def pictures_of(width: int, height: int) -> list[Frame]:
    """A real clip: enough frames for all pieces."""
    frames = shot(0, sum(PIECES), width=width, height=height)
    return [rounded(render(frame, Correction())) for frame in frames]


def page(outcomes: Sequence[Outcome]) -> str:
    """docs/matrix.md."""
    made = [outcome for outcome in outcomes if not outcome.refused]
    passed = sum(outcome.passed for outcome in made)
    lines = [
        "# Encoding matrix\n",
        "Written by `make matrix`; do not edit. Every cell: 50 frames of Big Buck Bunny in two pieces (30 and 20 frames, GOP of 24),",
        "encoded as renditions are, joined by copying, probed, decoded and judged by the gates of renditions. PSNR-Y is against the",
        "same pictures at that size. Software encoders: libx264, libx265, SVT-AV1. Rates of VBR and CBR are for much longer videos than two",
        "seconds. CPU seconds are of one run on one machine.\n",
        f"{len(outcomes)} cells: {len(made)} made, {passed} passed, {len(outcomes) - len(made)} refused.\n",
        "| size | codec | rate control | verdict | codec string | kbit/s | PSNR-Y dB | CPU s |",
        "|---|---|---|---|---|---|---|---|",
        *(_row(outcome) for outcome in outcomes),
        "",
    ]
    return "\n".join(lines)


def _row(outcome: Outcome) -> str:
    cell = outcome.cell
    name = f"| {cell.width}x{cell.height} | {cell.codec} {cell.bits} bit | {cell.rate_control} |"
    if outcome.refused:
        return f"{name} refused: {outcome.refused} | | | | |"
    said = "; ".join(f"{f.verdict}: {f.gate}" for f in outcome.findings if f.verdict is not Verdict.PASS) or "pass"
    warned = ", ".join(sorted({f.gate for f in outcome.findings if f.verdict is Verdict.PASS}))
    verdict = f"{said} (warns: {warned})" if warned else said
    return f"{name} {verdict} | `{outcome.codec}` | {outcome.kbps:.0f} | {outcome.psnr_y:.1f} | {outcome.cpu_s:.1f} |"


def main() -> None:
    """All cells; ends with 1 if one did not pass."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.matrix")
    parser.add_argument("--page", type=Path, default=PAGE, help="where the table is written")
    arguments = parser.parse_args()
    outcomes: list[Outcome] = []
    for size in SIZES:
        pictures = pictures_of(*size) if max(size) <= _LARGEST else []
        for cell in (cell for cell in cells() if (cell.width, cell.height) == size):
            outcomes.append(tried(cell, pictures, load_profiles()))
            print(_row(outcomes[-1]), flush=True)
    arguments.page.write_text(page(outcomes))
    failed = [outcome for outcome in outcomes if not (outcome.refused or outcome.passed)]
    sys.exit(f"{len(failed)} cells did not pass" if failed else 0)


if __name__ == "__main__":
    main()
