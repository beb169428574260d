"""Text in pictures: DejaVu Sans, which comes with matplotlib, so that it looks the same on every machine."""

from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from PIL import ImageFont

Font = ImageFont.FreeTypeFont
_SMALLEST_PX = 8


def missing(text: str) -> str:
    """Characters that the font has no picture of."""
    return "".join(sorted({letter for letter in text if not letter.isspace() and ord(letter) not in _letters()}))


def fitted(text: str, width: int, height: int, size: int) -> tuple[Font, str]:
    """The largest font up to `size` pixels in which the text, wrapped, is no larger than that, and its lines."""
    pixels = max(size, _SMALLEST_PX)
    while True:
        font = _font(pixels)
        lines = [line for paragraph in text.splitlines() for line in _wrapped(paragraph, font, width)]
        if pixels == _SMALLEST_PX or len(lines) * line_height(font) <= height:
            return font, "\n".join(lines[: max(1, height // line_height(font))])
        pixels -= 1


def line_height(font: Font) -> int:
    """From one line to the next, in pixels."""
    ascent, descent = font.getmetrics()
    return ascent + descent


def _wrapped(paragraph: str, font: Font, width: int) -> Iterator[str]:
    line = ""
    for word in paragraph.split():
        joined = f"{line} {word}" if line else word
        if font.getlength(joined) <= width:
            line = joined
            continue
        if line:
            yield line
        *whole, line = _broken(word, font, width)
        yield from whole
    yield line


def _broken(word: str, font: Font, width: int) -> Iterator[str]:
    """A word that is wider than a line, in parts."""
    part = ""
    for letter in word:
        if part and font.getlength(part + letter) > width:
            yield part
            part = ""
        part += letter
    yield part


@cache
def _font(size: int) -> Font:
    return ImageFont.truetype(_file(), size)


def _file() -> Path:
    spec = find_spec("matplotlib")
    if spec is None or spec.origin is None:
        raise RuntimeError("matplotlib is not installed: its fonts are needed")
    return Path(spec.origin).parent / "mpl-data" / "fonts" / "ttf" / "DejaVuSans.ttf"


@cache
def _letters() -> frozenset[int]:
    from matplotlib.ft2font import FT2Font  # takes a third of a second, and few jobs have text in their pictures

    return frozenset(FT2Font(str(_file())).get_charmap())
