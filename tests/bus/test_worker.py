"""The worker loop on the real broker: order, slots, poison, aborts, stopping."""

import itertools
import threading
import time
from collections.abc import Sequence

import pytest

from infra.bus.dead_letters import CAP, dead_letters
from infra.bus.message import Message
from infra.bus.outputs import Output
from infra.bus.process import SUSPECT
from infra.bus.requests import event_in
from infra.bus.work import ThreadWork
from infra.bus.worker import run_worker
from infra.bus.writer import Writer
from infra.settings import Settings
from schemas.codec import encode
from schemas.headers import trace_id, trace_root, traceparent_of
from schemas.records import PromptRefused, SegmentFailed
from tests.bus.foreign import send_with_raw_header
from tests.bus.line import (
    ANSWERED,
    ASKED,
    WORKER,
    all_read,
    answer,
    answers,
    ask,
    eventually,
    jobs_by_partition,
    messages,
    question,
    questions,
    reply,
    worker,
)
from tests.bus.processes import worker_process

TOO_LARGE = "x" * (5 << 20)
"""More than a broker takes on ordinary topics, less than the producer's own limit: the transaction has to be aborted."""


class Gate:
    """A handler that keeps questions of chosen jobs until it is opened, and remembers what it was asked."""

    def __init__(self, *jobs: str) -> None:
        self._jobs = jobs
        self.open = threading.Event()
        self.seen: list[tuple[str, int]] = []

    def __call__(self, message: Message) -> list[PromptRefused]:
        asked = event_in(message, SegmentFailed)
        self.seen.append((asked.job_id, asked.segment))
        if asked.job_id in self._jobs:
            assert self.open.wait(60)
        return reply(message)


class TooLargeOnce:
    """The first answer to a job aborts its transaction."""

    def __init__(self, job_id: str) -> None:
        self._job_id = job_id

    def __call__(self, message: Message) -> list[PromptRefused]:
        if message.job_id == self._job_id:
            self._job_id = ""
            return [answer(message.job_id, 0, TOO_LARGE)]
        return reply(message)


def poison(**fields: object) -> Output:
    defaults = {"topic": ASKED, "key": b"boat", "value": b"\x00\x00not a record", "headers": ()}
    return Output(**(defaults | fields))  # pyright: ignore[reportArgumentType]


def produce(settings: Settings, outputs: Sequence[Output]) -> None:
    with Writer(settings) as writer:
        writer.write(outputs)


def test_every_question_is_answered_once_and_in_order(bus_settings: Settings) -> None:
    asked = questions(["boat", "train", "kite"], range(20))
    with worker(bus_settings):
        ask(bus_settings, asked)
        eventually(lambda: all_read(bus_settings, WORKER), "everything is read")
    found = answers(bus_settings)
    assert sorted(found) == sorted(asked)
    assert [n for job, n in found if job == "boat"] == list(range(20))


def test_answers_carry_the_trace_and_an_id_of_their_own_making(bus_settings: Settings) -> None:
    with worker(bus_settings):
        ask(bus_settings, [("boat", 1)])
        eventually(lambda: all_read(bus_settings, WORKER), "the question is read")
    [asked], [answered] = messages(bus_settings, ASKED), messages(bus_settings, ANSWERED)
    headers = dict(answered.headers)
    assert headers["ce_id"] == f"{asked.id}/0".encode()
    assert headers["ce_source"] == b"longtake/test-worker"
    assert headers["ce_type"] == b"longtake.PromptRefused"
    assert trace_id(traceparent_of(answered.headers, otherwise="")) == trace_id(trace_root("boat"))
    assert answered.key == b"boat"


def test_poison_becomes_a_dead_letter_with_its_own_bytes_and_the_next_record_is_processed(
    bus_settings: Settings,
) -> None:
    headers = (("traceparent", b"\xff\x00"), ("twice", b"1"), ("twice", b""), ("none", None), ("dlq.topic", b"a lie"))
    bad = [
        poison(headers=headers),
        poison(value=b""),
        poison(value=None),
        poison(key=None),
        poison(value=b"\x00" + bytes((4 << 20) - 2000)),
    ]
    with worker(bus_settings):
        produce(bus_settings, bad)
        ask(bus_settings, [("boat", 1)])
        eventually(lambda: all_read(bus_settings, WORKER), "everything is read")
    letters = list(dead_letters(bus_settings))
    assert sorted(answers(bus_settings)) == [("boat", 1)]
    for output in bad:
        [letter] = [x for x in letters if (x.original.key, x.original.value) == (output.key, output.value)]
        assert letter.original.headers == output.headers
        assert letter.original.topic == ASKED
        assert (letter.group, letter.field) == (WORKER.group, "value")
    assert len(letters) == len(bad)


