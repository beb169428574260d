"""What a place is made of, and the sky that most of them share. Lengths in picture heights."""

from dataclasses import dataclass

from gpu_consumers.engines.animatic.canvas import MARGIN, Stage
from gpu_consumers.engines.animatic.light import add_orb, add_stars
from gpu_consumers.engines.animatic.moving import CAMERA_HEIGHT, Clouds, Ground, ground_texels, ramp
from gpu_consumers.engines.animatic.paint import Paintable, Strip, filled_strip, gradient
from gpu_consumers.engines.animatic.palette import Colour, mix

HORIZON = 0.55
FOOT = HORIZON + CAMERA_HEIGHT
"""Where a subject stands, at depth 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenery:
    """A place: what is behind the subjects and what is in front of them, back to front."""

    behind: tuple[Paintable, ...]
    before: tuple[Paintable, ...] = ()
    foot: float = FOOT
    grounded: bool = True
    """Subjects stand on something and throw a shadow; else they hang free."""
    water: bool = False
    """Subjects that do not float or fly are in it to the waist."""


def sky(stage: Stage, horizon: float = HORIZON) -> tuple[Paintable, ...]:
    """The sky with sun or moon, stars and clouds, down to the horizon and a haze below it."""
    palette = stage.palette
    stops = [(-MARGIN, palette.top), (0.02, palette.top), (horizon * 0.62, palette.middle), (horizon, palette.horizon)]
    colour = gradient(stage, [*stops, (horizon + 0.1, palette.horizon)], -MARGIN, horizon + 0.1)
    if palette.stars:
        add_stars(stage, colour, palette.stars, -MARGIN, horizon - 0.06)
    if palette.orb:
        add_orb(stage, colour, palette.orb, -MARGIN)
    clouds = Clouds(colour=palette.cloud, table=ramp(palette.clouds, 1.5, 205), bottom=horizon)
    return filled_strip(stage, colour, -MARGIN), clouds


def plain(stage: Stage, near: Colour, horizon: float = HORIZON, haze: float = 0.75) -> Strip:
    """The bare ground from the horizon to below the picture: `near` at the bottom, hazy at the horizon."""
    palette = stage.palette
    stops = [
        (horizon, palette.lit(near, haze)),
        (horizon + 0.12, palette.lit(near, haze * 0.35)),
        (1.1, palette.lit(near) * 0.82),
    ]
    return filled_strip(stage, gradient(stage, stops, horizon, 1 + MARGIN), horizon)


def marks(stage: Stage, colour: Colour, blots: tuple[float, float], cover: float, strength: int) -> Ground:
    """Marks on the ground that run under the camera. `blots`: how many across a texture, and how long against wide."""
    texels = ground_texels(stage, "ground", blots, cover, strength)
    return Ground(horizon=HORIZON, colour=colour, texels=texels, stretch=(90, 90))


def shadow_side(stage: Stage, colour: Colour, haze: float) -> Colour:
    """The dark side of a thing."""
    return mix(stage.palette.lit(colour, haze), stage.palette.top * 0.4, 0.35)
