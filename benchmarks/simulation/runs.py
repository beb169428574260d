"""Three questions to a simulated line: how long a batch takes, how busy engines are in the long run, what failures cost."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import simpy

from benchmarks.simulation.line import Job, Line, Shape, Times
from benchmarks.simulation.role import Steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """What ends generate workers, and for how long. Means of exponential times in s; 0: never."""

    kill_every_s: float = 0.0
    """Of each worker: its process ends, and starts again at once."""
    restart_s: float = 0.0
    node_every_s: float = 0.0
    """Of each server of `node_gpus` workers: it is gone. Its partitions move after the session, and come back with it."""
    node_gpus: int = 8
    session_s: float = 20.0
    repair_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Steady:
    """A line in the long run."""

    busy_share: float
    """Of the engines' time, all together: what came to a stored segment."""
    segments_per_s: float
    kills: int = 0
    node_losses: int = 0


def makespan_s(jobs: Sequence[tuple[int, int]], shape: Shape, times: Times) -> float:
    """From the publication of all jobs, `(partition, segments)`, to the last finished video."""
    env = simpy.Environment()
    line = Line(env, shape, times)
    for partition, segments in jobs:
        line.submit(Job(partition=partition, segments=segments))
    env.run()
    assert len(line.totals.finished) == len(jobs), "a simulated job did not end"
    return max(job.finished_s for job in line.totals.finished)


def steady(
    shape: Shape,
    times: Times,
    *,
    jobs: int,
    segments: int,
    seconds: tuple[float, float],
    failures: Failures | None = None,
) -> Steady:
    """A line in which there are always `jobs`: one that ends is followed by another, in a partition that chance decides, as a hash does.

    `seconds`: what passes before counting begins, and for how long it is counted. It begins as such a line is in the long run, jobs
    spread over workers and each somewhere on its way: a large one would take days to come to it.
    """
    env, chance = simpy.Environment(), random.Random(7)  # noqa: S311 (repeatable)
    strikes = Strikes(env, chance)

    def job(partition: int, left: int) -> Job:
        return Job(partition=partition, segments=left)

    line = Line(env, shape, times, lambda _: line.submit(job(chance.randrange(len(shape.owners)), segments)))
    places = [[place for place, owner in enumerate(shape.owners) if owner == worker] for worker in range(shape.gpus)]
    for worker, count in enumerate(_spread(jobs, shape.gpus, chance)):
        for _ in range(count):
            line.submit(job(chance.choice(places[worker]), chance.randint(1, segments)))
    if failures:
        strikes.begin(line, shape, failures)
    before, counted_s = seconds
    env.run(until=before)
    at = list(line.totals.segments)
    env.run(until=before + counted_s)
    done = [now - then for now, then in zip(line.totals.segments, at, strict=True)]
    return Steady(
        busy_share=sum(done) * times.engine_s / counted_s / shape.gpus,
        segments_per_s=sum(done) / counted_s,
        kills=strikes.kills,
        node_losses=strikes.node_losses,
    )


def _spread(jobs: int, workers: int, chance: random.Random) -> list[int]:
    """How many jobs each worker has: every way to spread them is as likely (Gordon and Newell, 1967; equal stations)."""
    bars = sorted(chance.sample(range(jobs + workers - 1), workers - 1))
    return [after - before - 1 for before, after in pairwise((-1, *bars, jobs + workers - 1))]


class Strikes:
    """Ends workers by chance, and counts."""

    def __init__(self, env: simpy.Environment, chance: random.Random) -> None:
        self._env = env
        self._chance = chance
        self._lost: set[int] = set()
        self.kills = 0
        self.node_losses = 0

    def begin(self, line: Line, shape: Shape, failures: Failures) -> None:
        """From now on."""
        nodes = [tuple(range(shape.gpus))[n : n + failures.node_gpus] for n in range(0, shape.gpus, failures.node_gpus)]
        if failures.kill_every_s:
            for worker in range(shape.gpus):
                self._env.process(self._kills(line, worker, failures))
        if failures.node_every_s:
            for node in nodes:
                self._env.process(self._losses(line, node, shape.gpus, failures))

    def _kills(self, line: Line, worker: int, failures: Failures) -> Steps:
        while True:
            yield self._env.timeout(self._chance.expovariate(1 / failures.kill_every_s))
            if worker in self._lost:
                continue
            self.kills += 1
            line.generate.kill(worker)
            yield self._env.timeout(failures.restart_s)
            if worker not in self._lost:
                line.generate.restart(worker)

    def _losses(self, line: Line, node: Sequence[int], gpus: int, failures: Failures) -> Steps:
        while True:
            yield self._env.timeout(self._chance.expovariate(1 / failures.node_every_s))
            self.node_losses += 1
            self._lost.update(node)
            for worker in node:
                line.generate.kill(worker)
            yield self._env.timeout(failures.session_s)
            others = [worker for worker in range(gpus) if worker not in self._lost]
            for worker in node if others else ():
                line.generate.give_to(worker, others)
            yield self._env.timeout(max(0.0, failures.repair_s - failures.session_s))
            self._lost.difference_update(node)
            for worker in node:
                line.generate.give_back(worker)
                line.generate.restart(worker)
