"""Colours from place, time of day, weather and ambience. RGB, 0 to 255, float; kept within what the film grain leaves room for."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gpu_consumers.engines.animatic.look import Backdrop

Colour = NDArray[np.float64]
DARKEST, BRIGHTEST = 8.0, 244.0


def rgb(r: float, g: float, b: float) -> Colour:
    """A colour."""
    return np.asarray((r, g, b), np.float64)


def mix(a: Colour, b: Colour, share: float) -> Colour:
    """`share` of b, the rest a."""
    return a + (b - a) * share


def bytes_of(colour: Colour) -> tuple[int, int, int]:
    """As Pillow takes it."""
    r, g, b = colour.tolist()
    return _level(r), _level(g), _level(b)


def _level(value: float) -> int:
    return round(min(max(value, DARKEST), BRIGHTEST))


@dataclass(frozen=True, slots=True, kw_only=True)
class Orb:
    """Sun or moon: place in the picture, from left and top, in picture widths and heights; radius in heights."""

    x: float
    y: float
    radius: float
    colour: Colour
    glow: float
    """Reach of its light in picture heights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Palette:
    """The light of a backdrop."""

    top: Colour
    middle: Colour
    horizon: Colour
    tint: Colour
    """What the light leaves of a thing's own colour, per channel 0 to 1."""
    cloud: Colour
    clouds: float
    """Share of the sky they cover."""
    orb: Orb | None
    stars: float
    window: Colour
    lights_on: float
    """Share of windows and lamps that are lit."""
    glow: Colour
    """Rim of what stands against the light."""

    def lit(self, colour: Colour, haze: float = 0.0) -> Colour:
        """A thing's colour in this light, `haze` of the way into the distance."""
        return mix(colour * self.tint, self.horizon, haze)


_SKIES: dict[str, tuple[Colour, Colour, Colour]] = {
    "day": (rgb(58, 120, 196), rgb(124, 178, 226), rgb(206, 228, 238)),
    "golden hour": (rgb(66, 72, 128), rgb(226, 128, 92), rgb(250, 204, 128)),
    "blue hour": (rgb(24, 36, 92), rgb(74, 84, 158), rgb(214, 148, 160)),
    "night": (rgb(12, 17, 46), rgb(25, 37, 84), rgb(56, 74, 126)),
}
_TINTS = {
    "day": rgb(0.95, 0.96, 0.98),
    "golden hour": rgb(0.86, 0.58, 0.44),
    "blue hour": rgb(0.40, 0.42, 0.66),
    "night": rgb(0.22, 0.28, 0.46),
}
_GLOWS = {
    "day": rgb(244, 244, 232),
    "golden hour": rgb(244, 196, 120),
    "blue hour": rgb(200, 160, 190),
    "night": rgb(150, 172, 220),
}
_ORBS = {
    "day": Orb(x=0.74, y=0.13, radius=0.042, colour=rgb(244, 240, 214), glow=0.30),
    "golden hour": Orb(x=0.68, y=0.50, radius=0.075, colour=rgb(244, 226, 150), glow=0.75),
    "night": Orb(x=0.72, y=0.20, radius=0.055, colour=rgb(232, 234, 222), glow=0.32),
}


_GREYING = {"overcast": 0.65, "rain": 0.6, "snow": 0.36, "fog": 0.5, "storm": 0.85}
"""How much of a sky's colour is left out."""


def palette_of(backdrop: Backdrop) -> Palette:
    """The palette of a backdrop."""
    time = backdrop.time
    top, middle, horizon = _SKIES[time]
    palette = Palette(
        top=top,
        middle=middle,
        horizon=horizon,
        tint=_TINTS[time],
        cloud=mix(
            horizon, rgb(244, 244, 244), {"day": 0.85, "golden hour": 0.35, "blue hour": 0.2, "night": 0.08}[time]
        ),
        clouds={"day": 0.34, "golden hour": 0.36, "blue hour": 0.3, "night": 0.2}[time],
        orb=_ORBS.get(time),
        stars={"night": 1.0, "blue hour": 0.35}.get(time, 0.0),
        window=rgb(244, 206, 120),
        lights_on={"night": 0.42, "blue hour": 0.34, "golden hour": 0.12, "day": 0.0}[time],
        glow=_GLOWS[time],
    )
    if "neon" in backdrop.ambience:
        palette = _neon(palette)
    if "candlelit" in backdrop.ambience:
        palette = _candlelit(palette)
    greying = [_GREYING[term] for term in backdrop.ambience | backdrop.weather if term in _GREYING]
    if greying:
        palette = _grey(palette, max(greying), "storm" in backdrop.weather)
    if "snow" in backdrop.weather:
        palette = replace(palette, tint=mix(palette.tint, rgb(0.96, 0.97, 1.0), 0.3))
    return palette


def _neon(p: Palette) -> Palette:
    return replace(
        p,
        top=rgb(16, 12, 40),
        middle=rgb(62, 24, 92),
        horizon=rgb(186, 58, 140),
        tint=rgb(0.34, 0.24, 0.50),
        orb=None,
        stars=0.25,
        lights_on=0.6,
        glow=rgb(90, 226, 236),
        cloud=rgb(120, 44, 128),
        clouds=0.26,
    )


def _candlelit(p: Palette) -> Palette:
    return replace(
        p,
        top=mix(p.top * 0.4, rgb(40, 22, 16), 0.5),
        middle=mix(p.middle * 0.4, rgb(70, 38, 20), 0.5),
        horizon=mix(p.horizon * 0.5, rgb(150, 84, 36), 0.5),
        tint=rgb(0.48, 0.30, 0.17),
        glow=rgb(244, 180, 84),
        window=rgb(244, 190, 96),
        lights_on=0.7,
    )


def _grey(p: Palette, share: float, storm: bool) -> Palette:
    """A covered sky: the colours go to the grey of the same lightness, darker in a storm."""
    dim = 0.66 if storm else 0.92

    def grey(colour: Colour) -> Colour:
        level = float(colour @ (0.3, 0.59, 0.11))
        return mix(colour, rgb(level * 0.97, level, level * 1.04), share) * dim

    middle, horizon = grey(p.middle), grey(p.horizon)
    return replace(
        p,
        top=mix(grey(p.top), middle, 0.55),
        middle=middle,
        horizon=horizon,
        tint=mix(p.tint, rgb(1, 1, 1) * float(p.tint.mean()), share) * (0.8 if storm else 0.86),
        orb=None,
        stars=0.0,
        cloud=horizon * (0.72 if storm else 1.06),
        clouds=0.75,
        glow=mix(p.glow, horizon, 0.6),
    )
