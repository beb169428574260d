"""What events say in numbers."""

import pytest
from prometheus_client import REGISTRY

from infra.metrics.line import Line
from schemas import records as r
from schemas.topics import Event
from tests.schemas.samples import sample


def read(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


def of(record: type[Event], **values: object) -> Event:
    event = sample(record)
    return type(event)(**{f: getattr(event, f) for f in event.__slots__} | values)


def test_jobs_are_counted_where_they_are_and_once_when_they_end() -> None:
    before = read("longtake_jobs_ended_total", stage="finished")
    line = Line(("standard", "hdr10"))
    for stage in (r.Stage.GENERATING, r.Stage.GENERATING, r.Stage.ASSEMBLING):
        line.take(of(r.JobChanged, job_id="a", stage=stage))
    line.take(of(r.JobChanged, job_id="b", stage=r.Stage.GENERATING))
    assert (read("longtake_jobs", stage="generating"), read("longtake_jobs", stage="assembling")) == (1, 1)
    line.take(of(r.JobChanged, job_id="a", stage=r.Stage.FINISHED))
    line.take(of(r.JobChanged, job_id="b", stage=r.Stage.FINISHED))
    assert (read("longtake_jobs", stage="generating"), read("longtake_jobs", stage="assembling")) == (0, 0)
    assert read("longtake_jobs_ended_total", stage="finished") == before + 2


def test_the_finish_lag_is_from_the_last_segment_whatever_their_order() -> None:
    sum_before, count_before = read("longtake_finish_lag_seconds_sum"), read("longtake_finish_lag_seconds_count")
    line = Line(("standard", "hdr10"))
    for finished_us in (7_000_000, 5_000_000):
        line.take(of(r.SegmentGenerated, job_id="a", finished_us=finished_us))
    line.take(of(r.VideoFinished, job_id="a", finished_us=9_500_000))
    line.take(of(r.VideoFinished, job_id="unseen", finished_us=9_500_000))
    assert read("longtake_finish_lag_seconds_sum") - sum_before == pytest.approx(2.5)
    assert read("longtake_finish_lag_seconds_count") - count_before == 1


def test_gates_and_seams_are_counted_by_name_and_outcome() -> None:
    finding = r.Finding(gate="vmaf", verdict=r.Verdict.REENCODE, frame=3, value=70.0, limit=82.0)
    about = {"gate": "vmaf", "verdict": "reencode", "profile": "hdr10"}
    before = read("longtake_gate_findings_total", **about)
    rejected = read("longtake_seams_total", kind="first", outcome="rejected")
    line = Line(("standard", "hdr10"))
    line.take(
        of(r.PieceChecked, job_id="a", findings=(finding, finding), verdict=r.Verdict.REENCODE, population="hdr10/x")
    )
    line.take(of(r.VideoChecked, job_id="a", findings=(finding,)))
    line.take(of(r.SeamRejected))
    assert read("longtake_gate_findings_total", **about) == before + 3
    assert read("longtake_seams_total", kind="first", outcome="rejected") == rejected + 1


def test_scores_are_told_apart_by_the_profiles_that_there_are_and_by_no_other() -> None:
    def counts() -> list[float]:
        profiles = ("standard", "hdr10", "unknown", "made-up")
        return [read("longtake_piece_vmaf_count", profile=profile) for profile in profiles]

    before, line = counts(), Line(("standard", "hdr10"))
    for population in ("standard/animatic/1", "hdr10/animatic/1", "made-up/animatic/1", ""):
        line.take(of(r.PieceChecked, population=population))
    assert [after - b for after, b in zip(counts(), before, strict=True)] == [1, 1, 2, 0]


def test_no_label_is_a_job() -> None:
    line = Line(("standard", "hdr10"))
    for record in (r.JobChanged, r.SegmentGenerated, r.PieceStitched, r.PieceChecked, r.VideoChecked, r.VideoFinished):
        line.take(of(record, job_id="a-job-of-somebody"))
    labels = {v for metric in REGISTRY.collect() for s in metric.samples for v in s.labels.values()}
    assert "generating" in labels
    assert "a-job-of-somebody" not in labels
