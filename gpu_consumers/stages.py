"""What is done to a request in the engine process, stage by stage. Each stage runs in a thread of its own (`child.py`)."""

import logging
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError

from gpu_consumers import checks
from gpu_consumers.busy import BusyMeter
from gpu_consumers.engines.engine import Engine, EngineError, EngineState, Frames, Latents, create
from gpu_consumers.failed import failed
from gpu_consumers.held import Held, HeldStates
from gpu_consumers.pipe import Stage
from infra.bus.requests import recall, remember
from infra.objects import BlobError, Objects, job_key
from schemas.errors import BadInputError
from schemas.records import Blob, FailureKind, SegmentFailed, SegmentGenerated, SegmentRequested

Beat = Callable[[Stage], None]
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """What a segment starts from: a held state, or the latents to restore it from."""

    held: Held | None
    references: tuple[Latents, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Denoised:
    """All latents of the segment, in the chunks in which they were made."""

    state: EngineState
    engine_version: str
    restored: bool
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

    def fetch(self, request: SegmentRequested, _: None, __: Beat) -> Fetched | SegmentGenerated:
        """Find the answer of an earlier try, the held state, or the latents before.

        Raises: EngineError (STATE_MISSING) if a reference is not there or not what it is said to be.
        """
        done = self._announced_before(request)
        if done:
            return done
        held = self.held.take(request)
        if held:
            return Fetched(held=held, references=())
        try:
            references = tuple(self.objects.get_tensors(blob)["latents"] for blob in request.latent_ref)
        except (BlobError, SafetensorError, KeyError) as error:
            raise EngineError(FailureKind.STATE_MISSING, f"latents of an earlier segment: {error}") from error
        return Fetched(held=None, references=references)

    def denoise(self, request: SegmentRequested, fetched: Fetched, beat: Beat) -> Denoised:
        """All latents of the segment, from the held state or a restored one. Raises: EngineError."""
        started_us = _now_us()
        engine = self._engine(request.engine)
        state = fetched.held.state if fetched.held else engine.restore(request, fetched.references)
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
            restored=fetched.held is None and bool(request.latent_ref),
            chunks=tuple(chunks),
            chunk_us=tuple(chunk_us),
            started_us=started_us,
            denoise_us=_since_us(begun_ns),
        )

    def save(self, request: SegmentRequested, denoised: Denoised, _: Beat) -> Saved:
        """Store the latents, before the decoder can fail."""
        begun_ns = time.monotonic_ns()
        latents = np.concatenate(denoised.chunks)
        blob = self.objects.put_tensors(_key(request, "latents"), {"latents": latents}, "latents")
        return Saved(denoised=denoised, latents=blob, store_us=_since_us(begun_ns))

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
        )
        remember(self.objects, request, event)
        before = tuple(blob.digest for blob in request.latent_ref)
        self.held.put(request.job_id, Held(state=denoised.state, digests=(*before, saved.latents.digest)))
        return event

    def failed(self, request: SegmentRequested, error: EngineError) -> SegmentFailed:
        """The event that says why the segment did not come out."""
        engine = self._engines.get(request.engine)
        return failed(request, error, engine_version=engine.version if engine else "", worker=self.worker)

    def _announced_before(self, request: SegmentRequested) -> SegmentGenerated | None:
        try:
            event = recall(self.objects, request)
        except BadInputError as error:  # written by a newer version of this program
            log.warning("%s %s: the manifest is made again: %s", request.job_id, request.segment, error)
            event = None
        return event if isinstance(event, SegmentGenerated) else None

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


def _key(request: SegmentRequested, what: str) -> str:
    """Of one try: a request may be tried twice at once, and the loser's blob must not be the winner's."""
    return job_key(
        request.job_id, "segments", f"{request.segment}-{request.attempt}-{uuid.uuid4().hex[:8]}-{what}.safetensors"
    )


def _now_us() -> int:
    return time.time_ns() // 1000


def _since_us(begun_ns: int) -> int:
    return (time.monotonic_ns() - begun_ns) // 1000
