"""What is done to a request in the engine process, stage by stage. Each stage runs in a thread of its own (`child.py`)."""

import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError

from gpu_consumers import checks
from gpu_consumers.busy import BusyMeter
from gpu_consumers.collapse import Shown, restored, watched
from gpu_consumers.engines.engine import Engine, EngineError, EngineState, Frames, Latents, Noting, create
from gpu_consumers.failed import failed
from gpu_consumers.held import Held, HeldStates
from gpu_consumers.pipe import Stage
from gpu_consumers.room import restored as restored_with_room
from gpu_consumers.warm import warmed
from infra.bus.requests import recall, remember
from infra.objects import BlobError, Objects, job_key
from schemas.engines import sink_of
from schemas.records import Blob, FailureKind, SegmentFailed, SegmentGenerated, SegmentRequested

Beat = Callable[[Stage], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """The latents to restore a segment's start from. `references` None: its state is held, if it is not given up meanwhile."""

    references: tuple[Latents, ...] | None
    shown: Shown | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Denoised:
    """All latents of the segment, in the chunks in which they were made."""

    state: EngineState
    engine_version: str
    restored: bool
    shown: Shown | None
    """By the take before this segment."""
    chunks: tuple[Latents, ...]
    chunk_us: tuple[int, ...]
    """When each chunk was ready, since the epoch."""
    started_us: int
    denoise_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """The latents are in the store: from here on the segment can be lost and found again."""

    denoised: Denoised
    latents: Blob
    shown: Shown | None
    store_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """All frames of the segment. `generated_us` and `decoded_us` are [T] int64, since the epoch."""

    saved: Saved
    frames: Frames
    generated_us: NDArray[np.int64]
    decoded_us: NDArray[np.int64]
    decode_us: int


@dataclass(slots=True, kw_only=True)
class Stages:
    """The stages and what they share. `worker` is the slot's stable name."""

    objects: Objects
    worker: str
    held: HeldStates
    meter: BusyMeter
    on_engine: Callable[[Engine], None]
    _engines: dict[str, Engine] = field(init=False, default_factory=dict)

    def warm(self, request: SegmentRequested) -> str:
        """Make an engine ready for requests like this one; what that took, in words."""
        return warmed(self._engine(request.engine), request)

    def fetch(self, request: SegmentRequested, _: None, __: Beat) -> Fetched | SegmentGenerated:
        """Find the answer of an earlier try, the held state, or the latents before.

        Raises: EngineError (STATE_MISSING) if a reference is not there or not what it is said to be.
        """
        done = recall(self.objects, request)
        if isinstance(done, SegmentGenerated):
            return done
        return Fetched(references=None, shown=None) if self.held.holds(request) else self._from_store(request)

    def denoise(self, request: SegmentRequested, fetched: Fetched, beat: Beat) -> Denoised:
        """All latents of the segment, from the held state or a restored one. Raises: EngineError."""
        started_us = _now_us()
        engine = self._engine(request.engine)
        held = self.held.take(request)
        start = held or self._restored(engine, request, fetched, partial(beat, Stage.RESTORE))
        state = start.state
        beat(Stage.DENOISE)
        chunks: list[Latents] = []
        chunk_us: list[int] = []
        begun_ns = time.monotonic_ns()
        for chunk in self._steps(state.denoise(request)):
            beat(Stage.DENOISE)
            if len(chunk):
                checks.check_latents(chunk)
                chunks.append(chunk)
                chunk_us.append(_now_us())
        if not chunks:
            raise EngineError(FailureKind.WRONG_FRAME_COUNT, "the engine made no latents")
        return Denoised(
            state=state,
            engine_version=engine.version,
            restored=held is None and bool(request.latent_ref),
            shown=start.shown,
            chunks=tuple(chunks),
            chunk_us=tuple(chunk_us),
            started_us=started_us,
            denoise_us=_since_us(begun_ns),
        )

    def save(self, request: SegmentRequested, denoised: Denoised, _: Beat) -> Saved:
        """Store the latents, before the decoder can fail. Raises: EngineError if the picture has collapsed."""
        begun_ns = time.monotonic_ns()
        latents = np.concatenate(denoised.chunks)
        shown = watched(request, denoised.shown, latents, sink_of(request.engine))
        blob = self.objects.put_tensors(_key(request, "latents"), {"latents": latents}, "latents")
        return Saved(denoised=denoised, latents=blob, shown=shown, store_us=_since_us(begun_ns))

    def decode(self, request: SegmentRequested, saved: Saved, beat: Beat) -> Decoded:
        """All frames of the segment. `beat` is called after each chunk. Raises: EngineError."""
        denoised = saved.denoised
        size = (request.frames, request.format.height, request.format.width, 3)
        frames: Frames = np.empty(size, np.uint8)
        generated_us, decoded_us = np.zeros(request.frames, np.int64), np.zeros(request.frames, np.int64)
        made, begun_ns = 0, time.monotonic_ns()
        for chunk, at_us in zip(denoised.chunks, denoised.chunk_us, strict=True):
            with self.meter.working():
                part = denoised.state.decode(request, chunk)
            beat(Stage.DECODE)
            checks.check_chunk(part, request)
            end = made + len(part)
            if end <= request.frames:
                frames[made:end] = part
                generated_us[made:end], decoded_us[made:end] = at_us, _now_us()
            made = end
        decode_us = _since_us(begun_ns)
        checks.check_count(made, request)
        return Decoded(
            saved=saved,
            frames=frames,
            generated_us=generated_us,
            decoded_us=decoded_us,
            decode_us=decode_us,
        )

    def store(self, request: SegmentRequested, decoded: Decoded, _: Beat) -> SegmentGenerated:
        """Store the frames, then the manifest, and keep the state for the job's next segment.

        Raises: EngineError if the frames do not pass the checks.
        """
        begun_ns = time.monotonic_ns()
        saved, denoised = decoded.saved, decoded.saved.denoised
        checks.check_pictures(decoded.frames, request)
        tensors = {"frames": decoded.frames, "generated_us": decoded.generated_us, "decoded_us": decoded.decoded_us}
        frames = self.objects.put_tensors(_key(request, "frames"), tensors, "frames")
        event = SegmentGenerated(
            job_id=request.job_id,
            segment=request.segment,
            attempt=request.attempt,
            request_hash=request.request_hash,
            start_frame=request.start_frame,
            engine=request.engine,
            engine_version=denoised.engine_version,
            latents=saved.latents,
            frames=frames,
            restored=denoised.restored,
            started_us=denoised.started_us,
            finished_us=_now_us(),
            denoise_us=denoised.denoise_us,
            decode_us=decoded.decode_us,
            store_us=saved.store_us + _since_us(begun_ns),
            worker=self.worker,
            notes=dict(denoised.state.notes) if isinstance(denoised.state, Noting) else {},
        )
        remember(self.objects, request, event)
        before = tuple(blob.digest for blob in request.latent_ref)
        digests = (*before, saved.latents.digest)
        self.held.put(request.job_id, Held(state=denoised.state, digests=digests, shown=saved.shown))
        return event

    def failed(self, request: SegmentRequested, error: EngineError) -> SegmentFailed:
        """The event that says why the segment did not come out."""
        engine = self._engines.get(request.engine)
        return failed(request, error, engine_version=engine.version if engine else "", worker=self.worker)

    def _restored(
        self, engine: Engine, request: SegmentRequested, fetched: Fetched, beat: Callable[[], object]
    ) -> Held:
        """The start of a segment whose state is not here, or was given up after it had been seen."""
        found = self._from_store(request) if fetched.references is None else fetched
        state = restored_with_room(engine, request, found.references or (), self.held, beat)
        return Held(state=state, digests=tuple(blob.digest for blob in request.latent_ref), shown=found.shown)

    def _from_store(self, request: SegmentRequested) -> Fetched:
        references = tuple(map(self._reference, request.latent_ref))
        return Fetched(references=references, shown=restored(references, sink_of(request.engine)))

    def _reference(self, blob: Blob) -> Latents:
        try:
            latents = self.objects.get_tensors(blob)["latents"]
        except (BlobError, SafetensorError, KeyError) as error:
            raise _state_missing(blob, str(error)) from error
        found, said = (latents.shape, str(latents.dtype)), (blob.shape, blob.dtype)
        if found != said:
            raise _state_missing(blob, f"{blob.uri}: {found}, not {said}")
        return latents

    def _engine(self, name: str) -> Engine:
        if name not in self._engines:
            self._engines[name] = create(name)
            self.on_engine(self._engines[name])
        return self._engines[name]

    def _steps(self, steps: Iterator[Latents]) -> Iterator[Latents]:
        """The same chunks; the meter knows when the engine works on them."""
        while True:
            with self.meter.working():
                chunk = next(steps, None)
            if chunk is None:
                return
            yield chunk


def _state_missing(blob: Blob, reason: str) -> EngineError:
    return EngineError(FailureKind.STATE_MISSING, f"latents of an earlier segment: {reason}", lost=(blob,))


def _key(request: SegmentRequested, what: str) -> str:
    """Of one try: a request may be tried twice at once, and the loser's blob must not be the winner's."""
    return job_key(
        request.job_id, "segments", f"{request.segment}-{request.attempt}-{uuid.uuid4().hex[:8]}-{what}.safetensors"
    )


def _now_us() -> int:
    return time.time_ns() // 1000


def _since_us(begun_ns: int) -> int:
    return (time.monotonic_ns() - begun_ns) // 1000
