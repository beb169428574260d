"""Per-frame scores, summed up for a whole piece."""

from fractions import Fraction

import numpy as np

from qc_consumers.metrics.quality import Quality
from schemas.records import Scores

UNMEASURED = Scores(
    frames=0,
    psnr_y_mean=0.0,
    psnr_y_p1=0.0,
    psnr_y_min=0.0,
    ssim_mean=0.0,
    vmaf_mean=0.0,
    vmaf_p1=0.0,
    vmaf_min=0.0,
    vmaf_worst_second=0.0,
    vmaf_model="",
    libvmaf_version="",
)
"""Zero frames were scored: the other fields mean nothing."""


def scores_of(quality: Quality, fps: Fraction) -> Scores:
    """Means, first percentiles, minima, and the lowest mean VMAF of any second (of the whole, if it is shorter)."""
    psnr_y, vmaf = np.array(quality.psnr_y), np.array(quality.vmaf)
    second = min(max(round(fps), 1), len(vmaf))
    windows = np.convolve(vmaf, np.full(second, 1 / second), mode="valid")
    return Scores(
        frames=len(vmaf),
        psnr_y_mean=float(psnr_y.mean()),
        psnr_y_p1=float(np.percentile(psnr_y, 1)),
        psnr_y_min=float(psnr_y.min()),
        ssim_mean=float(np.mean(quality.ssim)),
        vmaf_mean=float(vmaf.mean()),
        vmaf_p1=float(np.percentile(vmaf, 1)),
        vmaf_min=float(vmaf.min()),
        vmaf_worst_second=float(windows.min()),
        vmaf_model=quality.vmaf_model,
        libvmaf_version=quality.libvmaf_version,
    )
