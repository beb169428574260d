"""What becomes of a release, look by look, and what its bad jobs have in common."""

from dataclasses import replace

import numpy as np
import pytest

from schemas.records import ReleaseChanged, ReleaseStage
from streams.releases.cause import Ended, cause_of
from streams.releases.gate import CLEAR, CLEAR_LOOKS, GATES, LOOKS, SHARES, Step, judged
from tests.releases.builders import release, side, step

NOW_US = 7


def life(candidate_rate: float, control_rate: float, seed: int) -> list[ReleaseChanged]:
    """Every state of a release whose jobs come 200 at a time and are failed or not by chance."""
    random = np.random.default_rng(seed)
    states, sides = [release()], [[0, 0, 0, 0]]
    while states[-1].stage in (ReleaseStage.RUNNING, ReleaseStage.WIDENED):
        n_c = random.binomial(200, states[-1].share)
        more = (n_c, random.binomial(n_c, candidate_rate), 200 - n_c, random.binomial(200 - n_c, control_rate))
        if states[-1].step == len(sides):
            sides.append([0, 0, 0, 0])
        sides[-1] = [int(a + b) for a, b in zip(sides[-1], more, strict=True)]
        steps = [step(side(c, failed=bad_c), side(k, failed=bad_k)) for c, bad_c, k, bad_k in sides]
        after = judged(states[-1], steps, NOW_US)
        states += [after] if after else []
    return states


def test_a_release_as_good_as_before_is_widened_step_by_step_and_accepted() -> None:
    states = life(0.05, 0.05, seed=1)
    assert states[-1].stage is ReleaseStage.ACCEPTED
    assert list(dict.fromkeys(state.share for state in states)) == [*SHARES, 1.0]
    assert [states[-1].step, len(states) <= LOOKS + 1] == [len(SHARES), True]


def test_a_release_that_is_much_worse_is_rolled_back_before_it_is_wide() -> None:
    states = life(0.5, 0.05, seed=1)
    assert (states[-1].stage, states[-1].share) == (ReleaseStage.ROLLED_BACK, 0.0)
    assert max(state.share for state in states) <= 0.05
    assert states[-1].reason.startswith("failed: ")


def test_a_rolled_back_release_stays_so() -> None:
    for stage in (ReleaseStage.ROLLED_BACK, ReleaseStage.STOPPED, ReleaseStage.ACCEPTED):
        assert judged(release(stage=stage), [step(side(400), side(400))], NOW_US) is None


def test_a_look_needs_new_jobs() -> None:
    steps = [step(side(30), side(3000, failed=150))]
    seen = judged(release(), steps, NOW_US)
    assert seen is not None
    assert (seen.looked_jobs, seen.clear_looks) == (30, 1)
    assert judged(seen, steps, NOW_US) is None


def test_a_release_is_widened_only_after_looks_in_a_row_that_are_clear() -> None:
    state: ReleaseChanged = release()
    for look in range(CLEAR_LOOKS):
        assert (state.share, state.clear_looks) == (SHARES[0], look)
        after = judged(state, [step(side(20 * (look + 1)), side(2000 * (look + 1), failed=100 * (look + 1)))], NOW_US)
        assert after is not None
        state = after
    assert (state.stage, state.share, state.step, state.clear_looks) == (ReleaseStage.WIDENED, SHARES[1], 1, 0)


def test_between_clear_and_the_limit_it_is_neither_widened_nor_rolled_back() -> None:
    almost = replace(release(), clear_looks=CLEAR_LOOKS - 1)
    held = judged(almost, [step(side(200, failed=25), side(2000, failed=100))], NOW_US)
    assert held is not None
    worst = max(held.looks, key=lambda look: look.level)
    assert CLEAR * worst.limit < worst.level < worst.limit
    assert (held.stage, held.share, held.clear_looks) == (ReleaseStage.RUNNING, SHARES[0], 0)


@pytest.mark.parametrize("gate", GATES)
def test_every_gate_can_roll_back(gate: str) -> None:
    after = judged(release(), [step(side(100, **{gate: 60}), side(1000, **{gate: 50}))], NOW_US)
    assert after is not None
    assert after.stage is ReleaseStage.ROLLED_BACK
    assert after.reason == f"{gate}: 60 of {_of(gate, 100, 60)} jobs against 50 of {_of(gate, 1000, 50)}"


def _of(gate: str, ended: int, bad: int) -> int:
    return getattr(side(ended, **{gate: bad}), GATES[gate])


def test_without_players_the_gates_of_players_say_nothing() -> None:
    quiet: list[Step] = [
        step(replace(side(300, failed=15), played=0), replace(side(3000, failed=150), played=0)) for _ in range(2)
    ]
    after = judged(release(), quiet, NOW_US)
    assert after is not None
    assert {look.gate: (look.level, look.detectable) for look in after.looks if look.candidate == 0} == {
        "stalled": (0.0, 1.0),
        "slow_start": (0.0, 1.0),
        "decode_errors": (0.0, 1.0),
    }


def test_the_cause_names_what_bad_jobs_have_and_others_have_not() -> None:
    worker, gate = ("worker", "generate-1"), ("gate", "vmaf")
    jobs = [
        Ended(
            job_id=f"j{n}",
            bad=n % 10 == 0,
            traits=frozenset({worker} if n % 2 == 0 else set())
            | ({gate} if n % 10 == 0 else set())
            | {("segment", "0")},
        )
        for n in range(100)
    ]
    cause = cause_of("sharper", "warned", jobs, NOW_US)
    assert [(s.kind, s.name, s.bad_seen, s.bad, s.others_seen, s.others) for s in cause.suspects] == [
        ("gate", "vmaf", 10, 10, 0, 90),
        ("worker", "generate-1", 10, 10, 40, 90),
    ]
    assert cause.examples == tuple(f"j{n}" for n in range(0, 100, 10))
