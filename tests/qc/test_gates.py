"""The gates themselves, on facts made up by hand: limits, severity, and a report that stays short."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qc_consumers.detectors import Span
from qc_consumers.gates import Claim, Facts, Seen, file_evidence, score_evidence, worst
from qc_consumers.metrics.packets import Packet, PacketScan
from qc_consumers.metrics.pictures import Pictures
from qc_consumers.metrics.quality import Quality
from qc_consumers.metrics.scores import scores_of
from qc_consumers.profile import load_profiles
from schemas.records import Finding, Verdict, VideoFormat

FRAMES = 48
PROFILE = load_profiles()[-1]
GOOD = Quality(
    psnr_y=(38.0,) * FRAMES, ssim=(1.0,) * FRAMES, vmaf=(82.0,) * FRAMES, vmaf_model="vmaf_v0.6.1", libvmaf_version="3"
)


def scored(quality: Quality) -> dict[str, tuple[Verdict, int]]:
    """Gate, verdict and frame of each finding."""
    claim = facts().claim
    evidence = score_evidence(scores_of(quality, claim.fps), quality, claim)
    return {finding.gate: (finding.verdict, finding.frame) for finding in PROFILE.judged(evidence)}


def facts(frames: int = FRAMES, *, gop: int = 24, step: int = 1000, fps: int = 24, **changes: object) -> Facts:
    packets = tuple(
        Packet(
            pts=n * step, dts=n * step, size_bytes=100, keyframe=n % gop == 0, idr=n % gop == 0, kind="P", digest=b""
        )
        for n in range(frames)
    )
    scan = PacketScan(
        codec="h264",
        width=320,
        height=180,
        pixel_format="yuv420p",
        color=(1, 1, 1, 1),
        square_pixels=True,
        time_base=Fraction(1, 24_000),
        config=b"",
        packets=packets,
        broken=0,
    )
    claim = Claim(start_frame=100, frames=FRAMES, format=VideoFormat(width=320, height=180, fps_num=fps, fps_den=1))
    pictures = Pictures(luma=(90.0,) * frames, luma_diff=(5.0,) * frames)
    made = Facts(claim=claim, scan=scan, pictures=pictures, seen=Seen())
    return replace(made, **changes)  # pyright: ignore[reportArgumentType]


def judged(made: Facts) -> tuple[Finding, ...]:
    return tuple(PROFILE.judged(file_evidence(made, PROFILE)))


def test_nothing_is_found_in_a_file_without_faults() -> None:
    assert judged(facts()) == ()
    assert worst(()) is Verdict.PASS


def test_scores_at_the_limits_pass_and_means_just_below_them_do_not() -> None:
    assert scored(GOOD) == {}
    assert scored(replace(GOOD, psnr_y=(37.999,) * FRAMES))["psnr_y"] == (Verdict.REENCODE, -1)
    assert scored(replace(GOOD, vmaf=(81.999,) * FRAMES))["vmaf"] == (Verdict.REENCODE, -1)


def test_a_bad_second_of_vmaf_decides_and_a_bad_frame_or_second_of_psnr_warns() -> None:
    second = (90.0,) * 12 + (81.0,) * 24 + (90.0,) * 12
    assert scored(replace(GOOD, vmaf=second))["vmaf_worst_second"] == (Verdict.REENCODE, 112)
    warned = (Verdict.PASS, 112)
    bad = scored(replace(GOOD, psnr_y=(48.0,) * 12 + (37.0,) * 24 + (48.0,) * 12))
    assert bad == {"psnr_y_p1": (Verdict.PASS, -1), "psnr_y_min": warned, "psnr_y_worst_second": warned}
    frame = scored(replace(GOOD, vmaf=(90.0,) * 30 + (50.0,) + (90.0,) * 17))
    assert frame == {"vmaf_p1": (Verdict.PASS, -1), "vmaf_min": (Verdict.PASS, 130)}


@given(st.lists(st.sampled_from(list(Verdict)), min_size=1))
def test_the_worst_finding_decides(verdicts: list[Verdict]) -> None:
    order = [Verdict.PASS, Verdict.REENCODE, Verdict.REGENERATE, Verdict.QUARANTINE]
    findings = [Finding(gate="g", verdict=verdict, frame=-1, value=0, limit=0) for verdict in verdicts]
    assert worst(findings) is order[max(order.index(verdict) for verdict in verdicts)]


@pytest.mark.parametrize(("error_ticks", "verdict"), [(1, Verdict.PASS), (12, Verdict.PASS), (13, Verdict.REENCODE)])
def test_a_step_may_be_half_a_millisecond_off_but_is_mentioned(error_ticks: int, verdict: Verdict) -> None:
    made = facts()
    late = replace(made.scan.packets[10], pts=10_000 + error_ticks)
    packets = (*made.scan.packets[:10], late, *made.scan.packets[11:])
    findings = judged(replace(made, scan=replace(made.scan, packets=packets)))
    assert {finding.gate for finding in findings} == {"pts_step"}
    assert worst(findings) is verdict
    assert {finding.frame for finding in findings} == {110, 111}


def test_a_gop_of_two_seconds_passes_and_one_frame_more_does_not() -> None:
    assert judged(facts(gop=48)) == ()
    made = facts(49, gop=49)
    long = replace(made, claim=replace(made.claim, frames=49))
    assert [(f.gate, f.verdict, f.frame) for f in judged(long)] == [("gop", Verdict.REENCODE, 100)]


def test_a_frame_that_lasts_longer_than_a_gop_may_is_no_long_gop() -> None:
    made = facts(2, gop=1, step=72_000)
    slow = replace(made.claim, frames=2, format=replace(made.claim.format, fps_num=1, fps_den=3))
    assert judged(replace(made, claim=slow)) == ()


def test_findings_say_where_on_the_timeline_of_the_job() -> None:
    seen = Seen(black=(Span(first=3, frames=2, value=1.0),), frozen=(Span(first=10, frames=4, value=4 / 24),))
    found = judged(facts(seen=seen))
    assert [(f.gate, f.verdict, f.frame, f.detail) for f in found] == [
        ("black", Verdict.REGENERATE, 103, "black frames: 2"),
        ("frozen", Verdict.REGENERATE, 110, "frames without motion: 4"),
    ]


def test_repeats_inside_a_still_are_not_reported_twice_and_runs_are_one_finding() -> None:
    still = (Span(first=10, frames=4, value=4 / 24),)
    repeats = tuple(Span(first=n, frames=1, value=0.1) for n in (11, 12, 13, 20, 21, 22))
    found = judged(facts(seen=Seen(frozen=still, duplicate=repeats)))
    assert [(f.gate, f.frame) for f in found] == [("frozen", 110), ("duplicate", 120)]


def test_a_file_full_of_faults_has_a_short_report() -> None:
    spans = tuple(Span(first=n, frames=1, value=1.0) for n in range(0, FRAMES, 2))
    corrupt = Pictures(luma=(90.0,) * FRAMES, luma_diff=(5.0,) * FRAMES, corrupt=tuple(range(FRAMES)))
    found = judged(facts(seen=Seen(black=spans, duplicate=spans, flash=spans), pictures=corrupt))
    assert len(found) <= 70
    assert worst(found) is Verdict.QUARANTINE


def test_the_longest_clean_run_is_measured_against_a_thousand_frames() -> None:
    made = facts(1500)
    long = replace(made.claim, frames=1500)
    for frame, verdicts in ((1200, ["decode"]), (600, ["decode", "clean_run"])):
        pictures = replace(made.pictures, corrupt=(frame,))  # pyright: ignore[reportArgumentType] (it is there)
        found = judged(replace(made, claim=long, pictures=pictures))
        assert [finding.gate for finding in found] == verdicts
