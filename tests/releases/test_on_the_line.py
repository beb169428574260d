"""A release on a real broker and a real ClickHouse: begun, judged by rows, rolled back with its cause."""

import json
import time
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from infra.cli.main import new_app
from infra.clickhouse import connect, migrate
from infra.inserts import Database
from infra.settings import Settings
from qc_consumers.incoming import Origin
from qc_consumers.rows import failure_rows, finish_rows, job_rows, play_rows
from schemas.records import JobChanged, PlayReported, SegmentFailed, Stage, VideoFinished
from streams.releases.evidence import steps_of
from streams.releases.known import following
from tests.schemas.samples import sample

JOBS = 15
runner = CliRunner()


def longtake(settings: Settings, *words: str) -> str:
    done = runner.invoke(new_app(), ["release", *words], obj=settings, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def rows_of_a_bad_candidate(settings: Settings) -> None:
    """Of 15 jobs each, all of the candidate's fail on one worker; the control's finish, and one of them stalls."""
    database, origin = Database(settings), Origin(trace_id="", since_us=time.time_ns() // 1000)
    job, failure, video = sample(JobChanged), sample(SegmentFailed), sample(VideoFinished)
    assert isinstance(job, JobChanged)
    assert isinstance(failure, SegmentFailed)
    assert isinstance(video, VideoFinished)
    for number in range(JOBS):
        bad, good = f"bad-{number}", f"good-{number}"
        lost = replace(job, job_id=bad, stage=Stage.FAILED, arm="sharper.0/candidate", changed_us=number)
        done = replace(job, job_id=good, stage=Stage.FINISHED, arm="sharper.0/control", changed_us=number)
        database.insert(job_rows(lost, origin))
        database.insert(failure_rows(replace(failure, job_id=bad, segment=3, attempt=1, worker="generate-1"), origin))
        database.insert(job_rows(done, origin))
        database.insert(finish_rows(replace(video, job_id=good, attempts=0, warnings=()), origin))
    for at_us, stalls in ((1, 0), (2, 3)):
        play = PlayReported(
            job_id="good-0",
            play="p",
            first_frame_ms=90,
            played_ms=1,
            stalls=stalls,
            stalled_ms=0,
            decode_errors=0,
            dropped_frames=0,
            player="t",
            reported_us=at_us,
        )
        database.insert(play_rows(play, origin))
    database.close()


@pytest.mark.timeout(120)
def test_a_bad_release_is_rolled_back_by_what_the_rows_say_and_the_cause_is_named(line_settings: Settings) -> None:
    with following(line_settings) as known:
        assert known.read.wait(30)
        longtake(line_settings, "start", "sharper", "--set", "crf=30", "--share", "0.5", "--effect", "0.4")
        migrate(line_settings)
        rows_of_a_bad_candidate(line_settings)
        (step,) = steps_of(connect(line_settings), "sharper")
        assert (step.candidate.ended, step.candidate.failed, step.candidate.played) == (JOBS, JOBS, 0)
        assert (step.control.finished, step.control.played, step.control.stalled, step.control.warned) == (
            JOBS,
            1,
            1,
            0,
        )
        assert "rolled_back at 0.00%: failed: 15 of 15 jobs against 0 of 15" in longtake(
            line_settings, "watch", "--once"
        )
        deadline = time.monotonic() + 30
        while "sharper" not in known.causes and time.monotonic() < deadline:
            time.sleep(0.05)
        assert [release.stage.value for release in known.all()] == ["rolled_back"]
    (told,) = json.loads(longtake(line_settings, "status", "sharper", "--json"))
    assert told["release"]["share"] == 0
    assert {(s["kind"], s["name"]) for s in told["cause"]["suspects"]} >= {("worker", "generate-1"), ("segment", "3")}
    assert told["cause"]["examples"][0] == f"bad-{JOBS - 1}"
    assert "suspect      worker generate-1: 15/15 bad jobs, 0/15 others" in longtake(line_settings, "status", "sharper")
    assert longtake(line_settings, "watch", "--once") == ""
    longtake(line_settings, "start", "softer", "--set", "preset=fast")
    longtake(line_settings, "stop", "softer", "--reason", "enough")
    assert "enough" in longtake(line_settings, "status")
