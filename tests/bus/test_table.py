"""The director's loop on the real broker: batches, aborts, scans, foreign partitioners."""

import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from confluent_kafka import TopicPartition

from infra.bus import clients, topics
from infra.bus.dead_letters import dead_letters
from infra.bus.decision import Decision
from infra.bus.errors import BusError, TopicsError
from infra.bus.message import Message
from infra.bus.outputs import Output
from infra.bus.rows import RowReader
from infra.bus.table import _check_copartitioned, run_table
from infra.bus.watchdog import Watchdog
from infra.bus.writer import Writer
from infra.settings import Settings
from schemas.codec import encode
from schemas.errors import BadInputError
from schemas.headers import trace_id, trace_root, traceparent_of
from schemas.ids import versions
from schemas.records import JobState, PromptSubmitted
from tests.bus.line import (
    ANSWERED,
    ASKED,
    TABLE,
    Counter,
    all_read,
    answer,
    answers,
    ask,
    eventually,
    jobs_by_partition,
    messages,
    question,
    questions,
    row,
    rows,
    table,
)
from tests.bus.test_worker import TOO_LARGE


class Aborting(Counter):
    """The third question of all aborts its transaction, once."""

    def __init__(self) -> None:
        self._decisions = 0

    def decide(self, message: Message, state: JobState | None, now_us: int) -> Decision:
        decision = super().decide(message, state, now_us)
        self._decisions += 1
        if self._decisions == 3:
            return replace(decision, events=(answer(message.job_id, 0, TOO_LARGE, by=TABLE),))
        return decision


class Refusing(Counter):
    """Refuses odd questions."""

    def decide(self, message: Message, state: JobState | None, now_us: int) -> Decision:
        if message.offset % 2:
            refused = BadInputError(field="segment", rule="even", message="odd", job_id=message.job_id)
            return Decision(refused=refused, events=(answer(message.job_id, -1, by=TABLE),))
        return super().decide(message, state, now_us)


class Scanning(Counter):
    """A scan adds a hundred to rows below it."""

    def scan(self, states: Iterable[JobState], now_us: int) -> list[Decision]:
        stale = [replace(state, attempts=state.attempts + 100) for state in states if state.attempts < 100]
        return [Decision(state=s, events=(answer(s.job_id, s.attempts, by=TABLE),)) for s in stale]


def end(settings: Settings, topic: str, partition: int) -> int:
    """Offsets of a partition, transaction markers included."""
    consumer = clients.lone_consumer(settings, "test")
    try:
        return consumer.get_watermark_offsets(TopicPartition(topic, partition), 10)[1]
    finally:
        consumer.close()


def test_what_one_turn_brought_is_one_transaction_with_the_last_state_of_each_row(bus_settings: Settings) -> None:
    job, *_ = jobs_by_partition(bus_settings)
    ask(bus_settings, questions([job], range(60)))
    with table(bus_settings):
        eventually(lambda: all_read(bus_settings, TABLE), "everything is read")
    assert answers(bus_settings, TABLE) == questions([job], range(1, 61))
    assert rows(bus_settings) == {job: 60}
    transactions = end(bus_settings, ANSWERED, 0) - 60
    assert transactions <= 3
    assert end(bus_settings, JobState.topic, 0) == 2 * transactions


def test_an_aborted_batch_leaves_memory_right(bus_settings: Settings) -> None:
    jobs = jobs_by_partition(bus_settings)
    with table(bus_settings, Aborting()):
        ask(bus_settings, questions(jobs, range(3)))
        eventually(lambda: all_read(bus_settings, TABLE), "everything is read")
    assert rows(bus_settings) == dict.fromkeys(jobs, 3)
    assert sorted(answers(bus_settings, TABLE)) == sorted(questions(jobs, range(1, 4)))


def test_a_restart_reads_the_table_again(bus_settings: Settings) -> None:
    jobs = [f"job-{n}" for n in range(20)]
    for numbers in (range(2), range(2, 3)):
        with table(bus_settings):
            ask(bus_settings, questions(jobs, numbers))
            eventually(lambda: all_read(bus_settings, TABLE), "everything is read")
    assert rows(bus_settings) == dict.fromkeys(jobs, 3)
    assert sorted(answers(bus_settings, TABLE)) == sorted(questions(jobs, range(1, 4)))


def test_a_refused_record_is_a_dead_letter_and_an_event_and_leaves_the_row(bus_settings: Settings) -> None:
    job, *_ = jobs_by_partition(bus_settings)
    ask(bus_settings, questions([job], range(4)))
    with table(bus_settings, Refusing()):
        eventually(lambda: all_read(bus_settings, TABLE), "everything is read")
    letters = list(dead_letters(bus_settings))
    assert [(x.original.offset, x.original.value, x.rule, x.group) for x in letters] == [
        (n, encode(question(job, n)), "even", TABLE.group) for n in (1, 3)
    ]
    assert answers(bus_settings, TABLE) == [(job, 1), (job, -1), (job, 2), (job, -1)]
    assert rows(bus_settings) == {job: 2}


