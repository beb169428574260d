"""A prompt's title and end card, and shots that fade -> frames of the timeline, or a refusal. Pure."""

import re
from collections.abc import Iterable
from fractions import Fraction
from itertools import pairwise

from infra.assets.catalogue import AssetKind, Catalogue
from schemas.records import Card, Curtain, PlannedCard, PromptSubmitted, Transition
from streams.captions.wishes import check_letters
from streams.storyboard import Storyboard
from streams.validation import check_text, refused

MAX_CARD_CHARS = 300
_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")
_CURTAINS = {Transition.FADE: (Fraction(1, 2), "#000000"), Transition.DIP: (Fraction(1, 4), "#ffffff")}
"""Seconds on each side of the first frame, and the colour."""


def planned_cards(prompt: PromptSubmitted, board: Storyboard, assets: Catalogue) -> tuple[PlannedCard, ...]:
    """Those there are, in order. Raises: BadInputError naming field and rule."""
    places = (("title_card", prompt.title_card, 0, board.starts[0]),)
    places += (("end_card", prompt.end_card, board.starts[-1], board.frames),)
    return tuple(
        _placed(field, card, start, end - start, assets) for field, card, start, end in places if card is not None
    )


def curtains(board: Storyboard) -> tuple[Curtain, ...]:
    """One for each shot that begins with a fade or a dip; at most half of either shot."""
    edges = sorted({0, *board.starts, board.frames})
    found: list[Curtain] = []
    for transition, start in zip(board.transitions, board.starts, strict=False):
        if transition not in _CURTAINS:
            continue
        seconds, colour = _CURTAINS[transition]
        fps = Fraction(board.format.fps_num, board.format.fps_den)
        shortest = min(end - begin for begin, end in pairwise(edges) if start in (begin, end))
        found.append(Curtain(frame=start, frames=max(1, min(round(seconds * fps), shortest // 2)), colour=colour))
    return tuple(found)


def designed_frames(cards: Iterable[PlannedCard], found: Iterable[Curtain]) -> tuple[int, ...]:
    """First frame and end of each run of frames that look as they do by design, in order."""
    runs = [(card.start_frame, card.start_frame + card.frames) for card in cards]
    runs += [(max(0, curtain.frame - curtain.frames), curtain.frame + curtain.frames) for curtain in found]
    edges: list[int] = []
    for start, end in sorted(runs):
        if edges and start <= edges[-1]:
            edges[-1] = max(edges[-1], end)
        else:
            edges += [start, end]
    return tuple(edges)


def _placed(field: str, card: Card, start: int, frames: int, assets: Catalogue) -> PlannedCard:
    for name, colour in (("colour", card.colour), ("text_colour", card.text_colour)):
        if not _COLOUR.fullmatch(colour):
            raise refused(f"{field}.{name}", "colour", f"{colour!r:.40} is not written like #1a2b3c")
    if not card.text and not card.asset:
        raise refused(f"{field}.text", "required", "give text, asset or both")
    if card.text:
        check_text(f"{field}.text", card.text, MAX_CARD_CHARS)
        check_letters(f"{field}.text", card.text)
    asset = assets.resolved(f"{field}.asset", card.asset, AssetKind.PICTURE) if card.asset else None
    return PlannedCard(
        start_frame=start,
        frames=frames,
        text=card.text.strip(),
        colour=card.colour,
        text_colour=card.text_colour,
        asset=asset,
    )
