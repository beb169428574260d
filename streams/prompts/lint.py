"""Remarks on prompts: what a shot lacks, what contradicts itself. A remark never stops a job."""

from collections.abc import Iterator, Sequence

from schemas.records import Lint, PlannedShot, Transition
from streams.prompts.reading import Reading
from streams.prompts.vocabulary import WEATHER

MAX_SUBJECTS = 3
FRAMINGS = ("wide shot", "medium shot", "close-up", "aerial")
_MOVES = (
    *("pan left", "pan right", "tilt up", "tilt down", "dolly in", "dolly out", "zoom in", "zoom out"),
    *("tracking", "handheld", "crane up", "crane down"),
)
_OPPOSITES = (
    *(("pan left", "pan right"), ("tilt up", "tilt down"), ("dolly in", "dolly out")),
    *(("zoom in", "zoom out"), ("crane up", "crane down"), ("wide shot", "close-up")),
    *(("static", move) for move in _MOVES),
)
_TIMES_OF_DAY = ("day", "golden hour", "blue hour", "night")
_ENCLOSED = ("underwater", "space", "interior")
"""Places a camera does not drift into from elsewhere without a cut."""


def contradictions(camera: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs of terms that cannot both be, the one that came first first."""
    return [
        (a, b)
        for index, a in enumerate(camera)
        for b in camera[index + 1 :]
        if (a, b) in _OPPOSITES or (b, a) in _OPPOSITES
    ]


def lint_text(shot: int, reading: Reading, negative: Reading) -> tuple[Lint, ...]:
    """Remarks on one shot's text, with the camera term of its own field already in `reading`."""
    return tuple(Lint(shot=shot, code=code, message=message) for code, message in _text(reading, negative))


def lint_plan(shots: Sequence[PlannedShot], segment_frames: int) -> tuple[Lint, ...]:
    """Remarks on how shots follow each other and how long they are.

    `segment_frames`: what the engine generates in one go, both overlaps included.
    """
    return tuple(
        Lint(shot=shot.shot, code=code, message=message)
        for index, shot in enumerate(shots)
        for code, message in _plan(shots[index - 1] if index else None, shot, segment_frames)
    )


def _text(reading: Reading, negative: Reading) -> Iterator[tuple[str, str]]:
    subjects = reading.of("subject")
    if not reading.of("action") and not reading.guessed_action:
        yield "no_action", "nothing happens: say what is done with a verb a camera can see ('walks', 'turns', 'rises')"
    if not subjects and not reading.guessed_subject:
        yield "no_subject", "nobody and nothing is named: say who or what the shot shows"
    if len(subjects) > MAX_SUBJECTS:
        names = ", ".join(subjects)
        yield "many_subjects", f"{len(subjects)} subjects ({names}): more than {MAX_SUBJECTS} get lost; split the shot"
    if reading.vague:
        words = ", ".join(reading.vague)
        yield "vague_words", f"these words show nothing: {words}; say what is seen instead"
    if not reading.of("camera"):
        yield "no_camera", "no camera term: add one, such as 'static', 'pan left', 'dolly in' or 'tracking shot'"
    for kept, dropped in contradictions(reading.of("camera")):
        yield "camera_contradiction", f"'{kept}' and '{dropped}' contradict each other: '{kept}' is used"
    times = [term for term in reading.of("light") if term in _TIMES_OF_DAY]
    if len(times) > 1:
        yield "light_contradiction", f"one shot, two times of day ({', '.join(times)}): '{times[0]}' is used"
    if reading.negated:
        terms = ", ".join(reading.negated)
        yield "negation", f"'no' and 'without' are often drawn as 'with': put {terms} into the negative constraints"
    unwanted = {term for terms in negative.terms.values() for term in terms} | {negative.guessed_subject}
    wanted = [term for terms in reading.terms.values() for term in terms] + [reading.guessed_subject]
    for term in wanted:
        if term and term in unwanted:
            yield "negative_contradiction", f"'{term}' is in the prompt and in the negative constraints: it is left out"


def _plan(before: PlannedShot | None, shot: PlannedShot, segment_frames: int) -> Iterator[tuple[str, str]]:
    if shot.frames < segment_frames:
        yield (
            "short_shot",
            f"{shot.frames} frames are less than one segment ({segment_frames}): the shot has no time to develop",
        )
    if before is None:
        if shot.transition not in (Transition.CUT, Transition.FADE, Transition.DIP):
            yield (
                "unsafe_transition",
                f"the first shot has nothing to {_verb(shot.transition)} from: it starts with a cut",
            )
        return
    if shot.transition is not Transition.CONTINUOUS:
        return
    here, there = (set(s.instruction.setting.split(", ")) - {*WEATHER, ""} for s in (shot, before))
    enclosed = [place for place in _ENCLOSED if (place in here) != (place in there)]
    if enclosed and here and there:
        yield (
            "unsafe_transition",
            f"a continuous take does not get from {_names(there)} to {_names(here)}: use a cut or a dissolve",
        )


def _verb(transition: Transition) -> str:
    return "continue" if transition is Transition.CONTINUOUS else transition.value


def _names(places: set[str]) -> str:
    return " and ".join(sorted(places))
