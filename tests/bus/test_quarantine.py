"""A record that ends its worker three times is put aside with the evidence; one that cannot be worked at now lets others pass."""

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition, murmur2

from infra.bus.dead_letters import dead_letters
from infra.bus.errors import LaterError, LostWorkerError
from infra.bus.letter import DeadLetter
from infra.bus.marks import DEATHS, Begun, Marks
from infra.bus.message import Message
from infra.bus.process import run_process, stop_on_signals
from infra.bus.work import ThreadWork
from infra.bus.worker import run_worker
from infra.settings import Settings
from schemas.records import PromptRefused
from tests.bus.line import (
    ASKED,
    WORKER,
    all_read,
    answers,
    ask,
    eventually,
    in_thread,
    jobs_by_partition,
    questions,
    reply,
    worker,
)
from tests.bus.processes import in_process

HAND_S = 0.2
"""For how long a bomb lies in a hand: long enough to be noted."""


class Bomb:
    """A handler whose process dies of one job. Every time it begins that is a line in a file."""

    def __init__(self, job_id: str, file: Path) -> None:
        self._job_id = job_id
        self._file = file

    def __call__(self, message: Message) -> list[PromptRefused]:
        if message.job_id == self._job_id:
            with self._file.open("a") as file:
                file.write("begun\n")
            threading.Event().wait(HAND_S)
            os.kill(os.getpid(), signal.SIGKILL)
        return reply(message)


def serve(settings: Settings, handler: Callable[[Message], list[PromptRefused]]) -> None:
    work = ThreadWork(handler, settings.slots)
    run_process(lambda: run_worker(settings, WORKER, work, stop_on_signals()))


def letters(settings: Settings) -> list[DeadLetter]:
    return list(dead_letters(settings))


def text(settings: Settings, partition: int) -> str | None:
    """What stands with the group's committed offset."""
    consumer = Consumer({"bootstrap.servers": settings.kafka, "group.id": WORKER.group})
    try:
        (found,) = consumer.committed([TopicPartition(ASKED, partition)], 10)
        return found.metadata
    finally:
        consumer.close()


def test_a_record_that_kills_its_worker_three_times_is_put_aside_and_the_others_are_answered(
    bus_settings: Settings, tmp_path: Path
) -> None:
    bomb, *others = jobs_by_partition(bus_settings)
    begun = tmp_path / "begun"
    logs = bus_settings.state / "logs"
    logs.mkdir(parents=True)
    (logs / f"{WORKER.role}-0.log").write_text("the last words\n")
    asked = questions(others, range(2))
    ask(bus_settings, [*asked, (bomb, 0), (bomb, 1)])
    for _ in range(DEATHS):
        with in_process(serve, bus_settings, Bomb(bomb, begun)) as process:
            process.join(30)
            assert process.exitcode == -signal.SIGKILL
    with in_process(serve, bus_settings, Bomb("", begun)):
        eventually(lambda: all_read(bus_settings, WORKER), "everything is read")
    assert begun.read_text().count("begun") == DEATHS
    (letter,) = letters(bus_settings)
    assert (letter.original.job_id, letter.rule, letter.group) == (bomb, "quarantined", WORKER.group)
    assert letter.message.count(WORKER.name) == DEATHS
    assert "the last words" in letter.message
    assert sorted(answers(bus_settings)) == sorted([*asked, (bomb, 1)])


def test_what_a_stopping_worker_hands_back_is_not_held_against_the_record(bus_settings: Settings) -> None:
    settings = bus_settings.model_copy(update={"drain_s": 0.0})
    ask(settings, [("boat", 0)])
    release = threading.Event()
    partition = jobs_partition(settings, "boat")

    def slow(message: Message) -> list[PromptRefused]:
        release.wait(30)
        return reply(message)

    for _ in range(DEATHS + 1):
        with in_thread(lambda stop: run_worker(settings, WORKER, ThreadWork(slow, 1), stop)):
            eventually(lambda: bool(text(settings, partition)), "the record is in hand and noted")
        assert text(settings, partition) == ""
    release.set()
    with worker(settings):
        eventually(lambda: all_read(settings, WORKER), "everything is read")
    assert answers(settings) == [("boat", 0)]
    assert letters(settings) == []


def jobs_partition(settings: Settings, job_id: str) -> int:
    return murmur2(job_id.encode(), settings.partitions)


