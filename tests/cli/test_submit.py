"""`longtake submit` and `watch` on a real broker."""

import io
import sys
from pathlib import Path

import pytest

from infra.bus.reader import Reader, event_of
from infra.settings import Settings
from schemas.codec import content_hash
from schemas.records import PromptSubmitted, Stage
from tests.cli.conftest import Longtake
from tests.cli.events import job, progress, refused, say

BOARD = """
title: Two animals
size: 320x180
negative: [people]
engine_options: {drift_exposure: 0.1}
shots:
  - {prompt: A fox runs, seconds: 2}
  - {prompt: A whale swims, seconds: 3, transition: dissolve}
"""


def submitted(settings: Settings) -> PromptSubmitted:
    """The one prompt on the topic."""
    with Reader.from_beginning(settings, [PromptSubmitted.topic]) as reader:
        (message,) = reader.to_end()
    assert {"traceparent", "ce_id", "ce_type"} <= {name for name, _ in message.headers}
    prompt = event_of(message)
    assert isinstance(prompt, PromptSubmitted)
    assert message.key == prompt.job_id.encode()
    return prompt


def test_a_text_with_options_becomes_a_prompt(bus_settings: Settings, longtake: Longtake) -> None:
    options = [
        "--duration",
        "8",
        "--size",
        "320x180",
        "--fps",
        "30",
        "--engine",
        "animatic",
        "--seed",
        "3",
        "--job-id",
        "film",
        "--json",
    ]
    ran = longtake(
        bus_settings,
        "submit",
        "A fox runs",
        *options,
        "--negative",
        "rain",
        "--rendition",
        "web-540p",
        "--rendition",
        "android-mid",
        "--negative",
        "cars",
        "--config",
        "tiny",
        "--option",
        "fault=nan",
    )
    prompt = submitted(bus_settings)
    assert (ran.code, ran.json()["job_id"], ran.json()["content_hash"]) == (0, "film", content_hash(prompt))
    assert (prompt.text, prompt.width, prompt.height, prompt.fps) == ("A fox runs", 320, 180, 30.0)
    assert (prompt.duration_s, prompt.seed, prompt.negative) == (8.0, 3, ("rain", "cars"))
    assert prompt.engine_options == {"config": "tiny", "fault": "nan"}
    assert prompt.renditions == ("web-540p", "android-mid")
    assert prompt.submitted_us > 0


def test_a_storyboard_is_read_and_options_go_before_it(
    bus_settings: Settings, longtake: Longtake, tmp_path: Path
) -> None:
    board = tmp_path / "board.yaml"
    board.write_text(BOARD)
    options = ["--seed", "9", "--negative", "cars", "--option", "fault=nan"]
    ran = longtake(bus_settings, "submit", "--storyboard", str(board), *options)
    prompt = submitted(bus_settings)
    assert ran.code == 0
    assert prompt.job_id in ran.out
    assert [shot.transition for shot in prompt.shots] == ["cut", "dissolve"]
    assert (prompt.width, prompt.seed, prompt.negative) == (320, 9, ("people", "cars"))
    assert prompt.engine_options == {"drift_exposure": "0.1", "fault": "nan"}


def test_a_prompt_comes_through_a_pipe(
    bus_settings: Settings, longtake: Longtake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("A whale swims\n"))
    assert longtake(bus_settings, "submit").code == 0
    assert submitted(bus_settings).text == "A whale swims"


def test_two_jobs_of_the_same_text_have_ids_of_their_own(bus_settings: Settings, longtake: Longtake) -> None:
    first, second = (longtake(bus_settings, "submit", "A fox", "--json").json()["job_id"] for _ in range(2))
    assert first != second


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["A fox", "--size", "320"], "--size is written"),
        (["A fox", "--option", "nan"], "key=value"),
        (["A fox", "--file", "x.txt"], "give one of"),
        (["--file", "absent.txt"], "absent.txt cannot be read"),
        (["  "], "empty"),
        (["--storyboard", "BOARD"], "shots[0].second: a Shot has no such field"),
        (["A fox", "--duration", "long"], "--duration"),
        (["A fox", "--seed", str(1 << 64)], "cannot be written as a record"),
        (["A fox \udcff"], "cannot be written as a record"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(
    arguments: list[str], says: str, longtake: Longtake, tmp_path: Path
) -> None:
    board = tmp_path / "board.yaml"
    board.write_text("shots: [{prompt: A fox runs, second: 2}]")
    arguments = [str(board) if argument == "BOARD" else argument for argument in arguments]
    ran = longtake(Settings(state=tmp_path), "submit", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert says in ran.err
    assert "Traceback" not in ran.err


def test_following_a_job_of_the_same_content_ends_with_it(bus_settings: Settings, longtake: Longtake) -> None:
    prompt = PromptSubmitted(job_id="film", text="A fox")
    say(bus_settings, job("film", Stage.FINISHED, done=2, content_hash=content_hash(prompt)))
    ran = longtake(bus_settings, "submit", "A fox", "--job-id", "film", "--follow")
    assert ran.code == 0
    assert "finished  segments 2/2" in ran.out


def test_following_a_refused_prompt_says_field_and_rule(bus_settings: Settings, longtake: Longtake) -> None:
    prompt = PromptSubmitted(job_id="film", text="A fox")
    say(bus_settings, job("film", Stage.FINISHED, done=2, content_hash="of another content"))
    say(bus_settings, refused("film", content_hash=content_hash(prompt)))
    ran = longtake(bus_settings, "submit", "A fox", "--job-id", "film", "--follow")
    assert ran.code == 5
    assert "fps: 0 is not above 0 [range]" in ran.err


def test_watching_a_failed_job_gives_its_reason(bus_settings: Settings, longtake: Longtake) -> None:
    say(bus_settings, job(), progress(), job(done=1), job(stage=Stage.FAILED, done=1, reason="segment 1: nan"))
    ran = longtake(bus_settings, "watch", "film", "--json")
    assert ran.code == 1
    assert ran.json_lines()[-1]["stage"] == "failed"
    assert "segment 1: nan" in ran.err


def test_a_job_that_was_retried_is_watched_to_its_new_end(bus_settings: Settings, longtake: Longtake) -> None:
    say(bus_settings, job(stage=Stage.FAILED), job(), job(stage=Stage.FINISHED, done=2))
    assert longtake(bus_settings, "watch", "film").code == 0


def test_a_job_nobody_knows_is_not_found(bus_settings: Settings, longtake: Longtake) -> None:
    ran = longtake(bus_settings, "watch", "ghost", "--patience", "0.5")
    assert ran.code == 4
    assert "ghost" in ran.err
