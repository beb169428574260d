"""Prompts are parsed in bounded time: a render never waits for it."""

from itertools import count

from schemas import records as r
from streams.director import instruct_shots
from streams.prompts.instruct import PARSE_DEADLINE_S


def shots(number: int) -> tuple[r.Shot, ...]:
    return tuple(r.Shot(prompt=f"A red boat leaves harbour {i} at dawn, pan left") for i in range(number))


def test_shots_become_instructions_with_remarks() -> None:
    instructions, lint = instruct_shots((*shots(1), r.Shot(prompt="Something nice")), ())
    assert "boat" in instructions[0].subject
    assert all(instruction.parsed for instruction in instructions)
    assert ("vague_words", 1) in {(remark.code, remark.shot) for remark in lint}


def test_all_shots_share_one_deadline_and_the_rest_is_used_as_plain_text() -> None:
    ticks = count()
    instructions, lint = instruct_shots(shots(50), (), lambda: next(ticks) * PARSE_DEADLINE_S / 20)
    parsed = [instruction.parsed for instruction in instructions]
    assert parsed == sorted(parsed, reverse=True)
    assert 1 <= sum(parsed) < 10
    assert [instruction.text for instruction in instructions] == [shot.prompt for shot in shots(50)]
    assert "not_parsed" in {remark.code for remark in lint}
