"""A simulated line keeps the rules of the real one: orders, look-ahead, limits, and what a failure loses."""

from dataclasses import fields

import pytest
import simpy

from benchmarks.simulation.line import Job, Line, Shape, Times
from benchmarks.simulation.role import Role, Steps, dealt
from benchmarks.simulation.runs import Failures, Steady, makespan_s, steady

_COUNTED_S = 10_000.0


def times(**changes: float) -> Times:
    """Whole and halved seconds, so that sums are exact."""
    values = {
        "intake_s": 0.5,
        "dispatch_s": 0.25,
        "engine_s": 8.0,
        "store_s": 0.5,
        "hop_s": 0.25,
        "stitch_s": 1.0,
        "check_s": 2.0,
        "assemble_s": 4.0,
        "video_check_s": 0.5,
        "finish_s": 0.25,
    }
    return Times(**{**values, **changes})


def shape(*, partitions: int = 4, gpus: int = 1, slots: int = 4, jobs_in_flight: int = 16) -> Shape:
    return Shape(
        owners=dealt(partitions, gpus), others=dealt(partitions, 1), slots=slots, jobs_in_flight=jobs_in_flight
    )


def test_one_job_alone_takes_exactly_the_sum_of_its_parts() -> None:
    segments = 0.5 + 10 * (0.25 + 8.0 + 0.5 + 0.25)
    last_piece = 1.0 + 2.0 + 0.25
    video = 4.0 + 0.5 + 0.25
    assert makespan_s([(0, 10)], shape(), times()) == segments + last_piece + video


def test_a_job_in_another_partition_fills_the_gaps_between_segments() -> None:
    """The engine never waits: 20 segments back to back, then what follows the last."""
    engine = 0.5 + 0.25 + 20 * 8.0
    behind = 0.5 + 0.25 + 1.0 + 2.0 + 0.25 + 4.0 + 0.5 + 0.25
    assert makespan_s([(0, 10), (1, 10)], shape(), times()) == engine + behind


def test_jobs_of_one_partition_leave_the_gaps() -> None:
    """One record of a partition at a time: store and dispatch of neighbours do not overlap the engine."""
    apart, together = (makespan_s([(0, 10), (place, 10)], shape(), times()) for place in (1, 0))
    assert together - apart == pytest.approx(19 * (0.25 + 0.5))


def test_a_slow_stitcher_holds_the_engine_back_at_four_segments() -> None:
    """Thirty pieces of 100 s: they bound the job, and the engine runs four ahead at most."""
    env = simpy.Environment()
    line = Line(env, shape(), times(stitch_s=100.0))
    job = Job(partition=0, segments=30)
    line.submit(job)
    ahead = 0
    while env.peek() < float("inf"):
        env.step()
        ahead = max(ahead, job.generated - job.stitched)
    assert ahead == 4
    assert job.finished_s == pytest.approx(9.5 + 30 * 100.0 + 29 * 0.25 + 2.25 + 4.75)


def test_no_more_jobs_of_a_partition_run_than_the_director_lets() -> None:
    one, two = (makespan_s([(0, 2)] * 2, shape(jobs_in_flight=n), times()) for n in (1, 2))
    alone = makespan_s([(0, 2)], shape(), times())
    assert one == 2 * alone - 0.5  # intake of both at once
    assert two < one


def test_an_uneven_deal_of_partitions_is_as_slow_as_the_fullest_worker() -> None:
    jobs = [(place, 10) for place in (0, 1, 2, 3)]
    even = makespan_s(jobs, shape(gpus=4), times())
    skew = makespan_s([(place, 10) for place in (0, 0, 1, 1)], shape(gpus=4), times())
    assert even == makespan_s([(0, 10)], shape(), times())
    assert skew > 1.8 * even


def test_a_killed_worker_does_what_it_had_in_hand_again_and_nothing_else() -> None:
    env = simpy.Environment()
    begun: list[tuple[float, str]] = []
    done: list[tuple[float, str]] = []

    def work(_: int, record: str) -> Steps:
        begun.append((env.now, record))
        yield env.timeout(10.0)
        done.append((env.now, record))

    role = Role(env, (0,), 1, work)
    for record in ("a", "b"):
        role.put(0, record)
    env.run(until=13.0)
    assert role.kill(0) == 1
    env.run(until=15.0)
    role.restart(0)
    env.run()
    assert begun == [(0.0, "a"), (10.0, "b"), (15.0, "b")]
    assert done == [(10.0, "a"), (25.0, "b")]


def test_partitions_of_a_lost_worker_are_served_by_another_and_come_back() -> None:
    env = simpy.Environment()
    served: list[tuple[int, str]] = []

    def work(worker: int, record: str) -> Steps:
        yield env.timeout(1.0)
        served.append((worker, record))

    role = Role(env, (0, 1), 1, work)
    role.put(0, "a")
    role.kill(0)
    env.run(until=5.0)
    assert not served
    role.give_to(0, [1])
    env.run(until=7.0)
    role.give_back(0)
    role.restart(0)
    role.put(0, "b")
    env.run()
    assert served == [(1, "a"), (0, "b")]


def test_failures_cost_what_they_should() -> None:
    """A kill costs the restart, half a segment of the engine on average, and a segment that was made and not yet stored."""
    calm = in_the_long_run(shape(), Failures())
    struck = in_the_long_run(shape(), Failures(kill_every_s=400.0, restart_s=5.0))
    lost_s = (calm.busy_share - struck.busy_share) * _COUNTED_S / struck.kills
    assert calm.busy_share == pytest.approx(1.0, abs=0.001)
    assert 5.0 + 4.0 < lost_s < 5.0 + 4.0 + 2.0


def test_a_lost_node_costs_its_repair_and_the_others_go_on() -> None:
    failures = Failures(node_every_s=1000.0, node_gpus=1, repair_s=100.0)
    found = in_the_long_run(shape(partitions=8, gpus=2), failures)
    assert found.node_losses >= 5
    assert found.busy_share == pytest.approx(1 - found.node_losses * 100.0 / (2 * _COUNTED_S), abs=0.01)


def in_the_long_run(shape: Shape, failures: Failures) -> Steady:
    return steady(shape, times(), jobs=40 * shape.gpus, segments=4, seconds=(100.0, _COUNTED_S), failures=failures)


def test_a_long_line_is_as_busy_as_a_closed_network_from_its_first_minute() -> None:
    """Of jobs whose time is the engine's: 40 workers with five jobs each are busy 200 / 239 of it."""
    quick = Times(**{field.name: 8.0 if field.name == "engine_s" else 0.0 for field in fields(Times)})
    found = steady(shape(partitions=160, gpus=40), quick, jobs=200, segments=3, seconds=(60.0, 2000.0))
    assert found.busy_share == pytest.approx(200 / 239, abs=0.04)
