"""How long silence is all right: per request, per process, and learnt from the engine's own steps."""

from concurrent.futures import Future

from gpu_consumers.hands import Hand, Hands
from gpu_consumers.patience import Patience
from gpu_consumers.pipe import Stage
from tests.gpu_consumers.requests import segment_request

LIMIT_S = 600.0


def hands(*numbers: int) -> Hands:
    some = Hands(LIMIT_S)
    some.restart(0.0)
    for number in numbers:
        some.add(Hand(number=number, request=segment_request(), answer=Future()), 0.0)
    return some


def overdue(some: Hands, now_s: float) -> tuple[int | None, ...]:
    stall = some.overdue(now_s)
    return (stall.number,) if stall else ()


def test_nothing_is_overdue_when_nothing_is_in_hand() -> None:
    assert overdue(hands(), 1e9) == ()
    assert hands().left_s(1e9) is None


def test_a_request_is_overdue_when_it_makes_no_step_for_the_limit() -> None:
    some = hands(1, 2)
    some.step(1, Stage.DENOISE, 100.0)
    some.heard(100.0)
    assert overdue(some, 699.9) == ()
    assert some.left_s(699.0) == 1.0
    assert overdue(some, 700.0) == (1,)


def test_the_steps_of_another_request_do_not_hide_a_stall() -> None:
    some = hands(1, 2)
    some.step(1, Stage.DECODE, 100.0)
    for now_s in range(100, 701, 100):
        some.step(2, Stage.DENOISE, now_s)
        some.heard(now_s)
    assert overdue(some, 700.0) == (1,)


def test_a_request_in_a_queue_may_wait_as_long_as_the_process_is_heard() -> None:
    some = hands(1)
    some.heard(5000.0)
    assert overdue(some, 5599.0) == ()
    assert overdue(some, 5600.0) == (None,)


def test_a_new_process_has_a_minute_more_to_say_something() -> None:
    some = hands(1)
    assert overdue(some, 659.0) == ()
    assert overdue(some, 660.0) == (None,)


def test_a_stall_is_found_in_seconds_once_the_engine_has_shown_its_pace() -> None:
    some = hands(1)
    for step in range(10):
        some.step(1, Stage.DENOISE, 0.1 * step)
    some.heard(0.9)
    assert overdue(some, 30.8) == ()
    assert overdue(some, 31.0) == (1,)


def test_a_new_process_warms_up_again() -> None:
    some = hands(1)
    for step in range(10):
        some.step(1, Stage.DENOISE, 0.1 * step)
    some.restart(1.0)
    some.step(1, Stage.DENOISE, 2.0)
    assert overdue(some, 599.0) == ()


def test_a_slow_engine_gets_twenty_of_its_slowest_steps() -> None:
    patience = Patience(LIMIT_S)
    for _ in range(7):
        patience.saw("denoise", 2.0)
    assert patience.timeout_s("denoise") == LIMIT_S
    patience.saw("denoise", 4.0)
    assert patience.timeout_s("denoise") == 80.0
    assert patience.timeout_s("decode") == LIMIT_S


def test_the_timeout_is_never_above_the_limit_nor_below_half_a_minute() -> None:
    patience = Patience(LIMIT_S)
    for _ in range(8):
        patience.saw("slow", 50.0)
        patience.saw("quick", 0.01)
    assert patience.timeout_s("slow") == LIMIT_S
    assert patience.timeout_s("quick") == 30.0


def test_a_crash_is_remembered_of_those_the_engine_worked_on() -> None:
    some = hands(1, 2, 3)
    some.step(1, Stage.DENOISE, 1.0)
    some.step(2, Stage.STORE, 1.0)
    some.crashed()
    assert [(suspect.number, suspect.crashes) for suspect in some.suspects()] == [(1, 1), (2, 0), (3, 0)]
