"""Which jobs a release changes: the director draws each once, by its id, and its row keeps what came of it."""

from dataclasses import replace

from schemas import records as r
from schemas.codec import content_hash, decode, encode
from streams.releases.arms import place_of
from tests.director.builders import Line, decider, prompt
from tests.releases.builders import release

WORSE = release(engine_options={"drift_exposure": "0.01"}, crf=30.0, preset="ultrafast", share=0.25)


def job_ids(count: int) -> list[str]:
    return [f"job-{n}" for n in range(count)]


def candidate_id(share: float = WORSE.share) -> str:
    return next(job for job in job_ids(1000) if place_of(job, WORSE.name) < share)


def control_id() -> str:
    return next(job for job in job_ids(1000) if place_of(job, WORSE.name) >= WORSE.share)


def line(*releases: r.ReleaseChanged) -> Line:
    return Line(decider=replace(decider(), releases=lambda: releases))


def accepted(job_id: str, *releases: r.ReleaseChanged, **fields: object) -> Line:
    found = line(*releases)
    found.send(prompt(job_id=job_id, **fields))
    return found


def test_the_share_of_jobs_is_the_release_s_and_widening_keeps_them() -> None:
    places = [place_of(job, "sharper") for job in job_ids(20_000)]
    assert abs(sum(place < 0.01 for place in places) / len(places) - 0.01) < 0.003
    assert abs(sum(place < 0.5 for place in places) / len(places) - 0.5) < 0.015
    both = sum(place_of(job, "sharper") < 0.1 and place_of(job, "other") < 0.1 for job in job_ids(20_000))
    assert 140 < both < 260  # 1 %: releases draw apart from each other


def test_the_draw_never_changes() -> None:
    assert place_of("harbour", "sharper") == 0.6719766815462733


def test_a_candidate_is_made_as_the_release_says_and_its_content_is_the_same() -> None:
    job = accepted(candidate_id(), WORSE).job
    plan = job.plan
    assert plan is not None
    assert (job.arm, plan.engine_options) == ("sharper.0/candidate", WORSE.engine_options)
    assert (plan.encode.crf, plan.encode.preset, plan.encode.codec) == (30.0, "ultrafast", "h264")
    assert job.content_hash == content_hash(prompt(job_id=job.job_id))


def test_a_control_is_made_as_before_and_counted() -> None:
    found = accepted(control_id(), WORSE).job
    plain = accepted(control_id()).job
    assert found.arm == "sharper.0/control"
    assert replace(found, arm="") == plain


def test_jobs_that_a_release_does_not_concern_are_on_neither_side() -> None:
    stopped = replace(WORSE, stage=r.ReleaseStage.STOPPED)
    assert accepted(candidate_id(), stopped).job.arm == ""
    assert accepted(candidate_id(), replace(WORSE, engine="causal_dit")).job.arm == ""
    narrow = replace(WORSE, new_engine="causal_dit", engine_options={})  # sides are multiples of 16 there
    for job_id in (candidate_id(), control_id()):
        assert accepted(job_id, narrow, width=642).job.arm == ""


def test_an_arm_is_drawn_once_whatever_becomes_of_the_release() -> None:
    now = [WORSE]
    found = Line(decider=replace(decider(), releases=lambda: now))
    first = prompt(job_id=candidate_id())
    found.send(first)
    now[0] = replace(WORSE, stage=r.ReleaseStage.ROLLED_BACK, share=0.0)
    found.send(first)
    found.run(*found.said)
    events = [event for event in found.said if isinstance(event, r.JobChanged | r.VideoFinished)]
    assert isinstance(events[-1], r.JobChanged)
    assert events[-1].stage is r.Stage.FINISHED
    assert {event.arm for event in events} == {"sharper.0/candidate"}
    assert {e.encode.crf for e in found.all(r.PieceRequested)} == {30.0}
    assert decode(encode(found.job)) == found.job


def test_a_retried_job_stays_on_its_side() -> None:
    found = line(WORSE)
    found.send(prompt(job_id=candidate_id()))
    found.send(r.CancelRequested(job_id=candidate_id()))
    found.send(r.RetryRequested(job_id=candidate_id()))
    assert (found.job.stage, found.job.arm) == (r.Stage.GENERATING, "sharper.0/candidate")
