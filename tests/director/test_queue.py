"""Who runs and who waits: limits, fairness between tenants, and what a queue knows after a restart."""

import time
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from schemas import records as r
from streams.jobs import plan_of
from streams.queueing import JobQueue, Limits
from tests.director.builders import START_US, Line, decider, message, prompt

ROW = Line()
ROW.take(ROW.decider.decide(message(prompt()), None, START_US))


def row(job_id: str, tenant: str, stage: r.Stage = r.Stage.QUEUED, *, frames: int = 100) -> r.JobState:
    """As the director would write it, in short."""
    plan = replace(plan_of(ROW.job), frames=frames)
    return replace(ROW.job, job_id=job_id, tenant=tenant, stage=stage, plan=plan)


@dataclass
class Partition:
    """A queue and its rows."""

    limits: Limits
    rows: dict[str, r.JobState] = field(default_factory=dict)
    started: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.queue = JobQueue(self.limits)

    def put(self, after: r.JobState) -> None:
        self.queue.saw(self.rows.get(after.job_id), after)
        self.rows[after.job_id] = after
        while (job_id := self.queue.next()) is not None:
            self.started.append(job_id)
            waiting = self.rows[job_id]
            self.rows[job_id] = replace(waiting, stage=r.Stage.GENERATING)
            self.queue.saw(waiting, self.rows[job_id])

    def submit(self, tenant: str, count: int, **fields: Any) -> None:
        for number in range(count):
            self.put(row(f"{tenant}-{number}", tenant, **fields))

    def end(self, job_id: str, stage: r.Stage = r.Stage.FINISHED) -> None:
        self.put(replace(self.rows[job_id], stage=stage))

    def run_out(self) -> None:
        """Until nothing runs: the longest running job ends first."""
        for job_id in self.started:
            if self.rows[job_id].stage is r.Stage.GENERATING:
                self.end(job_id)


def tenants(started: list[str]) -> str:
    return "".join(job_id[0] for job_id in started)


def test_no_more_run_than_the_limits_allow_and_all_run_in_the_end_in_order() -> None:
    line = Partition(Limits(in_flight=5, tenant_in_flight=3))
    line.submit("a", 20)
    assert tenants(line.started) == "aaa"
    line.submit("b", 20)
    assert tenants(line.started) == "aaabb"
    line.run_out()
    assert [j for j in line.started if j[0] == "a"] == [f"a-{n}" for n in range(20)]
    assert len(line.started) == 40


def test_one_job_behind_a_thousand_of_another_tenant_starts_next() -> None:
    line = Partition(Limits(in_flight=4, tenant_in_flight=4))
    line.submit("a", 1000)
    line.submit("b", 1)
    line.end("a-0")
    assert line.started[-1] == "b-0"


@pytest.mark.parametrize("frames", [10, 1000])
def test_frames_are_shared_by_weight(frames: int) -> None:
    line = Partition(Limits(in_flight=1, tenant_in_flight=1, weights={"a": 3.0}))
    line.submit("a", 1000)
    line.submit("b", 1000, frames=frames)
    while len(line.started) < 400:
        line.end(line.started[-1])
    given = Counter({"a": 0, "b": 0})
    for job_id in line.started:
        given[job_id[0]] += 100 if job_id[0] == "a" else frames
    assert given["a"] / given["b"] == pytest.approx(3.0, rel=0.05)


def test_a_tenant_that_was_away_is_owed_nothing() -> None:
    line = Partition(Limits(in_flight=1, tenant_in_flight=1))
    line.submit("a", 100)
    while len(line.started) < 50:
        line.end(line.started[-1])
    line.submit("b", 100)
    while len(line.started) < 70:
        line.end(line.started[-1])
    assert tenants(line.started[50:]) in ("ab" * 10, "ba" * 10)


def test_cancelled_jobs_leave_the_queue_and_retried_ones_come_back_at_its_end() -> None:
    line = Partition(Limits(in_flight=1, tenant_in_flight=1))
    line.submit("a", 4)
    line.end("a-1", r.Stage.CANCELLED)
    line.end("a-0", r.Stage.FAILED)
    line.put(row("a-1", "a"))
    line.run_out()
    assert line.started == ["a-0", "a-2", "a-3", "a-1"]


def test_a_queue_follows_from_its_rows() -> None:
    line = Partition(Limits(in_flight=3, tenant_in_flight=2))
    line.submit("a", 10)
    line.submit("b", 10)
    again = Partition(line.limits, rows=line.rows)
    for known in line.rows.values():
        again.queue.saw(None, known)
    assert again.queue.next() is None
    again.end("b-0")
    assert again.started == ["b-1"]


def test_a_full_queue_says_so_for_its_tenant_only() -> None:
    line = Partition(Limits(in_flight=1, tenant_in_flight=1, tenant_queue=3))
    line.submit("a", 4)
    full = line.queue.full(row("a-4", "a"))
    assert full is not None
    assert (full.field, full.rule) == ("tenant", "queue")
    assert line.queue.full(row("b-0", "b")) is None
    line.end("a-0")
    assert line.queue.full(row("a-4", "a")) is None


def test_what_a_job_costs_does_not_grow_with_the_queue() -> None:
    def seconds(tenants: int, jobs: int) -> float:
        line = Partition(Limits(in_flight=4, tenant_in_flight=2))
        rows = [row(f"{t}-{n}", str(t)) for n in range(jobs) for t in range(tenants)]
        start = time.process_time()
        for each in rows:
            line.put(each)
        line.run_out()
        assert len(line.started) == len(rows)
        return (time.process_time() - start) / len(rows)

    small = max(seconds(10, 20) for _ in range(5))
    deep, wide = (min(seconds(tenants, jobs) for _ in range(2)) for tenants, jobs in ((2, 2000), (2000, 2)))
    assert max(deep, wide) < 10 * small


def test_a_tenant_header_names_the_tenant_of_a_prompt_that_names_none() -> None:
    headers = (("tenant", b"studio"),)
    for wish, tenant in ((prompt(), "studio"), (prompt(tenant="mine"), "mine")):
        decision = decider().decide(message(wish, headers=headers), None, START_US)
        assert decision.state
        assert decision.state.tenant == tenant
        assert decision.state.content_hash == decider().decide(message(wish), None, START_US).state.content_hash  # type: ignore[union-attr]


def test_a_tenant_header_that_is_no_name_is_refused() -> None:
    decision = decider().decide(message(prompt(), headers=(("tenant", b"../etc"),)), None, START_US)
    assert decision.refused
    assert (decision.refused.field, decision.refused.rule) == ("tenant", "characters")
