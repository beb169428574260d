"""A schedule depends on its seed and on nothing else."""

from collections import Counter
from itertools import pairwise

from tests.chaos.schedule import Kind, Line, end_s, full, small

LINE = Line(
    workers={"director": 2, "generate": 4, "insights": 1},
    session_s=20.0,
    clickhouse=True,
    store=frozenset({Kind.DISK_FULL, Kind.STORE_ERRORS}),
    clock=True,
)


def test_the_same_seed_gives_the_same_schedule_and_another_one_another() -> None:
    assert full(7, LINE) == full(7, LINE)
    assert len({full(seed, LINE) for seed in range(20)}) == 20
    assert small(7, LINE, 5) == small(7, LINE, 5)


def test_the_full_form_kills_every_kind_of_process_and_has_every_kind_of_fault() -> None:
    faults = full(1, LINE)
    assert {fault.target for fault in faults if fault.kind is Kind.KILL} == set(LINE.workers)
    assert {fault.kind for fault in faults} == set(Kind) - {Kind.STORE_SLOW}
    assert {fault.target for fault in faults if fault.kind is Kind.PAUSE} == {"director", "generate"}


def test_a_pause_is_longer_than_a_session_and_no_fault_begins_before_the_one_before_has_ended() -> None:
    for seed in range(20):
        faults = full(seed, LINE)
        assert all(fault.lasts_s > LINE.session_s for fault in faults if fault.kind is Kind.PAUSE)
        assert all(after.at_s > before.at_s + before.lasts_s for before, after in pairwise(faults))
        assert end_s(faults) > faults[-1].at_s


def test_the_small_form_has_as_many_kinds_as_faults_allow() -> None:
    for seed in range(20):
        kinds = Counter(fault.kind for fault in small(seed, LINE, 6))
        assert kinds.total() == len(kinds) == 6
