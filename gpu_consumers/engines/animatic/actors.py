"""The subjects of a shot in the picture: where they are, how large, in which phase of their movement."""

from collections.abc import Iterator
from math import ceil, cos, floor, pi

import numpy as np
from PIL import Image

from gpu_consumers.engines.animatic.canvas import period_of
from gpu_consumers.engines.animatic.control import Control
from gpu_consumers.engines.animatic.figures.cast import FIGURES, figure_of, inks_of
from gpu_consumers.engines.animatic.figures.pen import PHASES, Drawing, Figure, Pen, wave
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
        self._period = period_of(size[0] / size[1])
        self._aspect = size[0] / size[1]
        self._drawn: dict[tuple[int, int], Drawing] = {}
        self._light_x = palette.orb.x * 2 - 1 if palette.orb else 0.6
        y, x = np.mgrid[-1:1:32j, -1:1:96j]
        self._shadow = Image.fromarray((np.clip(1 - np.hypot(x, y), 0, 1) ** 0.7 * 120).astype(np.uint8))

    def paint(self, picture: Image.Image, view: View) -> None:
        """Paint the subjects, the ones behind first."""
        window = view.window(1.0)
        for index, token, x in reversed(list(self._placed(view))):
            self._paint_one(picture, view, window, (index, token, x))

    def _placed(self, view: View) -> Iterator[tuple[int, Token, float]]:
        """Where each stands: followers behind the first, rooted ones at fixed places; all come again as the world does."""
        control = view.control
        camera = control.pan_x + control.track_x
        for index, token, x in self._lined_up(control):
            yield index, token, camera + (x - camera + self._period / 2) % self._period - self._period / 2

    def _lined_up(self, control: Control) -> Iterator[tuple[int, Token, float]]:
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
        figure, control = figure_of(token), view.control
        height, pixels = self._height(token), self._size[1] / window.height
        foot = self._foot(figure, height, control.subject_y if index == 0 else 0.0, control.gait + index * 0.4)
        stands = ((self._aspect / 2 + x - window.left) * pixels, (foot - window.top) * pixels)
        phase = (control.gait + 0.37 * index) % 1
        turned = cos(pi * control.gait) if self._look.action == "spin" else 1.0
        drawing = self._drawing(index, token, int(phase * PHASES))
        if (control.facing < 0) != (turned < 0) and token.kind not in ROOTED:
            drawing = drawing.mirrored()
        if self._scenery.grounded and not self._in_the_air(figure) and control.subject_y < _OFF_GROUND:
            self._throw_shadow(picture, stands, height * pixels)
        scale = height * pixels / self._drawn_height(token)
        sunk = self._sunk(token, figure) * height * pixels
        surface = stands[1] if sunk else float(picture.height)
        stands = (stands[0], stands[1] + sunk)
        _paste(picture, drawing, stands, (scale * max(0.12, abs(turned)), scale), surface)
        if token.kind not in FIGURES:
            tag = name_tag(token.label, self._size)
            top = stands[1] - drawing.foot[1] * scale - tag.height
            picture.paste(tag, (round(stands[0] - tag.width / 2), round(max(0.0, top))))

    def _foot(self, figure: Figure, height: float, climb: float, gait: float) -> float:
        """The height of its foot in the picture, in picture heights from the top."""
        if self._scenery.grounded or self._scenery.water:
            foot = max(self._scenery.foot, _HEADROOM + height * 1.02)
            lift = figure.lift + 0.02 * wave(gait / 2) if self._in_the_air(figure) else 0.0
            return max(foot - lift - max(climb, -figure.lift), _HEADROOM / 2 + height)
        return max(self._scenery.foot + height * 0.35 - climb, _HEADROOM / 2 + height) + 0.015 * wave(gait / 2)

    def _in_the_air(self, figure: Figure) -> bool:
        return figure.lift > 0 and self._look.action not in _RESTING

    def _sunk(self, token: Token, figure: Figure) -> float:
        """How deep it is in the water, in its heights."""
        dry = not self._scenery.water or token.kind in _AFLOAT or self._in_the_air(figure)
        return 0.0 if dry else 0.5

    def _drawn_height(self, token: Token) -> int:
        return max(8, min(_LARGEST_PX, round(self._height(token) * self._size[1] * _SPARE)))

    def _drawing(self, index: int, token: Token, phase: int) -> Drawing:
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


def _paste(
    picture: Image.Image, drawing: Drawing, stands: tuple[float, float], scale: tuple[float, float], surface: float
) -> None:
    """Scale the drawing, put its foot where it stands to a fraction of a pixel, leave out what is below the surface."""
    left, top = stands[0] - drawing.foot[0] * scale[0], stands[1] - drawing.foot[1] * scale[1]
    x, y = ceil(left), ceil(top)
    right = floor(left + drawing.colour.width * scale[0])
    below = floor(min(top + drawing.colour.height * scale[1], surface))
    if right <= x or below <= y or x >= picture.width or y >= picture.height or right <= 0 or below <= 0:
        return
    box = ((x - left) / scale[0], (y - top) / scale[1], (right - left) / scale[0], (below - top) / scale[1])
    size = (right - x, below - y)
    colour, cover = (image.resize(size, Image.Resampling.BILINEAR, box) for image in (drawing.colour, drawing.cover))
    picture.paste(colour, (x, y), cover)