@pytest.mark.parametrize(("error", "put_aside"), [(ZeroDivisionError("0 frames"), True), (LostWorkerError(), False)])
def test_an_error_that_ends_its_worker_counts_unless_the_worker_was_lost_anyhow(
    bus_settings: Settings, error: Exception, put_aside: bool
) -> None:
    ask(bus_settings, [("boat", 0)])

    def broken(_: Message) -> list[PromptRefused]:
        raise error

    for _ in range(DEATHS):
        with pytest.raises(type(error)):
            run_worker(bus_settings, WORKER, ThreadWork(broken, 1), threading.Event())
    with worker(bus_settings):
        eventually(lambda: all_read(bus_settings, WORKER), "everything is read")
    assert [letter.message.count("ZeroDivisionError('0 frames')") for letter in letters(bus_settings)] == (
        [DEATHS] if put_aside else []
    )
    assert answers(bus_settings) == ([] if put_aside else [("boat", 0)])


def test_a_record_that_has_to_wait_lets_those_behind_it_pass_and_is_answered_once(bus_settings: Settings) -> None:
    tries: dict[int, int] = {0: 0, 1: 0}

    def away(message: Message) -> list[PromptRefused]:
        (asked,) = reply(message)
        number = int(asked.field)
        if number in tries and tries[number] < 2:
            tries[number] += 1
            raise LaterError("the store is away")
        return [asked]

    with worker(bus_settings, away):
        ask(bus_settings, questions(["boat"], range(20)))
        eventually(lambda: len(answers(bus_settings)) == 20, "everything is answered")
    found = answers(bus_settings)
    assert [number for _, number in found[:18]] == list(range(2, 20))
    assert sorted(number for _, number in found[18:]) == [0, 1]
    assert letters(bus_settings) == []


def test_an_error_of_the_store_is_no_reason_to_end_a_worker(bus_settings: Settings) -> None:
    failures = [OSError("no space left"), OSError("no route")]

    def full(message: Message) -> list[PromptRefused]:
        if failures:
            raise failures.pop()
        return reply(message)

    with worker(bus_settings, full):
        ask(bus_settings, [("boat", 0)])
        eventually(lambda: answers(bus_settings) == [("boat", 0)], "it is answered")


# --- marks -------------------------------------------------------------------------------------------------------------


def record(offset: int = 7) -> Message:
    return Message(topic=ASKED, partition=0, offset=offset, key=b"boat", value=b"", headers=(), timestamp_us=0)


def after(marks: Marks, mark: str, offset: int = 7) -> tuple[Begun, ...]:
    marks.found(record(), offset, mark)
    return marks.past(record())


def begun(marks: Marks) -> str:
    return marks.begin([record()], 5)[ASKED, 0]


def test_a_mark_of_the_same_slot_and_another_process_is_a_death() -> None:
    first, second, third = (Marks("generate-0", process) for process in "abc")
    assert after(first, "") == ()
    assert len(after(second, begun(first))) == 1
    assert len(after(third, begun(second))) == 2


def test_a_mark_of_this_process_or_another_slot_is_none_but_what_it_says_of_before_counts() -> None:
    died, alive, other = Marks("generate-0", "a"), Marks("generate-0", "b"), Marks("generate-1", "c")
    assert len(after(alive, begun(died))) == 1
    mark = begun(alive)
    assert len(after(alive, mark)) == 1
    assert len(after(other, mark)) == 1
    assert len(after(Marks("generate-1", "d"), begun(other))) == 2


def test_a_mark_is_of_one_offset_and_what_is_no_mark_says_nothing() -> None:
    first, second = Marks("generate-0", "a"), Marks("generate-0", "b")
    assert after(second, begun(first), offset=6) == ()
    for foreign in ("hello", "{}", "[1]"):
        assert after(second, foreign) == ()


def test_what_is_handed_back_leaves_the_mark_as_it_was() -> None:
    first, second, third = (Marks("generate-0", process) for process in "abc")
    after(first, "")
    after(second, begun(first))
    begun(second)
    given = second.give_back([record()])[ASKED, 0]
    assert len(after(third, given)) == 1


def test_marks_fit_into_what_brokers_keep() -> None:
    marks = [Marks("longtake.check-pieces-1000", str(n)) for n in range(6)]
    text = ""
    for each in marks:
        after(each, text)
        text = each.died(record(), 1 << 60, "x" * 5000)[ASKED, 0]
    assert len(text.encode()) < 4096
