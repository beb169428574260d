"""What is usual of pieces like this one, beside the fixed limits: worse than that is a finding of a `*_baseline` gate.

Only pieces whose scores compare are alike: same profile, engine and version, size and encoding. While fewer than the minimum
of them have passed (streams/insights/quality.py) there is no baseline, and the fixed limits stand alone.
"""

from collections.abc import Iterator

from qc_consumers.profile import VERDICTS, Profile
from schemas.records import Finding, PieceStitched, QualityBaseline, Scores
from schemas.scores import MAIN, main_scores

SIGMA = 1.4826
"""MADs to standard deviations, of a normal distribution."""
_SD, _HD = 720, 1080
"""Shorter side in pixels: below, and up to."""


def population_of(event: PieceStitched, profile: Profile) -> str:
    """What the scores of this piece compare with; empty if nobody said who made it."""
    if not event.engine:
        return ""
    short = min(event.format.width, event.format.height)
    size = "sd" if short < _SD else "hd" if short <= _HD else "uhd"
    encode = f"{event.encode.codec}-{event.encode.crf:g}"
    return "/".join((profile.name, event.engine, event.engine_version, size, encode))


def departures(scores: Scores, baseline: QualityBaseline | None, profile: Profile) -> Iterator[Finding]:
    """A finding for each main score that is far below what is usual."""
    values = dict(zip(MAIN, main_scores(scores), strict=True))
    for usual in baseline.usual if baseline else ():
        rule = profile.baselines.get(usual.score)
        if rule is None or usual.score not in values:
            continue
        limit = usual.median - rule.below * max(SIGMA * usual.mad, rule.spread)
        if values[usual.score] < limit:
            pieces = baseline.pieces if baseline else 0
            yield Finding(
                gate=f"{usual.score}_baseline",
                verdict=VERDICTS[rule.action],
                frame=-1,
                value=values[usual.score],
                limit=limit,
                detail=f"baseline median {usual.median:.4g}, MAD {usual.mad:.3g}, n {pieces}; "
                f"median of the first {usual.reference_median:.4g}, of the last {usual.recent_median:.4g}",
            )
