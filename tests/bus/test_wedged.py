"""Processes that would hang for good: the watchdog ends them, the progress watch names what holds them up."""

import ctypes
import logging
import time
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Producer, TopicPartition

from infra.bus import clients, watchdog
from infra.bus.clients import Member
from infra.bus.errors import FatalClientError
from infra.bus.watchdog import Watchdog
from infra.settings import Settings
from schemas.codec import encode
from tests.bus.line import ASKED, WORKER, all_read, ask, eventually, jobs_by_partition, membership, question, worker
from tests.bus.processes import in_process


def wedge(settings: Settings, log: Path) -> None:
    """Miss that the consumer became fatal, and wait for its next record: it never comes, and no error either."""
    logging.basicConfig(filename=log)
    with Watchdog("wedged", settings.watchdog_s) as dog:
        first, second = clients.worker_consumer(settings, WORKER), clients.worker_consumer(settings, WORKER)
        first.subscribe([ASKED])
        while not first.assignment():
            dog.beat()
            first.poll(0.1)
        second.subscribe([ASKED])
        while True:
            dog.beat()
            second.poll(0.1)
            record = first.poll(0.1)
            error = None if record is None else record.error()
            if error and error.code() == KafkaError._FATAL:
                first.poll()


def keep_the_interpreter(settings: Settings) -> None:
    """No Python thread runs any more."""
    with Watchdog("wedged", settings.watchdog_s):
        time.sleep(settings.watchdog_s / 2)
        ctypes.PyDLL(None).sleep(60)


def test_a_worker_whose_consumer_is_made_fatal_ends(bus_settings: Settings) -> None:
    fenced = worker(bus_settings)
    thread = fenced.__enter__()
    ask(bus_settings, [("boat", 0)])
    eventually(lambda: all_read(bus_settings, WORKER), "the worker runs")
    second = clients.worker_consumer(bus_settings, WORKER)
    second.subscribe([ASKED])
    eventually(lambda: second.poll(0.1) is None and not thread.is_alive(), "another consumer takes its place")
    with pytest.raises(FatalClientError, match="another process runs in this slot"):
        fenced.__exit__(None, None, None)
    second.close()


def test_a_process_that_waits_for_a_fatal_consumer_is_ended(bus_settings: Settings, tmp_path: Path) -> None:
    settings = bus_settings.model_copy(update={"watchdog_s": 1.0})
    with in_process(wedge, settings, tmp_path / "log") as process:
        process.join(40)
        assert process.exitcode == watchdog.EXIT_CODE
    assert "the loop has not turned for" in (tmp_path / "log").read_text()


def test_a_call_that_keeps_the_interpreter_lock_does_not_keep_the_process() -> None:
    with in_process(keep_the_interpreter, Settings(watchdog_s=0.5)) as process:
        process.join(20)
        assert process.exitcode == 1


def test_a_turning_loop_is_left_alone() -> None:
    with Watchdog("turning", 0.2) as dog:
        end = time.monotonic() + 1.0
        while time.monotonic() < end:
            dog.beat()
            time.sleep(0.02)


def open_transaction(settings: Settings) -> Producer:
    producer = clients.transactional_producer(settings, Member(role="hanging", topics=()))
    producer.init_transactions(10)
    producer.begin_transaction()
    return producer


def test_a_hanging_transaction_is_named_until_it_ends(bus_settings: Settings) -> None:
    job, *_ = jobs_by_partition(bus_settings)
    hanging = open_transaction(bus_settings)
    hanging.produce(ASKED, encode(question(job, 0)), job.encode())
    hanging.flush(10)
    with membership(bus_settings) as (member, watch):
        eventually(lambda: member.poll(0.05) is None and bool(watch.stuck), "the partition is called stuck")
        assert list(watch.stuck) == [(ASKED, 0)]
        assert "hanging transaction: open at offset 0" in watch.stuck[ASKED, 0]
        hanging.abort_transaction(10)
        eventually(lambda: member.poll(0.05) is None and not watch.stuck, "it moves again")


def test_offsets_inside_a_hanging_transaction_are_named(bus_settings: Settings) -> None:
    hanging = open_transaction(bus_settings)
    with membership(bus_settings) as (member, _):
        eventually(lambda: member.poll(0.05) is None and len(member.assigned) == 4, "the member has partitions")
        hanging.send_offsets_to_transaction([TopicPartition(ASKED, 1, 0)], member.group, 10)
    with membership(bus_settings) as (member, watch):
        eventually(lambda: member.poll(0.05) is None and bool(watch.stuck), "the partition is called stuck")
        assert "unstable offsets" in watch.stuck[ASKED, 1]
    hanging.abort_transaction(10)


def test_nothing_to_read_and_a_pause_for_work_in_hand_are_no_lack_of_progress(bus_settings: Settings) -> None:
    read, paused, *_ = jobs_by_partition(bus_settings)
    ask(bus_settings, [(read, 0)])
    aborted = open_transaction(bus_settings)
    aborted.produce(ASKED, b"", read.encode())
    aborted.flush(10)
    aborted.abort_transaction(10)
    with membership(bus_settings) as (member, watch):
        eventually(lambda: member.poll(0.05) is not None, "the record is read")
        member.pause({(ASKED, 1)})
        ask(bus_settings, [(paused, 0)])
        end = time.monotonic() + 5
        while time.monotonic() < end:
            assert member.poll(0.05) is None
            assert not watch.stuck
