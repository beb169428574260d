"""longtake.prompts.v1 -> a planned job that waits for its turn."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Protocol

from gpu_consumers.engines.options import negative_unused
from infra.assets.catalogue import Catalogue
from schemas.engines import ENGINES
from schemas.records import (
    AssemblyState,
    AssetRef,
    Captions,
    Encode,
    Instruction,
    JobState,
    Lint,
    PieceState,
    Plan,
    PlannedCard,
    PlannedShot,
    PromptSubmitted,
    SegmentState,
    Shot,
    Sound,
    Stage,
    VideoFormat,
)
from streams.assets import in_order
from streams.captions.wishes import planned_captions
from streams.cards import curtains, planned_cards
from streams.encoding.presets import presets
from streams.encoding.renditions import planned_renditions
from streams.prompts.lint import lint_plan
from streams.sound.wishes import planned_sounds
from streams.storyboard import Storyboard, storyboard
from streams.timeline import cut
from streams.validation import refused

MAX_SEGMENTS = 2000
"""44 minutes at 24 fps with the animatic engine. The row of such a job has to fit into a record."""
MAX_RENDITION_PIECES = 2500
"""The row names them all, up to 330 bytes each."""
NO_ASSETS = Catalogue()
_MAX_LINT = 50
"""Remarks travel in every JobChanged."""
_ASPECTS = (16 / 9, 9 / 16, 1.0)
_ASPECT_TOLERANCE = 0.01


class Instruct(Protocol):
    """Shots to instructions and remarks, in bounded time."""

    def __call__(
        self, shots: Sequence[Shot], negative: Sequence[str]
    ) -> tuple[tuple[Instruction, ...], tuple[Lint, ...]]:
        """One instruction per shot."""
        ...


def planned(prompt: PromptSubmitted, instruct: Instruct, assets: Catalogue = NO_ASSETS) -> Plan:
    """What the prompt is cut into. `assets` says what names of assets mean. Raises: BadInputError naming field and rule."""
    board = storyboard(prompt)
    length_s = Fraction(board.frames * board.format.fps_den, board.format.fps_num)
    sounds, captions = planned_sounds(prompt, length_s, assets), planned_captions(prompt, length_s, assets)
    cards = planned_cards(prompt, board, assets)
    limits = ENGINES[prompt.engine]
    segments = cut(board.starts, board.transitions, limits)
    if len(segments) > MAX_SEGMENTS:
        raise refused("duration_s", "segments", f"{len(segments)} segments, at most {MAX_SEGMENTS}")
    encode = Encode(gop_frames=max(1, round(board.format.fps_num / board.format.fps_den)))
    renditions = planned_renditions(prompt.renditions, board.format, encode.gop_frames, presets())
    if (files := len(renditions) * len(segments)) > MAX_RENDITION_PIECES:
        raise refused("renditions", "pieces", f"{files} pieces of renditions, at most {MAX_RENDITION_PIECES}")
    instructions, lint = instruct(board.shots, prompt.negative)
    shots = _placed(board, instructions, prompt.seed)
    lint = (*_lint_aspect(board.format), *_lint_negative(prompt), *lint, *lint_plan(shots, limits.max_segment_frames))
    return Plan(
        title=board.title,
        format=board.format,
        frames=board.frames,
        engine=prompt.engine,
        engine_options=prompt.engine_options,
        state_segments=limits.state_segments,
        seed=prompt.seed,
        negative=prompt.negative,
        shots=shots,
        segments=segments,
        encode=encode,
        lint=lint[:_MAX_LINT],
        renditions=renditions,
        assets=in_order(_uses(sounds, captions, cards, board.format)),
        sounds=sounds,
        cards=cards,
        curtains=curtains(board),
        captions=captions,
    )


def new_job(prompt: PromptSubmitted, plan: Plan, *, content_hash: str, traceparent: str, now_us: int) -> JobState:
    """The row of an accepted prompt."""
    return JobState(
        job_id=prompt.job_id,
        tenant=prompt.tenant,
        content_hash=content_hash,
        traceparent=traceparent,
        stage=Stage.QUEUED,
        reason="",
        plan=plan,
        segments=(SegmentState(),) * len(plan.segments),
        pieces=(PieceState(),) * len(plan.segments),
        assembly=AssemblyState(),
        engine_version="",
        reworks=0,
        attempts=0,
        submitted_us=prompt.submitted_us or now_us,
        changed_us=now_us,
        rescanned_us=0,
    )


def _uses(
    sounds: Sequence[Sound], captions: Captions | None, cards: Sequence[PlannedCard], size: VideoFormat
) -> Iterator[tuple[int, AssetRef]]:
    """Each asset, and when it is used, in microseconds."""
    yield from ((sound.start_us, sound.asset) for sound in sounds if sound.asset)
    if captions and captions.asset:
        yield 0, captions.asset
    for card in cards:
        if card.asset:
            yield card.start_frame * size.fps_den * 1_000_000 // size.fps_num, card.asset


def _placed(board: Storyboard, instructions: Sequence[Instruction], seed: int) -> tuple[PlannedShot, ...]:
    parts = zip(board.shots, board.transitions, pairwise(board.starts), instructions, strict=True)
    return tuple(
        PlannedShot(
            shot=index,
            start_frame=start,
            frames=end - start,
            transition=transition,
            seed=seed if shot.seed is None else shot.seed,
            instruction=instruction,
        )
        for index, (shot, transition, (start, end), instruction) in enumerate(parts)
    )


def _lint_negative(prompt: PromptSubmitted) -> tuple[Lint, ...]:
    why = negative_unused(prompt.engine, prompt.engine_options) if prompt.negative else None
    if why is None:
        return ()
    message = f"the negative constraints only take words out of the prompts: {why}"
    return (Lint(shot=-1, code="negative_unused", message=message),)


def _lint_aspect(size: VideoFormat) -> tuple[Lint, ...]:
    aspect = size.width / size.height
    if any(abs(aspect / usual - 1) <= _ASPECT_TOLERANCE for usual in _ASPECTS):
        return ()
    message = f"{size.width}x{size.height} is neither 16:9, 9:16 nor 1:1: players and presets will letterbox it"
    return (Lint(shot=-1, code="aspect", message=message),)
