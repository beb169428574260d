"""A job on its timeline: its shots, its segments and its pieces, and how far each is. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from infra.web.console.facts import Facts, Row
from schemas.engines import ENGINES
from schemas.errors import BadInputError
from schemas.records import PromptSubmitted, SegmentPlan
from streams.storyboard import storyboard
from streams.timeline import cut


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Frames [start, start + frames) in one lane."""

    label: str
    start: int
    frames: int
    state: str
    """`plan`, `done`, `bad` or `wait`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A shot as it was asked for, placed."""

    number: int
    start: int
    frames: int
    transition: str
    text: str
    camera: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Everything in frames of the video."""

    frames: int
    scenes: Sequence[Scene] = ()
    segments: Sequence[Span] = ()
    pieces: Sequence[Span] = ()


def timeline(prompt: PromptSubmitted | None, facts: Facts, frames: int) -> Timeline:
    """What was planned with what came of it; without the prompt, only what came of it."""
    done_segments = {int(row["segment"]): row for row in facts.segments}
    done_pieces = {int(row["piece"]): row for row in facts.pieces}
    try:
        if prompt is None:
            raise BadInputError(field="prompt", rule="kept", message="its topic does not hold it any more")
        board = storyboard(prompt)
        plan = cut(board.starts, board.transitions, ENGINES[prompt.engine])
    except (BadInputError, KeyError):
        segments = [_span("segment", n, int(r["start_frame"]), int(r["frames"]), r) for n, r in done_segments.items()]
        pieces = [_span("piece", n, int(r["start_frame"]), int(r["frames"]), r) for n, r in done_pieces.items()]
        return Timeline(frames=frames, segments=segments, pieces=pieces)
    scenes = [
        Scene(
            number=number,
            start=board.starts[number],
            frames=board.starts[number + 1] - board.starts[number],
            transition=board.transitions[number].value,
            text=shot.prompt,
            camera=shot.camera or "",
        )
        for number, shot in enumerate(board.shots)
    ]
    return Timeline(
        frames=board.frames,
        scenes=scenes,
        segments=[_span("segment", n, s.start_frame, s.frames, done_segments.get(n)) for n, s in enumerate(plan)],
        pieces=[_span("piece", n, *_piece(plan, n, board.frames), done_pieces.get(n)) for n in range(len(plan))],
    )


def _piece(plan: Sequence[SegmentPlan], number: int, frames: int) -> tuple[int, int]:
    """First frame and length: with the title card before the first segment, or the end card behind the last."""
    start = plan[number].start_frame if number else 0
    end = (
        frames
        if number == len(plan) - 1
        else plan[number].start_frame + plan[number].frames - plan[number].tail_overlap
    )
    return start, end - start


def _span(what: str, number: int, start: int, frames: int, row: Row | None) -> Span:
    if row is None:
        state, words = "wait", "not there yet"
    elif row["outcome"] == "generated" or row.get("verdict") == "pass":
        state, words = "done", f"attempt {row['attempt']}"
    else:
        state, words = (
            "bad",
            f"attempt {row['attempt']}: {row.get('verdict') or row['outcome']} {row['reason']}".strip(),
        )
    label = f"{what} {number}, frames {start} to {start + frames - 1}, {words}"
    return Span(label=label, start=start, frames=frames, state=state)
