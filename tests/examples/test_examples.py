"""The examples do what they say. Those that need finished videos run in `tests/test_line.py` too."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from infra.assets.catalogue import Catalogue
from infra.bus.reader import Reader, event_of
from infra.local.services import environment
from infra.settings import Settings
from schemas.records import PromptSubmitted, SeamKind
from streams.director import instruct_shots
from streams.intake import planned
from streams.prompts.storyboard import parse_storyboard
from tests.assets.files import asset, said
from tests.cli.events import finished, say

EXAMPLES = Path(__file__).parents[2] / "examples"
instruct = partial(instruct_shots, clock=lambda: 0.0)
"""Without a deadline."""


def run(settings: Settings, name: str, *arguments: str) -> str:
    ran = subprocess.run(
        [sys.executable, EXAMPLES / name, *arguments],
        env=os.environ | environment(settings),
        cwd=EXAMPLES.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.parametrize("name", ["producer_json.py", "producer_avro.py"])
def test_what_a_producer_sends_is_a_job_that_can_be_planned(name: str, bus_settings: Settings) -> None:
    job_id = run(bus_settings, name).strip()
    with Reader.from_beginning(bus_settings, [PromptSubmitted.topic]) as reader:
        (message,) = reader.to_end()
    prompt = event_of(message)
    assert isinstance(prompt, PromptSubmitted)
    assert (prompt.job_id, message.job_id) == (job_id, job_id)
    assert planned(prompt, instruct).frames == 192


def test_the_json_producer_is_ten_lines_of_code() -> None:
    lines = (EXAMPLES / "producer_json.py").read_text().splitlines()
    assert len([line for line in lines if line and not line.startswith('"""')]) <= 10


def test_a_subscriber_hears_of_finished_videos(bus_settings: Settings) -> None:
    say(bus_settings, finished("film"), finished("other"))
    heard = run(bus_settings, "subscriber.py", "2").splitlines()
    assert {line.split()[0] for line in heard} == {"film", "other"}
    assert all("VMAF 95.0" in line for line in heard)


@pytest.mark.parametrize("file", sorted((EXAMPLES / "storyboards").iterdir()), ids=lambda file: file.name)
def test_a_storyboard_is_accepted_without_a_remark(file: Path) -> None:
    plan = planned(
        parse_storyboard(file.read_text(encoding="utf-8"), "film"), instruct, sounds_named("harbour-theme", "bell")
    )
    assert plan.lint == ()
    assert len(plan.shots) >= 2


def sounds_named(*names: str) -> Catalogue:
    known = Catalogue()
    for name in names:
        known.take(said(asset(name.encode(), name=name)))
    return known


def test_the_demo_has_every_kind_of_seam_but_a_wipe() -> None:
    file = EXAMPLES / "storyboards" / "three_lights.yaml"
    plan = planned(parse_storyboard(file.read_text(encoding="utf-8"), "demo"), instruct)
    assert plan.frames == 288
    assert {segment.seam for segment in plan.segments} == set(SeamKind) - {SeamKind.WIPE}
