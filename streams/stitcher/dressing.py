"""What is put over the pictures of a piece, and what stands before and behind them: fades, subtitles, cards.

It depends on the frame's number alone, so that the frames of context in a reference look as their own piece shows them.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageColor, ImageDraw

from infra.objects import BlobError
from schemas.errors import BadInputError
from schemas.records import Caption, Correction, PieceRequested, PlannedCard, VideoFormat
from streams.captions.files import lines_of
from streams.fetching import AssetFiles
from streams.lettering import Font, fitted, line_height
from streams.stitcher.picture import Frame, render, rounded

_TEXT_SHARE, _CARD_SHARE = 18, 9
"""Parts of the height that a line of letters takes at most."""
_MARGIN_SHARE = 0.05
_WIDTH_SHARE = 0.84
_GREY = 128
_BLACK, _WHITE = 16, 235

Weights = NDArray[np.float32]


class Dressing:
    """Everything that a request for a piece has put over its frames. `lines` are the subtitles to draw."""

    def __init__(self, request: PieceRequested, lines: Sequence[Caption]) -> None:
        self._format = request.format
        self._curtains = request.curtains
        self._lines = lines
        self._drawn = lru_cache(maxsize=2)(self._letters)

    def over(self, frame: int, picture: Frame) -> Frame:
        """The picture [H * 3 / 2, W] of that frame of the timeline as it is seen. One without anything over it comes back itself."""
        for curtain in self._curtains:
            shown = _opened(frame, curtain.frame, curtain.frames)
            if shown < 1:
                picture = _mixed(picture, curtain.colour, shown)
        time_us = round(frame * 1_000_000 * self._format.fps_den / self._format.fps_num)
        line = next((line for line in self._lines if line.start_us <= time_us < line.end_us), None)
        return self._drawn(line.text).over(picture) if line else picture

    def _letters(self, text: str) -> "_Letters":
        return _Letters(text, self._format)


class _Letters:
    """A subtitle as it is drawn: white with a black edge, at the bottom. Only the rows that have some of it are kept."""

    def __init__(self, text: str, size: VideoFormat) -> None:
        width, height = size.width, size.height
        font, lines = fitted(text, round(width * _WIDTH_SHARE), height // 3, height // _TEXT_SHARE)
        edge = max(1, round(font.size / 10))
        alpha, luma = (Image.new("L", (width, height), 0) for _ in range(2))
        bottom = height - round(height * _MARGIN_SHARE)
        where = (width / 2, bottom - lines.count("\n") * line_height(font) - line_height(font))
        for image, stroke in ((alpha, edge), (luma, 0)):
            _write(image, where, lines, font, 255, stroke)
        shown: Weights = np.asarray(alpha, np.float32) / np.float32(255)
        rows = np.flatnonzero(shown.any(axis=1))
        first, end = (int(rows[0]) & ~1, (int(rows[-1]) + 2) & ~1) if len(rows) else (0, 0)
        self._rows = slice(first, end)
        self._alpha: Weights = shown[first:end]
        light: Weights = np.asarray(luma, np.float32)[first:end] / np.float32(255)
        self._luma: Weights = np.float32(_BLACK) + np.float32(_WHITE - _BLACK) * light

    def over(self, picture: Frame) -> Frame:
        """The picture with it."""
        out = picture.copy()
        height, width = picture.shape[0] * 2 // 3, picture.shape[1]
        rows = out[self._rows]
        rows[:] = _blended(rows, self._luma, self._alpha)
        coarse = self._alpha.reshape(self._alpha.shape[0] // 2, 2, width // 2, 2).mean(axis=(1, 3))
        for chroma in out[height:].reshape(2, height // 2, width // 2):
            part = chroma[self._rows.start // 2 : self._rows.stop // 2]
            part[:] = _blended(part, np.float32(_GREY), coarse)
        return out


def burnt_lines(request: PieceRequested, assets: AssetFiles, folder: Path) -> tuple[Caption, ...]:
    """The subtitles to draw. Raises: BadInputError if their file is lost."""
    if request.captions is None:
        return ()
    try:
        return lines_of(request.captions, assets, folder)
    except BlobError as error:
        raise BadInputError(field="captions.asset", rule="lost", message=str(error), job_id=request.job_id) from error


def card_pictures(request: PieceRequested, assets: AssetFiles, folder: Path) -> Iterator[tuple[PlannedCard, Frame]]:
    """Each card of the piece and its picture [H * 3 / 2, W]. Raises: BadInputError if the file of one is lost."""
    for card in request.cards:
        try:
            path = assets.path_of(card.asset, folder) if card.asset else None
        except BlobError as error:
            raise BadInputError(field="cards.asset", rule="lost", message=str(error), job_id=request.job_id) from error
        yield card, card_picture(card, request.format, path)


def card_picture(card: PlannedCard, size: VideoFormat, path: Path | None) -> Frame:
    """The card as it stands in the video. `path` is the file of its picture."""
    canvas = Image.new("RGB", (size.width, size.height), card.colour)
    if path is not None:
        with Image.open(path, formats=("PNG", "JPEG", "WEBP")) as image:
            fitting = _contained(image.convert("RGBA"), size)
        where = ((size.width - fitting.width) // 2, (size.height - fitting.height) // 2)
        canvas.paste(fitting, where, fitting)
    if card.text:
        width, height = round(size.width * _WIDTH_SHARE), round(size.height * _WIDTH_SHARE)
        font, lines = fitted(card.text, width, height, size.height // _CARD_SHARE)
        top = (size.height - (lines.count("\n") + 1) * line_height(font)) / 2
        edge = max(1, size.height // 180) if path else 0
        _write(canvas, (size.width / 2, top), lines, font, card.text_colour, edge)
    return rounded(render(np.asarray(canvas), Correction()))


def _contained(image: Image.Image, size: VideoFormat) -> Image.Image:
    scale = min(size.width / image.width, size.height / image.height)
    return image.resize(
        (max(1, round(image.width * scale)), max(1, round(image.height * scale))), Image.Resampling.LANCZOS
    )


def _write(
    image: Image.Image, where: tuple[float, float], lines: str, font: Font, fill: int | str, stroke: int
) -> None:
    """Lines, centred, the first one's top at `where`."""
    draw = ImageDraw.Draw(image)
    for index, line in enumerate(lines.split("\n")):
        place = (where[0], where[1] + index * line_height(font))
        black = 255 if image.mode == "L" else "#000000"
        draw.text(place, line, fill=fill, font=font, anchor="ma", stroke_width=stroke, stroke_fill=black)


def _opened(frame: int, border: int, frames: int) -> float:
    """How much of a picture a curtain leaves: 1 far from its middle, near 0 at it, the same on both sides."""
    distance = border - frame - 0.5 if frame < border else frame - border + 0.5
    return distance / frames


def _mixed(picture: Frame, colour: str, shown: float) -> Frame:
    height = picture.shape[0] * 2 // 3
    patch = np.full((2, 2, 3), ImageColor.getrgb(colour)[:3], np.uint8)
    y, u, v = rounded(render(patch, Correction())).reshape(-1)[[0, 4, 5]]
    out = picture.astype(np.float32) * np.float32(shown)
    out[:height] += np.float32(1 - shown) * y
    out[height:].reshape(2, -1)[:] += np.float32(1 - shown) * np.array([[u], [v]], np.float32)
    return np.rint(out).astype(np.uint8)


def _blended(below: Frame, above: Weights | np.float32, alpha: Weights) -> Frame:
    return np.rint(below + (above - below) * alpha).astype(np.uint8)
