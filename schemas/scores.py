"""The main scores of a piece, by the names of their gates: what baselines are of, and what is held against them."""

from schemas.records import Scores

MAIN = ("psnr_y", "ssim", "vmaf", "vmaf_worst_second")


def main_scores(scores: Scores) -> tuple[float, ...]:
    """One value for each of `MAIN`; for all of them, more is better."""
    return (scores.psnr_y_mean, scores.ssim_mean, scores.vmaf_mean, scores.vmaf_worst_second)
