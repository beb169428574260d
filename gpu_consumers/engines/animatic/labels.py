"""What is burnt in: the word ANIMATIC, the time code, the caption with camera and light. The picture never passes for a shot film."""

from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from gpu_consumers.engines.animatic.palette import BRIGHTEST, DARKEST

_INK = (round(BRIGHTEST) - 6,) * 3
_AMBER = (236, 176, 60)
_SHADE = (round(DARKEST) + 6,) * 3
_GLYPHS = "0123456789:;"
_MAX_CAPTION = 400
Font = ImageFont.FreeTypeFont | ImageFont.ImageFont


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """Something small to paste: picture, mask and place."""

    picture: Image.Image
    mask: Image.Image
    at: tuple[int, int]


class Labels:
    """The overlays of one shot in one size. `frame_rate` is rounded to whole frames for the time code, as is usual."""

    def __init__(self, size: tuple[int, int], caption: str, note: str, frame_rate: int) -> None:
        self._size = size
        self._rate = max(1, frame_rate)
        unit = min(size[1], size[0] * 0.8)
        small, large = _font(max(7, round(unit * 0.034))), _font(max(8, round(unit * 0.040)))
        self._pad = max(2, round(unit * 0.018))
        self._bars = (self._top(small), *self._note(note, small), self._bottom(caption, large))
        self._glyphs = {glyph: _glyph(glyph, small) for glyph in _GLYPHS}
        self._pitch = max(glyph.width for glyph in self._glyphs.values())

    def paint(self, picture: Image.Image, frame: int) -> None:
        """Burn the labels in."""
        for bar in self._bars:
            picture.paste(bar.picture, bar.at, bar.mask)
        x = self._size[0] - self._pad * 2 - self._pitch * 11
        for glyph in time_code(frame, self._rate):
            mask = self._glyphs[glyph]
            picture.paste(_INK, (x + (self._pitch - mask.width) // 2, round(self._pad * 1.8)), mask)
            x += self._pitch

    def _top(self, font: Font) -> Stamp:
        """The badge on the left, the bed of the time code on the right."""
        text = "ANIMATIC"
        left, top, right, bottom = font.getbbox(text)
        height = round(bottom - top + self._pad * 1.6)
        picture = Image.new("RGB", (self._size[0], height + self._pad), _SHADE)
        mask = Image.new("L", picture.size, 0)
        badge = (self._pad, self._pad, round(self._pad * 2.6 + right - left), self._pad + height - 1)
        ImageDraw.Draw(mask).rectangle(badge, fill=235)
        draw = ImageDraw.Draw(picture)
        draw.rectangle(badge, fill=_AMBER)
        draw.text((round(self._pad * 1.8 - left), round(self._pad * 1.8 - top)), text, fill=_SHADE, font=font)
        pitch = max(round(font.getlength(glyph)) for glyph in _GLYPHS)
        bed = (
            self._size[0] - self._pad * 2 - pitch * 11 - self._pad,
            self._pad,
            self._size[0] - self._pad,
            self._pad + height - 1,
        )
        if bed[0] > badge[2]:
            ImageDraw.Draw(mask).rectangle(bed, fill=130)
        return Stamp(picture=picture, mask=mask, at=(0, 0))

    def _note(self, note: str, font: Font) -> tuple[Stamp, ...]:
        """Camera, light and pace, under the badge."""
        line = _fitted(note, font, self._size[0] - 4 * self._pad)
        height = round(_height(font) * 1.2) + self._pad
        picture = Image.new("RGB", (min(self._size[0], round(font.getlength(line)) + 2 * self._pad), height), _SHADE)
        text = Image.new("L", picture.size, 0)
        ImageDraw.Draw(text).text((self._pad, self._pad // 2), line, fill=255, font=font)
        picture.paste(_INK, (0, 0), text)
        mask = Image.new("L", picture.size, 96)
        mask.paste(250, (0, 0), text)
        return (Stamp(picture=picture, mask=mask, at=(self._pad, round(_height(font) + self._pad * 3.4))),)

    def _bottom(self, caption: str, font: Font) -> Stamp:
        """The caption in at most two lines."""
        lines = _lines(caption, font, self._size[0] - 4 * self._pad)
        step = round(_height(font) * 1.22)
        height = min(self._size[1] // 2, step * len(lines) + 2 * self._pad)
        picture = Image.new("RGB", (self._size[0], height), _SHADE)
        text = Image.new("L", picture.size, 0)
        for number, line in enumerate(lines):
            ImageDraw.Draw(text).text((2 * self._pad, self._pad * 0.7 + number * step), line, fill=255, font=font)
        picture.paste(_INK, (0, 0), text)
        mask = Image.new("L", picture.size, 128)
        mask.paste(250, (0, 0), text)
        return Stamp(picture=picture, mask=mask, at=(0, self._size[1] - height))


@lru_cache(maxsize=32)
def name_tag(text: str, size: tuple[int, int]) -> Image.Image:
    """A small sign with a subject's name, for a picture of this size."""
    font = _font(max(7, round(min(size[1], size[0] * 0.8) * 0.038)))
    shown = _fitted(_printable(text[:60]), font, round(size[0] * 0.5))
    pad = max(2, size[1] // 120)
    tag = Image.new("RGB", (round(font.getlength(shown)) + 4 * pad, round(_height(font)) + 3 * pad), _SHADE)
    draw = ImageDraw.Draw(tag)
    draw.rectangle((0, 0, tag.width - 1, tag.height - 1), outline=_AMBER)
    draw.text((2 * pad, pad - font.getbbox(shown)[1]), shown, fill=_INK, font=font)
    return tag


def time_code(frame: int, rate: int) -> str:
    """`HH:MM:SS:FF`, counting whole frames (non-drop)."""
    seconds, frames = divmod(max(0, frame), rate)
    return f"{seconds // 3600 % 100:02}:{seconds // 60 % 60:02}:{seconds % 60:02}:{frames % 100:02}"


def _lines(text: str, font: Font, room: int) -> list[str]:
    """The text in at most two lines, cut short with an ellipsis."""
    lines: list[str] = [""]
    for word in _printable(text[:_MAX_CAPTION]).split():
        longer = f"{lines[-1]} {word}".strip()
        if font.getlength(longer) <= room or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(word)
    lines = [_fitted(line, font, room) for line in lines if line]
    return [lines[0], _fitted(lines[1] + " …", font, room)] if len(lines) > 2 else lines


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _fitted(line: str, font: Font, room: int) -> str:
    while len(line) > 1 and font.getlength(line) > room:
        line = line[: -2 if line.endswith("…") else -1] + "…"
    return line


def _height(font: Font) -> float:
    _, top, _, bottom = font.getbbox("Ag|")
    return bottom - top


def _glyph(text: str, font: Font) -> Image.Image:
    _, top, _, bottom = font.getbbox("0:")
    mask = Image.new("L", (max(1, round(font.getlength(text))), max(1, round(bottom - top))), 0)
    ImageDraw.Draw(mask).text((0, -top), text, fill=255, font=font)
    return mask


@cache
def _font(size: int) -> Font:
    """DejaVu Sans, which comes with matplotlib and covers most alphabets; else Pillow's own."""
    spec = find_spec("matplotlib")
    folder = Path(spec.origin).parent / "mpl-data" / "fonts" / "ttf" if spec and spec.origin else Path()
    path = folder / "DejaVuSans.ttf"
    return ImageFont.truetype(path, size) if path.is_file() else ImageFont.load_default(size)
