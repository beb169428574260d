"""Where a job stands in its queue."""

from dataclasses import replace

from infra.bus.message import Message
from infra.cli.waiting import Waiting
from schemas.records import Stage
from tests.cli.events import job
from tests.director.builders import message


def said(job_id: str, stage: Stage = Stage.QUEUED, tenant: str = "default", partition: int = 0) -> Message:
    return message(replace(job(job_id, stage), tenant=tenant), partition=partition)


def test_only_jobs_of_the_same_tenant_and_partition_that_still_wait_are_ahead() -> None:
    waiting = Waiting()
    for each in (
        said("a"),
        said("b"),
        said("other", tenant="studio"),
        said("far", partition=1),
        said("c"),
        said("mine"),
        said("late"),
    ):
        waiting.saw(each)
    assert waiting.ahead_of("mine") == 3
    waiting.saw(said("a", Stage.GENERATING))
    waiting.saw(said("c", Stage.CANCELLED))
    assert waiting.ahead_of("mine") == 1
    waiting.saw(said("mine", Stage.GENERATING))
    assert waiting.ahead_of("mine") == 0
    waiting.saw(said("mine"))
    assert waiting.ahead_of("mine") == 2
