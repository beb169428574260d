"""A shot's text -> a structured instruction and remarks on it. Pure and deterministic: rules and a small vocabulary.

Instruction fields hold canonical terms of `vocabulary.yaml`, joined by `, `; `setting` holds places, then weather. A subject
or action the vocabulary does not know is given in the text's own words.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from schemas.records import Instruction, Lint
from streams.prompts.lint import contradictions, lint_text
from streams.prompts.reading import Reading, read
from streams.prompts.vocabulary import WEATHER

PARSE_DEADLINE_S = 0.25
"""A text of 100 kB takes less than half of it."""


class _DeadlineError(Exception):
    """The text is longer than the time for it."""


def instruct(
    text: str,
    camera: str | None = None,
    *,
    shot: int = 0,
    negative: Sequence[str] = (),
    tick: Callable[[], None] = lambda: None,
) -> tuple[Instruction, tuple[Lint, ...]]:
    """The instruction in `text`. `camera` is the shot's own camera field and goes before what the text says.

    `tick` is called every few words; what it raises passes through.
    """
    reading = read(text, tick)
    if camera:
        terms = dict.fromkeys((*read(camera, tick).of("camera"), *reading.of("camera")))
        reading = replace(reading, terms={**reading.terms, "camera": tuple(terms)})
    unwanted = read("\n".join(negative), tick)
    return _instruction(text, reading), lint_text(shot, reading, unwanted)


def parse_with_deadline(
    text: str,
    camera: str | None = None,
    *,
    clock: Callable[[], float],
    deadline_s: float = PARSE_DEADLINE_S,
    shot: int = 0,
    negative: Sequence[str] = (),
) -> tuple[Instruction, tuple[Lint, ...]]:
    """Like `instruct`, but gives the plain text (`parsed=False`) once `clock()` has gone on by `deadline_s`: no parse delays a job."""
    end = clock() + deadline_s

    def tick() -> None:
        if clock() >= end:
            raise _DeadlineError

    try:
        return instruct(text, camera, shot=shot, negative=negative, tick=tick)
    except _DeadlineError:
        message = f"the text was not parsed within {deadline_s:g} s: it is used as it is"
        return Instruction(text=text, parsed=False), (Lint(shot=shot, code="not_parsed", message=message),)


def _instruction(text: str, reading: Reading) -> Instruction:
    dropped = {later for _, later in contradictions(reading.of("camera"))}
    settings = reading.of("setting")
    places = [term for term in settings if term not in WEATHER]
    if len(places) > 1 and "sky" in places:
        places.remove("sky")  # 'a field under a wide sky' is a field
    return Instruction(
        text=text,
        subject=", ".join(reading.of("subject")) or reading.guessed_subject,
        action=", ".join(reading.of("action")) or reading.guessed_action,
        setting=", ".join((*places, *(term for term in settings if term in WEATHER))),
        camera=", ".join(term for term in reading.of("camera") if term not in dropped),
        light=", ".join(reading.of("light")),
        pace="".join(reading.of("pace")[:1]),
    )
