"""Work that was put aside ends its job with the reason, if the job still waits for it."""

from collections.abc import Callable
from typing import Any

import pytest

from infra.bus.letter import dead_letter
from infra.bus.message import Message
from schemas import records as r
from schemas.errors import BadInputError
from schemas.topics import Event
from tests.director.builders import Line, answers, assembled, generated, message, prompt, raw_message, stitched

ERROR = BadInputError(field="value", rule="quarantined", message="3 workers ended with it in hand")


def letter(event: Event, **fields: Any) -> Message:
    output = dead_letter(message(event), ERROR, group="longtake.generate", time_us=1)
    known: dict[str, Any] = {"key": output.key, "headers": output.headers}
    return raw_message(output.topic, output.value, **(known | fields))


def send(line: Line, put_aside: Message) -> tuple[Event, ...]:
    return line.take(line.decider.decide(put_aside, line.row, line.now_us))


@pytest.mark.parametrize(
    ("kind", "made", "what"),
    [
        (r.SegmentRequested, None, "segment 1"),
        (r.PieceRequested, None, "piece 1"),
        (r.PieceRequested, stitched, "checking piece 1"),
        (r.AssemblyRequested, None, "assembly"),
        (r.AssemblyRequested, assembled, "checking the video"),
    ],
)
def test_a_job_whose_work_was_put_aside_fails_with_the_reason_and_may_be_retried(
    kind: type[Event], made: Callable[[Any], Event] | None, what: str
) -> None:
    line = Line()
    request = line.until(kind, prompt(), index=0 if "assembly" in what or "video" in what else 1)
    event = made(request) if made else request
    if made:
        line.send(event)
    assert send(line, letter(event))
    assert line.job.stage is r.Stage.FAILED
    assert line.job.reason == f"{what}: 3 workers ended with it in hand [quarantined]"
    line.run(*(a for request in line.send(r.RetryRequested(job_id="harbour")) for a in answers(request)))
    assert line.job.stage is r.Stage.FINISHED


def test_what_the_job_has_moved_past_is_no_reason_to_fail() -> None:
    line = Line()
    request = line.until(r.SegmentRequested, prompt(), index=1)
    line.run(generated(request))
    assert line.job.stage is r.Stage.FINISHED
    for event in (request, line.last(r.PieceRequested), line.last(r.AssemblyRequested), prompt()):
        assert send(line, letter(event)) == ()


def test_a_letter_under_another_key_says_nothing() -> None:
    line = Line()
    request = line.until(r.SegmentRequested, prompt(), index=1)
    assert send(line, letter(request, key=b"boat")) == ()
