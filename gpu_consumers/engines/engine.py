"""What every engine is: latents and frames of one segment after another, from a state that can be left and found again.

How the child process uses one (`gpu_consumers/child.py`):

    engine = create("animatic")                                # once per process
    state = held or engine.restore(request, latents)           # `latents`: what request.latent_ref points at, in order
    chunks = [chunk for chunk in state.denoise(request)]       # each chunk is a heartbeat; then store them all as [T, C, h, w]
    frames = [state.decode(request, chunk) for chunk in chunks]  # while another job denoises

After `denoise` is exhausted the state is where the *next* segment starts. The caller keeps it together with the digest of
the latents it stored, and continues with it only if `request.latent_ref[-1].digest` is that digest; otherwise it restores.
The output is bit-identical either way. A state whose `denoise` or `decode` was left in the middle, or raised, is dropped.

Axes: latents [T, C, h, w] of whatever dtype the engine computes with; frames [T, H, W, 3] uint8 RGB. T of a chunk of latents
and of its frames may differ (a causal VAE makes 4 frames from one latent).
"""

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from importlib.metadata import entry_points
from typing import Protocol, TypeAlias, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from schemas.records import Blob, FailureKind, SegmentRequested

Latents: TypeAlias = NDArray[np.generic]
Frames: TypeAlias = NDArray[np.uint8]


class EngineError(Exception):
    """The segment did not come out. After `DEVICE_LOST` and `OUT_OF_MEMORY` the process is discarded, not reused."""

    def __init__(self, kind: FailureKind, reason: str, *, retryable: bool = True, lost: tuple[Blob, ...] = ()) -> None:
        super().__init__(f"{kind}: {reason}")
        self.kind = kind
        self.reason = reason
        self.retryable = retryable
        self.lost = lost
        """Latents of earlier segments that cannot be used."""


class NoRoomError(EngineError):
    """There is no memory for one more state. Nothing was made and the process is whole: it goes on. `others`: states that are alive."""

    def __init__(self, reason: str, *, others: int) -> None:
        super().__init__(FailureKind.OUT_OF_MEMORY, reason)
        self.others = others


class EngineState(Protocol):
    """Where one job is: what its next segment starts from, and what its decoder remembers.

    `denoise` and `decode` may run in two threads at once; among all states of an engine each is called by one thread at a time,
    for one state in order.
    """

    def denoise(self, request: SegmentRequested) -> Iterator[Latents]:
        """The segment's latents in order, in chunks. A chunk of 0 frames is a heartbeat only.

        Raises: EngineError.
        """
        ...

    def decode(self, request: SegmentRequested, latents: Latents) -> Frames:
        """The frames of one chunk, in the order and size in which `denoise` made them. `request.frames` in all, if nothing is wrong.

        Raises: EngineError.
        """
        ...


@runtime_checkable
class Noting(Protocol):
    """A state that has more to say of its segment."""

    @property
    def notes(self) -> dict[str, str]:
        """For `SegmentGenerated.notes`, when the segment is done."""
        ...


class Engine(Protocol):
    """Makes states. One per process; it owns the device."""

    @property
    def name(self) -> str:
        """As in `SegmentRequested.engine`."""
        ...

    @property
    def version(self) -> str:
        """Changes whenever the same request would give other bits."""
        ...

    def restore(self, request: SegmentRequested, latents: Sequence[Latents]) -> EngineState:
        """The state in which `request` starts. `latents` are those of `request.latent_ref`: whole segments, in order.

        Raises: EngineError (`STATE_MISSING` if they do not fit the request; NoRoomError until states are given up).
        """
        ...

    def close(self) -> None:
        """Give the device back. No state of this engine is used afterwards."""
        ...


GROUP = "longtake.engines"
"""Entry points of other packages: the name is the engine's, the value `package.module:Class`, made without arguments."""
_BUILT_IN: Mapping[str, str] = {
    "animatic": "gpu_consumers.engines.animatic.engine:AnimaticEngine",
    "causal_dit": "gpu_consumers.engines.causal_dit.engine:CausalDitEngine",
    "diffusers": "gpu_consumers.engines.diffusers:DiffusersEngine",
    "veo": "gpu_consumers.engines.veo:VeoEngine",
}
_EXTRAS: Mapping[str, str] = {"causal_dit": "gpu", "diffusers": "gpu", "veo": "veo"}


def create(name: str) -> Engine:
    """A new engine; its libraries are imported now and not before.

    Raises: EngineError if there is none of that name, or if what it needs is not installed.
    """
    engines = {**{point.name: point.value for point in entry_points(group=GROUP)}, **_BUILT_IN}
    if name not in engines:
        raise EngineError(FailureKind.ENGINE, f"no engine {name!r}; there are {sorted(engines)}", retryable=False)
    module, _, attribute = engines[name].partition(":")
    try:
        made = getattr(import_module(module), attribute)()
    except ModuleNotFoundError as error:
        remedy = f": pip install 'longtake[{_EXTRAS[name]}]'" if name in _EXTRAS else ""
        reason = f"the {name} engine needs {error.name}{remedy}"
        raise EngineError(FailureKind.ENGINE, reason, retryable=False) from error
    return cast(Engine, made)
