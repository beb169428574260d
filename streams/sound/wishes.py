"""What a prompt wants to be heard -> sounds placed on the timeline, or a refusal. Pure."""

import math
import re
from collections.abc import Iterator
from fractions import Fraction

from infra.assets.catalogue import AssetKind, Catalogue
from schemas.records import Effect, Music, Narration, PromptSubmitted, Sound
from streams.validation import check_text, refused

MAX_EFFECTS = 200
MAX_NARRATION = 100
MAX_SPOKEN_CHARS = 2000
MIN_GAIN_DB, MAX_GAIN_DB = -60.0, 20.0
MAX_FADE_S = 60.0
MIN_WORDS, MAX_WORDS = 80, 450
_VOICE = re.compile(r"([a-z]{2,4})(-[a-z0-9]{1,8}){0,3}(\+[a-zA-Z0-9]{1,16})?")
_LANGUAGES = (
    "af am an ar as az ba be bg bn bpy bs ca chr cmn cs cv cy da de el en eo es et eu fa fi fr ga gd gn "
    "grc gu hak haw he hi hr ht hu hy hyw ia id io is it ja jbo ka kk kl kn ko kok ku ky la lb lfn lt ltg "
    "lv mi mk ml mr ms mt my nb nci ne nl no nog om or pa pap piqd pl pt py qdb qu quc qya ro ru sd shn "
    "si sjn sk sl smj sq sr sv sw ta te th tk tn tr tt ug uk ur uz vi yue zh"
)
"""Of eSpeak NG 1.51. A region or variant that it has not is passed over; a language is not, and a job should not fail at its end."""


def planned_sounds(prompt: PromptSubmitted, length_s: Fraction, assets: Catalogue) -> tuple[Sound, ...]:
    """In the order of time. `length_s` is the video's. Raises: BadInputError naming field and rule."""
    for field, found, most in (
        ("effects", prompt.effects, MAX_EFFECTS),
        ("narration", prompt.narration, MAX_NARRATION),
    ):
        if len(found) > most:
            raise refused(field, "count", f"{len(found)} of them, at most {most}")
    return tuple(sorted(_sounds(prompt, length_s, assets), key=lambda sound: sound.start_us))


def check_at(field: str, at_s: float, length_s: Fraction) -> int:
    """Microseconds of a time of the video. Raises: BadInputError if it is none."""
    if not (math.isfinite(at_s) and 0 <= at_s < length_s):
        raise refused(field, "range", f"{at_s:g} s is not in the video, which has {float(length_s):g} s")
    return round(at_s * 1e6)


def _sounds(prompt: PromptSubmitted, length_s: Fraction, assets: Catalogue) -> Iterator[Sound]:
    if prompt.music:
        yield _music(prompt.music, length_s, assets)
    for index, effect in enumerate(prompt.effects):
        yield _effect(f"effects[{index}]", effect, length_s, assets)
    for index, words in enumerate(prompt.narration):
        yield _words(f"narration[{index}]", words, length_s, assets)


def _music(music: Music, length_s: Fraction, assets: Catalogue) -> Sound:
    for field, seconds in (("fade_in_s", music.fade_in_s), ("fade_out_s", music.fade_out_s)):
        if not (math.isfinite(seconds) and 0 <= seconds <= MAX_FADE_S):
            raise refused(f"music.{field}", "range", f"{seconds:g} s is not from 0 to {MAX_FADE_S:g} s")
    if music.fade_in_s + music.fade_out_s > length_s:
        raise refused("music.fade_out_s", "sum", f"both fades are longer than the video, {float(length_s):g} s")
    return Sound(
        start_us=0,
        gain_db=_gain("music", music.gain_db),
        asset=assets.resolved("music.asset", music.asset, AssetKind.SOUND),
        fade_in_us=round(music.fade_in_s * 1e6),
        fade_out_us=round(music.fade_out_s * 1e6),
        loop=music.loop,
    )


def _effect(field: str, effect: Effect, length_s: Fraction, assets: Catalogue) -> Sound:
    return Sound(
        start_us=check_at(f"{field}.at_s", effect.at_s, length_s),
        gain_db=_gain(field, effect.gain_db),
        asset=assets.resolved(f"{field}.asset", effect.asset, AssetKind.SOUND),
    )


def _words(field: str, words: Narration, length_s: Fraction, assets: Catalogue) -> Sound:
    start_us, gain_db = check_at(f"{field}.at_s", words.at_s, length_s), _gain(field, words.gain_db)
    if bool(words.text) == bool(words.asset):
        raise refused(f"{field}.text", "exclusive", "give either text or asset")
    if words.asset:
        asset = assets.resolved(f"{field}.asset", words.asset, AssetKind.SOUND)
        return Sound(start_us=start_us, gain_db=gain_db, asset=asset)
    check_text(f"{field}.text", words.text, MAX_SPOKEN_CHARS)
    voice = _VOICE.fullmatch(words.voice)
    if voice is None or voice[1] not in _LANGUAGES.split():
        message = f"{words.voice!r:.40} is no language of eSpeak NG, written like en, en-gb or en-gb+f3"
        raise refused(f"{field}.voice", "voice", message)
    if not MIN_WORDS <= words.words_per_minute <= MAX_WORDS:
        message = f"{words.words_per_minute} is not from {MIN_WORDS} to {MAX_WORDS}"
        raise refused(f"{field}.words_per_minute", "range", message)
    return Sound(
        start_us=start_us,
        gain_db=gain_db,
        text=words.text,
        voice=words.voice,
        words_per_minute=words.words_per_minute,
    )


def _gain(field: str, gain_db: float) -> float:
    if not (math.isfinite(gain_db) and MIN_GAIN_DB <= gain_db <= MAX_GAIN_DB):
        raise refused(f"{field}.gain_db", "range", f"{gain_db:g} is not from {MIN_GAIN_DB:g} to {MAX_GAIN_DB:g}")
    return gain_db
