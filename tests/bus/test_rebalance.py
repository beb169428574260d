"""Partitions that go to another member in the middle of work."""

import os
import signal
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from infra.bus import clients
from infra.bus.decision import Decision
from infra.settings import Settings
from schemas.records import JobState
from tests.bus.line import (
    ANSWERED,
    ASKED,
    SESSION_MS,
    TABLE,
    WORKER,
    Counter,
    all_read,
    answers,
    ask,
    eventually,
    jobs_by_partition,
    membership,
    questions,
    rows,
    table,
    worker,
)
from tests.bus.processes import Accident, table_process, worker_process
from tests.bus.test_worker import Gate

OTHER = replace(WORKER, slot=1)
OTHER_TABLE = replace(TABLE, slot=1)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_partition_revoked_in_the_middle_of_work_is_answered_by_its_new_owner_only(
    bus_settings: Settings, protocol: Literal["classic", "consumer"]
) -> None:
    settings = bus_settings.model_copy(update={"group_protocol": protocol})
    jobs = jobs_by_partition(settings)
    slow, quick = Gate(*jobs), Gate()
    with worker(settings, slow):
        ask(settings, questions(jobs, range(2)))
        eventually(lambda: len(slow.seen) == len(jobs), "the first member has a record of every partition in hand")
        with worker(settings, quick, OTHER):
            eventually(lambda: len(answers(settings)) >= 2, "the second member answers what it took over")
            slow.open.set()
            eventually(lambda: all_read(settings, WORKER), "everything is read")
        taken = {job for job, _ in quick.seen}
        assert 0 < len(taken) < len(jobs)
        assert taken < {job for job, _ in slow.seen}
    assert sorted(answers(settings)) == sorted(questions(jobs, range(2)))


def test_partitions_lost_in_the_middle_of_work_are_never_committed_by_the_loser(bus_settings: Settings) -> None:
    settings = bus_settings.model_copy(update={"session_timeout_ms": SESSION_MS})
    jobs = jobs_by_partition(settings)
    with worker_process(settings, Accident(step="before_begin", signal=signal.SIGSTOP)) as loser:
        ask(settings, questions(jobs, range(2)))
        eventually(lambda: _stopped(loser.pid or 0), "the first member stops with records in hand")
        with worker(settings, member=OTHER):
            eventually(lambda: all_read(settings, WORKER), "the session of the stopped member ends, the other has all")
            os.kill(loser.pid or 0, signal.SIGCONT)
            ask(settings, questions(jobs, range(2, 4)))
            eventually(lambda: all_read(settings, WORKER), "everything is read")
    assert sorted(answers(settings)) == sorted(questions(jobs, range(4)))


def test_a_commit_that_a_stopped_director_finishes_late_is_in_the_table_of_the_next_owner(
    bus_settings: Settings,
) -> None:
    """It stops with its offsets sent: those are waited for, and the table is read to behind its transaction."""
    settings = bus_settings.model_copy(update={"session_timeout_ms": SESSION_MS})
    jobs = jobs_by_partition(settings)
    with table_process(settings, Accident(step="offsets_sent", signal=signal.SIGSTOP)) as late:
        ask(settings, questions(jobs, range(1)))
        eventually(lambda: _stopped(late.pid or 0), "the first member stops in its transaction")
        with table(settings, member=OTHER_TABLE):
            eventually(lambda: _members(settings) == {OTHER_TABLE.name}, "its session ends")
            ask(settings, questions(jobs, range(1, 2)))
            os.kill(late.pid or 0, signal.SIGCONT)
            eventually(lambda: all_read(settings, TABLE), "everything is read")
    assert rows(settings) == dict.fromkeys(jobs, 2)
    assert sorted(answers(settings, TABLE)) == sorted(questions(jobs, range(1, 3)))


class ScanningOnce(Counter):
    """The first scan with rows to see adds a hundred to each."""

    def __init__(self) -> None:
        self._scanned = False

    def scan(self, states: Iterable[JobState], now_us: int) -> list[Decision]:
        found = [] if self._scanned else [replace(state, attempts=state.attempts + 100) for state in states]
        self._scanned = self._scanned or bool(found)
        return [Decision(state=state) for state in found]


def test_the_scan_of_a_director_that_lost_its_partitions_changes_nothing(bus_settings: Settings) -> None:
    settings = bus_settings.model_copy(update={"session_timeout_ms": SESSION_MS, "scan_s": 1.0})
    accident = Accident(step="before_begin", signal=signal.SIGSTOP, transaction=2)
    with table_process(settings, accident, ScanningOnce) as late:
        ask(settings, [("boat", 0)])
        eventually(lambda: _stopped(late.pid or 0), "the first member stops before it writes what its scan decided")
        with table(settings, member=OTHER_TABLE):
            ask(settings, [("boat", 1)])
            eventually(lambda: all_read(settings, TABLE), "its session ends, the second member goes on")
            os.kill(late.pid or 0, signal.SIGCONT)
            eventually(lambda: len(_members(settings)) == 2, "the first one joins again")
            ask(settings, [("boat", 2)])
            eventually(lambda: all_read(settings, TABLE), "everything is read")
    assert rows(settings) == {"boat": 3}


def test_a_partition_that_was_paused_when_it_was_revoked_delivers_when_it_comes_back(bus_settings: Settings) -> None:
    ask(bus_settings, [("boat", 0)])
    with membership(bus_settings) as (member, _):
        eventually(lambda: member.poll(0.05) is not None, "the record comes")
        member.pause(member.assigned)
        member.join([ANSWERED], lambda _: None)
        eventually(lambda: member.poll(0.05) is None and {t for t, _ in member.assigned} == {ANSWERED}, "it is revoked")
        member.join([ASKED], lambda _: None)
        eventually(lambda: member.poll(0.05) is not None, "the record comes again")


def test_members_come_and_go_and_the_table_stays_right(bus_settings: Settings) -> None:
    settings = bus_settings.model_copy(update={"session_timeout_ms": SESSION_MS})
    jobs = [f"job-{n}" for n in range(12)]
    with table(settings):
        ask(settings, questions(jobs, range(2)))
        eventually(lambda: all_read(settings, TABLE), "the first member has everything")
        with table(settings, member=OTHER_TABLE):
            eventually(lambda: len(_members(settings)) == 2, "the second member joins")
            ask(settings, questions(jobs, range(2, 4)))
            eventually(lambda: all_read(settings, TABLE), "both read")
        ask(settings, questions(jobs, range(4, 6)))
        eventually(lambda: all_read(settings, TABLE), "the first one has everything again")
    assert rows(settings) == dict.fromkeys(jobs, 6)
    found = answers(settings, TABLE)
    assert sorted(found) == sorted(questions(jobs, range(1, 7)))
    assert all([n for job, n in found if job == name] == list(range(1, 7)) for name in jobs)


def _stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def _members(settings: Settings) -> set[str]:
    """Who has partitions of the table's group."""
    admin = clients.admin(settings)  # dropped too early, its answers never come
    described = admin.describe_consumer_groups([TABLE.group])[TABLE.group].result(10)
    return {member.group_instance_id for member in described.members if member.assignment.topic_partitions}