def test_a_header_whose_name_is_no_text_does_not_stop_the_worker(
    bus_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = questions(["boat"], range(50))
    send_with_raw_header(bus_settings.kafka, ASKED, b"boat", [encode(question(*q)) for q in asked], monkeypatch)
    with worker_process(bus_settings) as process:
        ask(bus_settings, [("boat", 50)])
        eventually(lambda: all_read(bus_settings, WORKER), "everything is read")
        assert process.is_alive()
    assert answers(bus_settings) == questions(["boat"], range(51))


def test_a_row_of_nothing_but_dead_letters_stops_the_worker_before_it_drains_the_topic(bus_settings: Settings) -> None:
    produce(bus_settings, [poison(value=b"%d" % n) for n in range(CAP + 5)])
    with worker_process(bus_settings) as process:
        process.join(30)
        assert process.exitcode == SUSPECT
    assert len(list(dead_letters(bus_settings))) == CAP - 1


def test_a_terminated_worker_ends_in_order(bus_settings: Settings) -> None:
    ask(bus_settings, [("boat", 0)])
    with worker_process(bus_settings) as process:
        eventually(lambda: all_read(bus_settings, WORKER), "it is at work")
        process.terminate()
        process.join(10)
        assert process.exitcode == 0


def test_an_aborted_transaction_is_done_again_and_leaves_one_answer(bus_settings: Settings) -> None:
    held, aborted, *_ = jobs_by_partition(bus_settings)
    gate, too_large = Gate(held), TooLargeOnce(aborted)
    handlers = {held: gate, aborted: too_large}
    asked = questions([held, aborted], range(3))
    with worker(bus_settings, lambda message: handlers[message.job_id](message)):
        ask(bus_settings, [(held, 0), (held, 1)])
        eventually(lambda: gate.seen == [(held, 0)], "one record is in hand and one waits behind it")
        ask(bus_settings, [(aborted, 0), (aborted, 1)])
        eventually(lambda: len(answers(bus_settings)) == 2, "the aborted partition goes on")
        gate.open.set()
        ask(bus_settings, [(held, 2), (aborted, 2)])
        eventually(lambda: all_read(bus_settings, WORKER), "everything is read")
    assert sorted(answers(bus_settings)) == sorted(asked)


def test_slots_bound_the_work_in_hand_and_partitions_take_turns(bus_settings: Settings) -> None:
    settings = bus_settings.model_copy(update={"slots": 2})
    jobs = jobs_by_partition(settings)
    asked = questions(jobs, range(5))
    ask(settings, asked)
    now, most = 0, 0
    order: list[str] = []
    lock = threading.Lock()

    def handler(message: Message) -> list[PromptRefused]:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
            order.append(message.job_id)
        time.sleep(0.02)
        with lock:
            now -= 1
        return reply(message)

    with worker(settings, handler):
        eventually(lambda: all_read(settings, WORKER), "everything is read")
    assert most == 2
    assert sorted(answers(settings)) == sorted(asked)
    for job in jobs:
        turns = [turn for turn, served in enumerate(order) if served == job]
        assert max(b - a for a, b in itertools.pairwise(turns)) <= 2 * len(jobs)


def test_a_stopping_worker_commits_what_is_nearly_done_and_leaves_the_rest(bus_settings: Settings) -> None:
    bus_settings = bus_settings.model_copy(update={"drain_s": 1.0})
    nearly, endless, *_ = jobs_by_partition(bus_settings)
    gate = Gate(endless)
    with worker(bus_settings, gate):
        ask(bus_settings, [(endless, 0)])
        eventually(lambda: gate.seen == [(endless, 0)], "the worker has it in hand")
        ask(bus_settings, [(nearly, 0)])
        eventually(lambda: len(gate.seen) == 2, "the worker has both in hand")
    gate.open.set()
    assert answers(bus_settings) == [(nearly, 0)]
    with worker(bus_settings):
        eventually(lambda: all_read(bus_settings, WORKER), "the rest came again")
    assert sorted(answers(bus_settings)) == sorted([(nearly, 0), (endless, 0)])


def test_an_error_of_the_work_ends_the_worker_and_the_record_comes_again(bus_settings: Settings) -> None:
    ask(bus_settings, [("boat", 0)])

    def broken(_: Message) -> list[PromptRefused]:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_worker(bus_settings, WORKER, ThreadWork(broken, 1), threading.Event())
    with worker(bus_settings):
        eventually(lambda: all_read(bus_settings, WORKER), "the restart reads it")
    assert answers(bus_settings) == [("boat", 0)]
