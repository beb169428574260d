"""The meter against published scores: `python -m benchmarks.published FOLDER`, where FOLDER holds clips of `python/test/resource`.

The clips are Netflix's (github.com/Netflix/vmaf_resource) and are not kept here; a pair whose files are missing is said to be.
The scores are those of libvmaf's own tests, for vmaf_v0.6.1.
"""

import argparse
import subprocess
import tempfile
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from statistics import fmean

import imageio_ffmpeg

from qc_consumers.metrics.packets import scan_packets
from qc_consumers.metrics.quality import Pair, measure_quality

_TOLERANCE = 0.01
_TIMEOUT_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """Two files and their score. Raw ones have a pixel format and a size; scores are taken at `size`."""

    reference: str
    distorted: str
    score: float
    size: tuple[int, int]
    raw: str = ""


_Q160 = "test_0_1_src01_hrc00_576x324_576x324_vs_src01_hrc01_576x324_576x324_q_160x90.yuv"
PUBLISHED = (
    Published(
        reference="Seeking_30_480_1050.mp4", distorted="Seeking_10_288_375.mp4", score=51.017497, size=(720, 480)
    ),
    Published(
        reference="src01_hrc00_576x324.yuv420p10le.yuv",
        distorted="src01_hrc01_576x324.yuv420p10le.yuv",
        score=82.56422,
        size=(576, 324),
        raw="yuv420p10le",
    ),
    Published(
        reference="sparks_ref_480x270.yuv42010le.yuv",
        distorted="sparks_dis_480x270.yuv42010le.yuv",
        score=97.90063,
        size=(480, 270),
        raw="yuv420p10le",
    ),
    Published(reference=f"ref_{_Q160}", distorted=f"dis_{_Q160}", score=92.52096, size=(160, 90), raw="yuv420p"),
)


def main() -> None:
    """Print each score beside the published one. Ends with 1 if one is off."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.published")
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    off = 0
    for pair in PUBLISHED:
        found = {path.name: path for path in folder.rglob("*") if path.name in (pair.reference, pair.distorted)}
        if len(found) < 2:
            print(f"{pair.reference:40} missing")
            continue
        score = _score(pair, found[pair.reference], found[pair.distorted])
        wrong = abs(score - pair.score) > _TOLERANCE
        off += wrong
        print(
            f"{pair.reference:40} {score:10.5f}  published {pair.score:10.5f}  {'OFF' if wrong else 'ok'}", flush=True
        )
    raise SystemExit(1 if off else 0)


def _score(published: Published, reference: Path, distorted: Path) -> float:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = [_lossless(published, path, folder / f"{n}.mp4") for n, path in enumerate((reference, distorted))]
        frames = {len(scan_packets(path).packets) for path in files}
        if len(frames) > 1:
            raise SystemExit(f"{reference.name}: frames of the two files differ, {frames}")
        width, height = published.size
        pair = Pair(
            piece=files[1],
            reference=files[0],
            width=width,
            height=height,
            fps=Fraction(25),
            frames=frames.pop(),
            head=0,
            tail=0,
        )
        quality = measure_quality(pair, folder, lambda *_: None, threads=2, timeout_s=_TIMEOUT_S)
    return fmean(quality.vmaf)


def _lossless(published: Published, source: Path, target: Path) -> Path:
    """The file at the size of the score, bicubic as libvmaf's tests scale, as the meter reads it."""
    width, height = published.size
    raw = ("-f", "rawvideo", "-pix_fmt", published.raw, "-s", f"{width}x{height}", "-r", "25") if published.raw else ()
    scale = ("-vf", f"scale={width}:{height}:flags=bicubic", "-fps_mode", "passthrough")
    coding = ("-c:v", "libx264", "-qp", "0", "-preset", "ultrafast", "-an")
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", *raw, "-i", source, *scale, *coding, target]
    subprocess.run(command, check=True)
    return target


if __name__ == "__main__":
    main()
