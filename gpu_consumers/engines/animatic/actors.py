"""The subjects of a shot in the picture: where they are, how large, in which phase of their movement."""

from collections.abc import Iterator
from math import ceil, cos, pi

import numpy as np
from PIL import Image

from gpu_consumers.engines.animatic.figures.cast import FIGURES, figure_of, inks_of
from gpu_consumers.engines.animatic.figures.pen import PHASES, Figure, Pen, wave
from gpu_consumers.engines.animatic.labels import name_tag
from gpu_consumers.engines.animatic.look import FRAMINGS, ROOTED, Look, Token
from gpu_consumers.engines.animatic.paint import View, Window
from gpu_consumers.engines.animatic.palette import Palette
from gpu_consumers.engines.animatic.scenery.set import Scenery

_AFLOAT = ("boat", "ship", *ROOTED)
_RESTING = ("stand", "sit", "sleep", "walk")
_LARGEST_PX = 640
"""Figures are drawn no larger and scaled up from there."""
_SPARE = 1.3
"""Drawn larger than first seen, for moves towards them."""
_WIDEST = 0.82
"""Of the picture's width; trains may be longer."""
_HEADROOM = 0.13
_OFF_GROUND = 0.02
"""What is higher throws no shadow."""


class Actors:
    """The subjects of one look in one size. Drawings are made when they are first seen, and kept."""

    def __init__(self, look: Look, scenery: Scenery, palette: Palette, size: tuple[int, int]) -> None:
        self._look = look
        self._scenery = scenery
        self._palette = palette
        self._size = size
        self._aspect = size[0] / size[1]
        self._drawn: dict[tuple[int, int], Image.Image] = {}
        self._light_x = palette.orb.x * 2 - 1 if palette.orb else 0.6
        y, x = np.mgrid[-1:1:32j, -1:1:96j]
        self._shadow = Image.fromarray((np.clip(1 - np.hypot(x, y), 0, 1) ** 0.7 * 120).astype(np.uint8))

    def paint(self, picture: Image.Image, view: View) -> None:
        """Paint the subjects, the ones behind first."""
        window = view.window(1.0)
        for index, token, x in reversed(list(self._placed(view))):
            self._paint_one(picture, view, window, (index, token, x))

    def _placed(self, view: View) -> Iterator[tuple[int, Token, float]]:
        """Where each stands: followers behind the first, rooted ones at fixed places."""
        control = view.control
        x = control.subject_x
        for index, token in enumerate(self._look.tokens):
            size = self._height(token) * sum(figure_of(token).reach[:2])
            if token.kind in ROOTED and index:
                yield index, token, self._aspect * (0.27, -0.30)[(index - 1) % 2]
            else:
                yield index, token, x
                x -= control.facing * size * 0.55

    def _height(self, token: Token) -> float:
        figure = figure_of(token)
        height = figure.height * FRAMINGS.get(self._look.framing, 1.0)
        wide = sum(figure.reach[:2]) * height
        return height if token.kind == "train" else height * min(1.0, _WIDEST * self._aspect / wide)

    def _paint_one(self, picture: Image.Image, view: View, window: Window, placed: tuple[int, Token, float]) -> None:
        index, token, x = placed
        figure, control, look = figure_of(token), view.control, self._look
        height = self._height(token)
        pixels = self._size[1] / window.height
        foot = self._foot(figure, height, control.subject_y if index == 0 else 0.0, control.gait + index * 0.4)
        centre = (self._aspect / 2 + x - window.left) * pixels
        phase = (control.gait + 0.37 * index) % 1
        drawing = self._drawing(index, token, int(phase * PHASES))
        scale = height * pixels / self._drawn_height(token)
        squeeze = cos(2 * pi * control.gait * 0.5) if look.action == "spin" else 1.0
        mirrored = (control.facing < 0) != (squeeze < 0) and token.kind not in ROOTED
        width, tall = (
            max(1, round(drawing.width * scale * max(0.12, abs(squeeze)))),
            max(1, round(drawing.height * scale)),
        )
        left_reach, right_reach, up, down = figure.reach
        share = (right_reach if mirrored else left_reach) / (left_reach + right_reach)
        left = centre - width * share
        top = (foot - window.top) * pixels - tall * up / (up + down)
        if left > picture.width or left + width < 0 or top > picture.height or top + tall < 0:
            return
        if self._scenery.grounded and not self._in_the_air(figure) and control.subject_y < _OFF_GROUND:
            self._throw_shadow(picture, (centre, (foot - window.top) * pixels), height * pixels)
        if mirrored:
            drawing = drawing.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        _paste(picture, drawing, (left, top, width, tall), self._waterline(token, figure, tall))
        if token.kind not in FIGURES:
            tag = name_tag(token.label, self._size)
            picture.paste(tag, (round(centre - tag.width / 2), round(max(0.0, top - tag.height))))

    def _foot(self, figure: Figure, height: float, climb: float, gait: float) -> float:
        """The height of its foot in the picture, in picture heights from the top."""
        if self._scenery.grounded or self._scenery.water:
            foot = max(self._scenery.foot, _HEADROOM + height * 1.02)
            lift = figure.lift + 0.02 * wave(gait / 2) if self._in_the_air(figure) else 0.0
            return max(foot - lift - max(climb, 0.0), _HEADROOM / 2 + height)
        return max(self._scenery.foot + height * 0.35 - climb, _HEADROOM / 2 + height) + 0.015 * wave(gait / 2)

    def _in_the_air(self, figure: Figure) -> bool:
        return figure.lift > 0 and self._look.action not in _RESTING

    def _waterline(self, token: Token, figure: Figure, tall: int) -> int:
        """Rows of the drawing that are above the water."""
        if not self._scenery.water or token.kind in _AFLOAT or self._in_the_air(figure):
            return tall
        return round(tall * (0.55 if figure.reach[2] < 1.4 else 0.66))

    def _drawn_height(self, token: Token) -> int:
        return max(8, min(_LARGEST_PX, round(self._height(token) * self._size[1] * _SPARE)))

    def _drawing(self, index: int, token: Token, phase: int) -> Image.Image:
        if (index, phase) not in self._drawn:
            figure = figure_of(token)
            pen = Pen(self._drawn_height(token), figure.reach, inks_of(token, self._palette))
            figure.draw(pen, phase / PHASES, self._look.action)
            self._drawn[index, phase] = pen.finished(self._palette.glow, self._light_x)
        return self._drawn[index, phase]

    def _throw_shadow(self, picture: Image.Image, at: tuple[float, float], height: float) -> None:
        width, tall = max(2, round(height * 0.9)), max(2, round(height * 0.14))
        mask = self._shadow.resize((width, tall))
        picture.paste((10, 10, 16), (round(at[0] - width / 2), round(at[1] - tall / 2)), mask)


def _paste(picture: Image.Image, drawing: Image.Image, place: tuple[float, float, int, int], rows: int) -> None:
    """Scale the drawing into a place given to a fraction of a pixel, and paste its first `rows` rows."""
    left, top, width, tall = place
    x, y = ceil(left), ceil(top)
    per_x, per_y = drawing.width / width, drawing.height / tall
    size = (max(1, width - 1), max(1, tall - 1))
    start = ((x - left) * per_x, (y - top) * per_y)
    box = (*start, min(drawing.width, start[0] + size[0] * per_x), min(drawing.height, start[1] + size[1] * per_y))
    scaled = drawing.resize(size, Image.Resampling.BILINEAR, box)
    cut = scaled.crop((0, 0, size[0], rows)) if rows < tall else scaled
    picture.paste(cut, (x, y), cut)
