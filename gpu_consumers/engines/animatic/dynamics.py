"""From one latent to the next: control and fields together, in the look of the frame's shot."""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import xxhash
from numpy.typing import NDArray

from gpu_consumers.engines.animatic.control import Control, Field, read_control, write_control
from gpu_consumers.engines.animatic.fields import FIELDS, Dynamics, Noise, NoiseKey, grid
from gpu_consumers.engines.animatic.look import Look, look_of
from gpu_consumers.engines.animatic.motion import Pace, advanced, opened
from schemas.records import PlannedShot, SegmentRequested

_WORLDS = 1 << 24


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scene:
    """A shot of the request, as a step needs it."""

    shot: PlannedShot
    look: Look
    pace: Pace


class Grower:
    """Grows the latents of one request. `salt` makes another world of the same request."""

    def __init__(self, request: SegmentRequested, salt: str = "") -> None:
        video = request.format
        self._request = request
        self._salt = salt
        self._shape = grid(video.width, video.height)
        step_s = video.fps_den / video.fps_num
        self._dynamics = _dynamics(self._shape, step_s)
        self._noises: dict[int, Noise] = {}
        self._scenes = [
            _Scene(
                shot=shot,
                look=(look := look_of(shot.instruction, request.negative)),
                pace=Pace(look=look, shot_s=shot.frames * step_s, aspect=video.width / video.height, step_s=step_s),
            )
            for shot in request.shots
        ]

    @property
    def shape(self) -> tuple[int, int, int]:
        """[C, h, w] of a latent."""
        return (FIELDS + 1, *self._shape)

    def first(self, time: int, run_segment: float) -> Field:
        """The latent of a take's first frame."""
        scene = self._scene(time)
        world = self._seed(scene.shot, "world") % _WORLDS
        fields, walk = self._noise(scene.shot).at(time)
        control = Control(
            time=time,
            run_segment=run_segment,
            shot=scene.shot.shot,
            world=world,
            world_before=world,
            grain=abs(float(walk[2])) % 1.0,
        )
        return self._latent(opened(control, scene.pace), self._dynamics.start(fields))

    def next(self, latent: Field, run_segment: float) -> Field:
        """The latent of the frame after this one."""
        before = read_control(latent)
        scene = self._scene(round(before.time) + 1)
        fields, walk = self._noise(scene.shot).at(round(before.time) + 1)
        control = self._turned_to(scene, replace(before, run_segment=run_segment))
        control = advanced(control, scene.pace, (float(walk[0]), float(walk[1]), float(walk[2])))
        return self._latent(control, self._dynamics.step(latent[:FIELDS], fields, self._wind(control, scene.look)))

    def _turned_to(self, scene: _Scene, control: Control) -> Control:
        """At a shot's first frame: its world, which is the old one if place and light stay the same."""
        if scene.shot.shot == control.shot:
            return control
        old = next((other for other in self._scenes if other.shot.shot == control.shot), None)
        same = old is not None and old.look.backdrop == scene.look.backdrop
        world = control.world if same else self._seed(scene.shot, "world") % _WORLDS
        return replace(control, shot=scene.shot.shot, world=world, world_before=control.world)

    def _wind(self, control: Control, look: Look) -> NDArray[np.float64]:
        """Cells per second right and down, per field. The sky turns against the camera's pan."""
        cells = self._shape[0]
        blow = (3.0 if "storm" in look.backdrop.weather else 1.0) * look.pace
        return np.asarray(
            [
                ((0.022 * blow - control.pan_vx) * cells, 0.0),
                (0.02 * blow * cells, 0.05 * blow * cells),
                ((0.05 * blow - control.pan_vx - 0.6 * control.track_vx) * cells, 0.0),
                ((0.26 * max(blow, 1.0) - control.pan_vx - control.track_vx) * cells, 0.05 * cells),
            ]
        )

    def _scene(self, time: int) -> _Scene:
        return next((s for s in reversed(self._scenes) if s.shot.start_frame <= time), self._scenes[0])

    def _noise(self, shot: PlannedShot) -> Noise:
        if shot.shot not in self._noises:
            key = NoiseKey(seed=self._seed(shot, "noise"), variation=self._request.variation)
            self._noises[shot.shot] = Noise(key, self._shape)
        return self._noises[shot.shot]

    def _seed(self, shot: PlannedShot, purpose: str) -> int:
        return xxhash.xxh3_64_intdigest(f"{self._request.seed}/{shot.seed}/{shot.shot}/{purpose}/{self._salt}".encode())

    def _latent(self, control: Control, fields: Field) -> Field:
        latent = np.zeros(self.shape, np.float32)
        latent[:FIELDS] = fields
        write_control(control, latent)
        return latent


@lru_cache(maxsize=16)
def _dynamics(shape: tuple[int, int], step_s: float) -> Dynamics:
    return Dynamics(shape, step_s)