def test_the_scan_changes_rows_and_its_events_carry_the_trace_of_the_job(bus_settings: Settings) -> None:
    settings = bus_settings.model_copy(update={"scan_s": 1.0})
    with table(settings, Scanning()):
        ask(settings, [("boat", 0)])
        eventually(lambda: rows(settings) == {"boat": 101}, "the scan has changed the row")
        ask(settings, [("boat", 1)])
        eventually(lambda: all_read(settings, TABLE), "everything is read")
    assert answers(settings, TABLE) == [("boat", 1), ("boat", 101), ("boat", 102)]
    _, scanned, _ = messages(settings, ANSWERED)
    assert trace_id(traceparent_of(scanned.headers, otherwise="")) == trace_id(trace_root("boat"))


def test_a_record_whose_producer_has_another_partitioner_is_sent_on_to_its_job(bus_settings: Settings) -> None:
    _, job, *_ = jobs_by_partition(bus_settings)
    strayed = encode(PromptSubmitted(job_id=job, text="A boat"))
    headers = (("traceparent", trace_root("abc").encode()), ("mine", None))
    with Writer(bus_settings) as writer:
        writer.write(
            [
                Output(
                    topic=PromptSubmitted.topic, key=job.encode(), value=strayed, headers=headers, partition=partition
                )
                for partition in range(bus_settings.partitions)
            ]
        )
    member = replace(TABLE, topics=(ASKED, PromptSubmitted.topic))
    with table(bus_settings, member=member):
        eventually(lambda: len(answers(bus_settings, TABLE)) == bus_settings.partitions, "all of them are answered")
    assert answers(bus_settings, TABLE) == questions([job], range(1, 5))
    found = [m for m in messages(bus_settings, PromptSubmitted.topic) if m.partition == 1]
    assert [(m.value, m.headers) for m in found] == [(strayed, headers)] * 4
    assert trace_id(traceparent_of(messages(bus_settings, ANSWERED)[0].headers, otherwise="")) == trace_id(
        trace_root("abc")
    )


def test_rows_in_an_open_transaction_are_waited_for(bus_settings: Settings) -> None:
    """The end of the former owner's transaction may reach the offsets before it reaches the table."""
    producer = clients.transactional_producer(bus_settings, TABLE)
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce(JobState.topic, encode(row("boat", attempts=7)), b"boat", 0)
    producer.flush(10)
    with Watchdog("reader", 15) as dog, ThreadPoolExecutor(1) as pool:
        reading = pool.submit(RowReader(bus_settings, "test", dog).read, {0, 1})
        with pytest.raises(TimeoutError):
            reading.result(1.5)
        producer.commit_transaction(10)
        assert {p: list(rows) for p, rows in reading.result(10).items()} == {0: [row("boat", attempts=7)], 1: []}


def test_what_is_no_row_is_passed_over_and_a_tombstone_takes_one_away(
    bus_settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    good = encode(row("boat", attempts=7))
    records = {
        "boat": (good, b"junk", b""),
        "gone": (good, None),
        "torn": (good[:40],),
        "odd": (encode(question("odd", 1)),),
    }
    with Writer(bus_settings) as writer:
        writer.write(
            Output(topic=JobState.topic, key=key.encode(), value=value, headers=(), partition=0)
            for key, values in records.items()
            for value in values
        )
    with Watchdog("reader", 15) as dog:
        assert list(RowReader(bus_settings, "test", dog).read({0})[0]) == [row("boat", attempts=7)]
    assert "the row of job torn cannot be read" in caplog.text
    assert caplog.text.count("is no row and is passed over") == 3


def test_rows_of_a_newer_release_stop_a_director_that_would_forget_their_jobs(bus_settings: Settings) -> None:
    newer = b"\0" + (len(versions()) + 1).to_bytes(4, "big") + b"a row"
    with Writer(bus_settings) as writer:
        writer.write([Output(topic=JobState.topic, key=b"boat", value=newer, headers=(), partition=0)])
    with Watchdog("reader", 15) as dog, pytest.raises(BusError, match="job boat is of a newer release"):
        RowReader(bus_settings, "test", dog).read({0})


def test_a_table_on_topics_that_do_not_exist_says_which(
    bus_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topics, "_WAIT_S", 0.5)
    member = replace(TABLE, topics=(ASKED, "longtake.nothing.v1"))
    with pytest.raises(TopicsError, match=r"longtake\.nothing\.v1"):
        run_table(bus_settings, member, Counter(), threading.Event())


def test_partitions_that_differ_between_topics_are_refused() -> None:
    member = replace(TABLE, topics=("a", "b"))
    _check_copartitioned({("a", 0), ("b", 0), ("a", 3), ("b", 3)}, member)
    with pytest.raises(TopicsError, match=r"'a': \[0, 3\], 'b': \[0\]"):
        _check_copartitioned({("a", 0), ("b", 0), ("a", 3)}, member)
