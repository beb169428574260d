"""Every figure by the vocabulary's term for it, and its colours in the light of a place."""

import numpy as np

from gpu_consumers.engines.animatic.figures.beasts import BEASTS
from gpu_consumers.engines.animatic.figures.craft import CRAFT
from gpu_consumers.engines.animatic.figures.four_legged import FOUR_LEGGED
from gpu_consumers.engines.animatic.figures.pen import Figure, Figures, Inks
from gpu_consumers.engines.animatic.figures.people import PEOPLE
from gpu_consumers.engines.animatic.figures.things import THINGS
from gpu_consumers.engines.animatic.figures.vehicles import VEHICLES
from gpu_consumers.engines.animatic.look import Token
from gpu_consumers.engines.animatic.palette import Palette, mix, rgb

FIGURES: Figures = {**PEOPLE, **FOUR_LEGGED, **BEASTS, **VEHICLES, **CRAFT, **THINGS}
MARKER = ""
_COLOURS = {
    "red": rgb(206, 52, 48),
    "orange": rgb(226, 124, 44),
    "yellow": rgb(236, 196, 60),
    "green": rgb(70, 142, 84),
    "blue": rgb(62, 104, 186),
    "purple": rgb(128, 78, 168),
    "pink": rgb(232, 128, 168),
    "white": rgb(236, 236, 232),
    "black": rgb(46, 46, 54),
    "brown": rgb(142, 96, 62),
    "grey": rgb(150, 156, 166),
}
_DIMMEST = 0.56
"""Subjects are lit at least this much: a previsualisation shows where they are, also at night."""


def figure_of(token: Token) -> Figure:
    """How to draw a subject; the marker if its kind is not known."""
    return FIGURES.get(token.kind, FIGURES[MARKER])


def inks_of(token: Token, palette: Palette) -> Inks:
    """The colours of a subject in this light."""
    tint = np.maximum(palette.tint, _DIMMEST)
    main = _COLOURS[token.colour or figure_of(token).colour]
    bright = palette.lights_on > 0.1
    return Inks(
        main=main * tint,
        dark=rgb(56, 50, 58) * tint,
        light=rgb(238, 234, 224) * tint,
        skin=rgb(214, 160, 124) * tint,
        trim=mix(rgb(226, 170, 70), main, 0.25) * tint,
        glow=rgb(244, 226, 150) if bright else rgb(190, 216, 232) * tint,
    )
