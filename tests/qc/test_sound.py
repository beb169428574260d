"""Sound of a finished video: what is measured of it, and that a video without any is asked nothing."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.random import Generator

from benchmarks.detectors import sound
from qc_consumers.check import Bench
from qc_consumers.videos import check_video
from schemas.records import Verdict
from tests.qc.clips import assembled, bunny, encoded

Make = Callable[[Generator], sound.Samples]


def test_music_at_the_wanted_loudness_passes(bench: Bench) -> None:
    assert sound.checked(sound.music(np.random.default_rng(1)), bench).findings == []


@pytest.mark.parametrize(
    ("make", "verdict"),
    [
        (sound.loudness, Verdict.REENCODE),
        (sound.silence, Verdict.PASS),
        (sound.clipping, Verdict.REENCODE),
        (sound.true_peak, Verdict.PASS),
        (sound.av_sync, Verdict.REENCODE),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_each_fault_of_the_sound_is_found(bench: Bench, make: Make, verdict: Verdict) -> None:
    findings = sound.checked(make(np.random.default_rng(2)), bench).findings
    assert verdict in [finding.verdict for finding in findings if finding.gate == make.__name__]


def test_a_video_without_sound_is_asked_nothing_about_it(bench: Bench, tmp_path: Path) -> None:
    path = encoded(tmp_path / "video.mp4", bunny()[:24])
    findings = check_video(assembled(bench.objects, path, 24), bench).measured.findings
    assert {finding.gate for finding in findings} & sound.SOUND_GATES == set()
