"""The small form of `make chaos`: a few faults of a fixed seed on the bus, and on the whole line."""

from functools import partial
from pathlib import Path

import pytest

from tests.chaos.bus import run_bus
from tests.chaos.line import Form, run_line
from tests.chaos.outcome import Outcome, table
from tests.chaos.schedule import small

pytestmark = pytest.mark.timeout(400)

BUS_SEED, LINE_SEED = 18, 31
SESSION_S = 6.0
ROLES = ("director", "generate", "stitch", "assemble", "check-pieces", "check-videos", "insights")


def check(outcome: Outcome) -> None:
    print(table([outcome]))
    assert outcome.clean, outcome.problems
    assert outcome.injected == outcome.recovered == len(outcome.schedule)
    assert any(recovery.took_s and not recovery.idle for recovery in outcome.recoveries)


def test_faults_on_the_bus_lose_and_double_nothing(tmp_path: Path) -> None:
    outcome = run_bus(BUS_SEED, 3000, SESSION_S, partial(small, most=3), tmp_path)
    check(outcome)
    assert outcome.records >= 3000


def test_faults_on_the_whole_line_leave_every_video_whole_and_once(tmp_path: Path) -> None:
    form = Form(jobs=6, session_s=SESSION_S, workers=dict.fromkeys(ROLES, 1))
    check(run_line(LINE_SEED, form, partial(small, most=4), tmp_path))
