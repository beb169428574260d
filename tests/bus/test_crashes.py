"""A process killed at any step of its transaction: nothing lost, nothing doubled."""

import signal

import pytest

from infra.settings import Settings
from tests.bus.line import TABLE, WORKER, all_read, answers, ask, eventually, questions, rows
from tests.bus.processes import STEPS, Accident, table_process, worker_process

JOBS = ["boat", "train", "kite"]


@pytest.mark.parametrize("step", STEPS)
def test_a_kill_at_any_step_leaves_one_answer_and_the_table_right(bus_settings: Settings, step: str) -> None:
    ask(bus_settings, questions(JOBS, range(2)))
    accident = Accident(step=step)
    with worker_process(bus_settings, accident) as worker, table_process(bus_settings, accident) as table:
        worker.join(30)
        table.join(30)
        assert (worker.exitcode, table.exitcode) == (-signal.SIGKILL, -signal.SIGKILL)
    ask(bus_settings, questions(JOBS, range(2, 4)))
    with worker_process(bus_settings), table_process(bus_settings):
        eventually(lambda: all_read(bus_settings, WORKER), "the restarted worker has read everything")
        eventually(lambda: all_read(bus_settings, TABLE), "the restarted director has read everything")
    assert sorted(answers(bus_settings)) == sorted(questions(JOBS, range(4)))
    assert sorted(answers(bus_settings, TABLE)) == sorted(questions(JOBS, range(1, 5)))
    assert rows(bus_settings) == dict.fromkeys(JOBS, 4)
