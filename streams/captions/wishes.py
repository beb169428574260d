"""What a prompt says of subtitles -> captions on the timeline, or a refusal. Pure."""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from infra.assets.catalogue import AssetKind, Catalogue
from schemas.records import Caption, Captions, PromptSubmitted, Subtitle
from streams.lettering import missing
from streams.validation import check_text, refused

TRACK, FILE, BURNT = "track", "file", "burnt"
SHOWN = (TRACK, FILE, BURNT)
MAX_SUBTITLES = 1000
MAX_CHARS = 200
MIN_S = 0.3
_ROUNDING_S = 1e-6


def planned_captions(prompt: PromptSubmitted, length_s: Fraction, assets: Catalogue) -> Captions | None:
    """None: the prompt has no subtitles. `length_s` is the video's. Raises: BadInputError naming field and rule."""
    if prompt.subtitles_as not in SHOWN:
        raise refused("subtitles_as", "subtitles_as", f"{prompt.subtitles_as!r:.40} is not one of {', '.join(SHOWN)}")
    if prompt.subtitles_asset:
        if prompt.subtitles:
            raise refused("subtitles_asset", "exclusive", "give either subtitles or subtitles_asset")
        asset = assets.resolved("subtitles_asset", prompt.subtitles_asset, AssetKind.SUBTITLES)
        return Captions(shown=prompt.subtitles_as, asset=asset)
    if not prompt.subtitles:
        return None
    if len(prompt.subtitles) > MAX_SUBTITLES:
        raise refused("subtitles", "count", f"{len(prompt.subtitles)} of them, at most {MAX_SUBTITLES}")
    for index, subtitle in enumerate(prompt.subtitles):
        _check(f"subtitles[{index}]", subtitle, length_s)
        if prompt.subtitles_as == BURNT:
            check_letters(f"subtitles[{index}].text", subtitle.text)
    _check_order(prompt.subtitles)
    return Captions(shown=prompt.subtitles_as, lines=tuple(map(_placed, prompt.subtitles)))


def check_letters(field: str, text: str) -> None:
    """Raises: BadInputError if the text cannot be drawn."""
    if strange := missing(text):
        raise refused(field, "letters", f"{strange[:20]!r} cannot be drawn: the font, DejaVu Sans, has no such letters")


def _check(field: str, subtitle: Subtitle, length_s: Fraction) -> None:
    start_s, end_s = subtitle.start_s, subtitle.end_s
    if not (math.isfinite(start_s) and 0 <= start_s < length_s):
        raise refused(f"{field}.start_s", "range", f"{start_s:g} s is not in the video of {float(length_s):g} s")
    if not (math.isfinite(end_s) and end_s - start_s >= MIN_S - _ROUNDING_S):
        raise refused(
            f"{field}.end_s", "range", f"{end_s:g} s is not {MIN_S:g} s or more behind the start, {start_s:g} s"
        )
    if end_s > length_s + _ROUNDING_S:
        raise refused(f"{field}.end_s", "range", f"{end_s:g} s is beyond the video's end, {float(length_s):g} s")
    check_text(f"{field}.text", subtitle.text, MAX_CHARS)


def _check_order(subtitles: Sequence[Subtitle]) -> None:
    for index, (before, after) in enumerate(pairwise(subtitles), 1):
        if after.start_s < before.end_s:
            message = f"begins at {after.start_s:g} s, before the one in front of it ends"
            raise refused(f"subtitles[{index}].start_s", "overlap", message)


def _placed(subtitle: Subtitle) -> Caption:
    return Caption(
        start_us=round(subtitle.start_s * 1e6), end_us=round(subtitle.end_s * 1e6), text=subtitle.text.strip()
    )
