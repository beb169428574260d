"""Latents to pixels: each world is built once and kept, each frame is painted from what its latent says."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from gpu_consumers.engines.animatic.actors import Actors
from gpu_consumers.engines.animatic.canvas import Stage
from gpu_consumers.engines.animatic.control import Control, Field, read_control
from gpu_consumers.engines.animatic.labels import Labels
from gpu_consumers.engines.animatic.look import Backdrop, Look, look_of
from gpu_consumers.engines.animatic.paint import Paintable, View
from gpu_consumers.engines.animatic.palette import bytes_of, palette_of
from gpu_consumers.engines.animatic.scenery.places import scenery_of
from gpu_consumers.engines.animatic.scenery.set import Scenery
from gpu_consumers.engines.animatic.weather import air_of, weather_before, weather_behind
from schemas.records import PlannedShot, SegmentRequested, Transition, VideoFormat

MORPH_S = 0.75
"""How long a continuous shot takes to turn into the next."""
_WORLDS, _CASTS = 6, 12
"""How many are kept: four jobs, some of them between two shots."""
_WORLD_PIXELS = 12_000_000
"""Of the pictures of all worlds that are kept: at 4K there are two of them, half a gigabyte each."""
_POOL = 16
"""Blocks of memory that Pillow keeps."""
_GRAIN = 2
_GRAIN_TILE = 64
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class _World:
    stage: Stage
    scenery: Scenery
    behind: tuple[Paintable, ...]
    before: tuple[Paintable, ...]


class Renderer:
    """Paints frames. What it keeps only saves time: every frame depends on its latent and request alone."""

    def __init__(self) -> None:
        # Pictures come and go by the dozen: without this every one is fresh memory of the system's, zeroed page by page
        Image.core.set_blocks_max(_POOL)  # pyright: ignore[reportAttributeAccessIssue] - as PIL_BLOCKS_MAX
        self._worlds: OrderedDict[Hashable, _World] = OrderedDict()
        self._casts: OrderedDict[Hashable, Actors] = OrderedDict()
        self._labels: OrderedDict[Hashable, Labels] = OrderedDict()
        self._grain: OrderedDict[Hashable, NDArray[np.uint8]] = OrderedDict()

    def frame(self, request: SegmentRequested, latent: Field) -> NDArray[np.uint8]:
        """One picture [H, W, 3] uint8 RGB of a latent [C, h, w]."""
        control = read_control(latent)
        video = request.format
        view = View(control=control, fields=_images(latent), aspect=video.width / video.height)
        shot = next(shot for shot in request.shots if shot.shot == control.shot)
        picture = self._painted(request, shot, control.world, view)
        before = [other for other in request.shots if other.start_frame < shot.start_frame]
        share = (control.time - shot.start_frame + 1) / (MORPH_S * video.fps_num / video.fps_den)
        if before and shot.transition is Transition.CONTINUOUS and share < 1:
            old = self._painted(request, before[-1], control.world_before, view)
            picture = Image.blend(old, picture, share * share * (3 - 2 * share))
        self._labels_of(shot, video).paint(picture, round(control.time))
        return self._grained(picture, control)

    def _painted(self, request: SegmentRequested, shot: PlannedShot, world_seed: float, view: View) -> Image.Image:
        look, video = look_of(shot.instruction, request.negative), request.format
        world = self._world(look.backdrop, int(world_seed), video)
        picture = Image.new("RGB", (video.width, video.height), bytes_of(world.stage.palette.middle))
        for thing in world.behind:
            thing.paint(picture, view)
        self._cast(look, world, int(world_seed)).paint(picture, view)
        for thing in world.before:
            thing.paint(picture, view)
        return picture

    def _world(self, backdrop: Backdrop, seed: int, video: VideoFormat) -> _World:
        step_s = video.fps_den / video.fps_num
        stage = Stage(
            width=video.width,
            height=video.height,
            per_height=float(video.height),
            backdrop=backdrop,
            palette=palette_of(backdrop),
            world=seed,
            step_s=step_s,
        )
        key = (backdrop, seed, video)
        limit = max(2, min(_WORLDS, _WORLD_PIXELS // (video.width * video.height)))
        return _kept(self._worlds, key, limit, lambda: _built(stage))

    def _cast(self, look: Look, world: _World, seed: int) -> Actors:
        size = (world.stage.width, world.stage.height)
        return _kept(
            self._casts, (look, seed, size), _CASTS, lambda: Actors(look, world.scenery, world.stage.palette, size)
        )

    def _labels_of(self, shot: PlannedShot, video: VideoFormat) -> Labels:
        instruction = shot.instruction
        parts = (instruction.camera or "no camera term", instruction.light, instruction.pace)
        note = f"SHOT {shot.shot + 1}  ·  " + "  ·  ".join(part for part in parts if part)
        size, rate = (video.width, video.height), round(video.fps_num / video.fps_den)
        key = (instruction.text, note, size, rate)
        return _kept(self._labels, key, _CASTS, lambda: Labels(size, instruction.text, note, rate))

    def _grained(self, picture: Image.Image, control: Control) -> NDArray[np.uint8]:
        """Film grain: it hides the steps of smooth skies. Palettes leave room for it, so that nothing wraps around."""
        width, height = picture.size
        grain = _kept(self._grain, picture.size, _WORLDS, lambda: _grain(width, height))
        place = int(control.grain * _GRAIN_TILE**2)
        y, x = divmod(place, _GRAIN_TILE)
        return np.asarray(picture) + grain[y : y + height, x : x + width]


def _built(stage: Stage) -> _World:
    scenery = scenery_of(stage)
    return _World(
        stage=stage,
        scenery=scenery,
        behind=(*scenery.behind, *weather_behind(stage)),
        before=(*scenery.before, *weather_before(stage), air_of(stage)),
    )


def _images(latent: Field) -> tuple[Image.Image, ...]:
    fields = np.clip(latent[:-1] * 40 + 128, 0, 255).astype(np.uint8)
    return tuple(Image.fromarray(field) for field in fields)


def _grain(width: int, height: int) -> NDArray[np.uint8]:
    """[height + tile, width + tile, 3]: the same for the three channels, added with wrap-around."""
    random = np.random.Generator(np.random.PCG64(1895))
    noise = np.clip(np.round(random.normal(0, 1.1, (height + _GRAIN_TILE, width + _GRAIN_TILE))), -_GRAIN, _GRAIN)
    return np.repeat(noise.astype(np.int8).view(np.uint8)[..., None], 3, axis=-1)


def _kept(store: OrderedDict[Hashable, T], key: Hashable, limit: int, make: Callable[[], T]) -> T:
    """What is kept under the key, made if it is not there; the one not used for longest goes."""
    if key not in store:
        store[key] = make()
        if len(store) > limit:
            store.popitem(last=False)
    store.move_to_end(key)
    return store[key]
