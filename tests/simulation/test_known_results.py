"""The simulation against results that queueing theory has."""

import random

import pytest
import simpy

from benchmarks.simulation.role import Role, Steps, dealt


def mean_time_in_system_s(load: float, service_s: list[float]) -> float:
    """Of one worker with one partition, Poisson arrivals, and these service times of mean 1."""
    env, chance = simpy.Environment(), random.Random(3)
    times_s: list[float] = []

    def work(_: int, record: tuple[float, float]) -> Steps:
        yield env.timeout(record[1])
        times_s.append(env.now - record[0])

    role = Role(env, (0,), 1, work)

    def arrivals() -> Steps:
        for seconds in service_s:
            yield env.timeout(chance.expovariate(load))
            role.put(0, (env.now, seconds))

    env.process(arrivals())
    env.run()
    return sum(times_s) / len(times_s)


def test_a_worker_with_exponential_work_is_an_m_m_1_queue() -> None:
    chance = random.Random(5)
    found = mean_time_in_system_s(0.7, [chance.expovariate(1.0) for _ in range(30_000)])
    assert found == pytest.approx(1 / (1 - 0.7), rel=0.06)


def test_a_worker_with_constant_work_is_an_m_d_1_queue() -> None:
    found = mean_time_in_system_s(0.7, [1.0] * 30_000)
    assert found == pytest.approx(1 + 0.7 / (2 * (1 - 0.7)), rel=0.04)


def test_slots_are_the_servers_of_an_m_m_c_queue() -> None:
    """Erlang C: four servers at load 0.8 leave a mean wait of 0.7455 services."""
    env, chance = simpy.Environment(), random.Random(11)
    times_s: list[float] = []

    def work(_: int, record: tuple[float, float]) -> Steps:
        yield env.timeout(record[1])
        times_s.append(env.now - record[0])

    role = Role(env, dealt(400, 1), 4, work)  # as good as a partition for each record

    def arrivals() -> Steps:
        for number in range(30_000):
            yield env.timeout(chance.expovariate(4 * 0.8))
            role.put(number % 400, (env.now, chance.expovariate(1.0)))

    env.process(arrivals())
    env.run()
    assert sum(times_s) / len(times_s) == pytest.approx(1.7455, rel=0.06)


@pytest.mark.parametrize(("workers", "jobs"), [(4, 4), (10, 40)])
def test_jobs_that_go_round_by_chance_keep_workers_as_busy_as_a_closed_network(workers: int, jobs: int) -> None:
    """Gordon and Newell, 1967: each of M equal stations is busy N / (N + M - 1) of the time."""
    env, chance, busy_s, seconds = simpy.Environment(), random.Random(2), [0.0], 25_000 / workers

    def work(_: int, __: object) -> Steps:
        taken_s = chance.expovariate(1.0)
        yield env.timeout(taken_s)
        busy_s[0] += taken_s
        role.put(chance.randrange(workers), None)

    role: Role[None] = Role(env, dealt(workers, workers), 1, work)
    for number in range(jobs):
        role.put(number % workers, None)
    env.run(until=seconds)
    assert busy_s[0] / seconds / workers == pytest.approx(jobs / (jobs + workers - 1), abs=0.02)
