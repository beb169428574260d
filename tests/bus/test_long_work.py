"""Work that takes much longer than a consumer may stay away from its broker."""

import threading

from infra.bus.message import Message
from infra.settings import Settings
from schemas.records import PromptRefused
from tests.bus.line import WORKER, all_read, answers, ask, eventually, jobs_by_partition, reply, worker

WORK_S = 30.0


def test_work_of_three_poll_intervals_is_done_once(bus_settings: Settings) -> None:
    settings = bus_settings.model_copy(update={"max_poll_interval_ms": 10_000, "session_timeout_ms": 6_000})
    long, short, *_ = jobs_by_partition(settings)
    started: list[str] = []

    def work(message: Message) -> list[PromptRefused]:
        started.append(message.job_id)
        if started == [long]:
            threading.Event().wait(WORK_S)
        return reply(message)

    ask(settings, [(long, 0), (long, 1)])
    with worker(settings, work):
        eventually(lambda: started == [long], "the long work begins")
        ask(settings, [(short, 0)])
        eventually(lambda: answers(settings) == [(short, 0)], "other partitions are served meanwhile", 20)
        eventually(lambda: all_read(settings, WORKER), "everything is read", 2 * WORK_S + 30)
    assert started == [long, short, long]
    assert sorted(answers(settings)) == sorted([(long, 0), (long, 1), (short, 0)])
