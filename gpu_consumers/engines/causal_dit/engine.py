"""The native engine behind the protocol of `gpu_consumers/engines/engine.py`."""

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from gpu_consumers.engines.causal_dit.checkpoint import CheckpointError
from gpu_consumers.engines.causal_dit.grid import blocks_for, frames_of
from gpu_consumers.engines.causal_dit.memory import device_cache
from gpu_consumers.engines.causal_dit.models import MODELS, Model, build
from gpu_consumers.engines.causal_dit.sampler import Context
from gpu_consumers.engines.causal_dit.take import Take
from gpu_consumers.engines.causal_dit.text import EmbeddingCache
from gpu_consumers.engines.engine import EngineError, Frames, Latents
from gpu_consumers.engines.shots import described
from schemas.records import FailureKind, PlannedShot, SegmentRequested

_VERSION = "1"
_VAE = 8
_SIDE = 16
"""Latent pixels are 8 wide, patches two of them."""
_EMBEDDINGS = 64


class CausalDitEngine:
    """One per process. The model is loaded at the first request and stays; another `config` replaces it."""

    def __init__(self) -> None:
        self._models = Path(os.environ.get("LONGTAKE_MODELS", "models"))
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self._model: Model | None = None
        self._embeddings: EmbeddingCache | None = None

    @property
    def name(self) -> str:
        """As in requests."""
        return "causal_dit"

    @property
    def version(self) -> str:
        """Of the arithmetic, and what it runs on."""
        return f"{_VERSION}-{self._device.type}-torch{torch.__version__.split('+')[0]}"

    def restore(self, request: SegmentRequested, latents: Sequence[Latents]) -> "CausalDitState":
        """`latents` [T, 16, h, w] float16: those since the take's start, whole segments in order."""
        model = self._loaded(request.engine_options.get("config", "self-forcing-1.3b"))
        state = CausalDitState(self, model, request)
        state.replay(request, [torch.from_numpy(np.asarray(part)) for part in latents])
        return state

    def close(self) -> None:
        """Drop the model."""
        self._model = self._embeddings = None
        if self._device.type == "cuda":
            torch.cuda.empty_cache()

    def context(self, model: Model, shot: PlannedShot, negative: tuple[str, ...]) -> Context:
        """Cross-attention's keys and values of a shot's prompt, and of the negative one where the schedule is guided."""
        assert self._embeddings is not None  # noqa: S101 (loaded with the model)
        texts = [described(shot.instruction)]
        if model.config.schedule.guidance > 1:
            texts.append(", ".join(negative))
        embedded = torch.stack([self._embeddings.get(text).tensor for text in texts])
        with torch.no_grad():
            return model.transformer.context(embedded.to(model.device, model.dtype))

    def _loaded(self, name: str) -> Model:
        if name not in MODELS:
            raise EngineError(FailureKind.ENGINE, f"no config {name!r}; there are {sorted(MODELS)}", retryable=False)
        if self._model is None or self._model.config.name != name:
            self.close()
            try:
                self._model = build(MODELS[name], self._models, self._device)
            except CheckpointError as error:
                raise EngineError(FailureKind.ENGINE, str(error), retryable=False) from error
            self._embeddings = EmbeddingCache(self._model.text, capacity=_EMBEDDINGS, clock=time.monotonic)
        return self._model


class CausalDitState:
    """One job's take. A segment is a whole number of blocks, but for the take's last: its surplus frames are dropped."""

    def __init__(self, engine: CausalDitEngine, model: Model, request: SegmentRequested) -> None:
        if request.format.width % _SIDE or request.format.height % _SIDE:
            raise EngineError(FailureKind.ENGINE, f"width and height must be multiples of {_SIDE}", retryable=False)
        size = (request.format.height // _VAE, request.format.width // _VAE)
        grid = (size[0] // 2, size[1] // 2)
        batch = 2 if model.config.schedule.guidance > 1 else 1
        like = torch.zeros(batch, dtype=model.dtype, device=model.device)
        self._engine, self._model = engine, model
        self._take = Take(model, device_cache(model.config.dit, model.config.window, grid, like), size, request.seed)
        self._shot: PlannedShot | None = None
        self._start = request.start_frame
        self._decoded = 0

    def replay(self, request: SegmentRequested, parts: Sequence[Tensor]) -> None:
        """Bring the take to where the request starts. Raises: EngineError (`STATE_MISSING`) if the latents do not fit."""
        latents = torch.cat(list(parts)).transpose(0, 1)[None] if parts else torch.empty(1, 0, 0)
        block = self._model.config.window.block
        count = latents.shape[2] if parts else 0
        if count % block or frames_of(count) > request.start_frame:
            raise EngineError(FailureKind.STATE_MISSING, f"{count} latents do not lead to frame {request.start_frame}")
        self._start = request.start_frame - frames_of(count)
        for index in range(count // block):
            part = latents[:, :, index * block : (index + 1) * block]
            if self._start + self._take.frames < request.shots[0].start_frame:
                self._take.remember(part)
                continue
            self._follow(request)
            self._take.replay(part)
        self._take.warm_decoder()

    def denoise(self, request: SegmentRequested) -> Iterator[Latents]:
        """Blocks of latents [3, 16, h, w] float16, and an empty one after every pass. Raises: EngineError."""
        self._decoded = 0
        first, window = len(self._take.blocks), self._model.config.window
        if self._start + self._take.frames != request.start_frame:
            raise EngineError(FailureKind.STATE_MISSING, f"the take is at frame {self._start + self._take.frames}")
        end = request.start_frame + request.frames - self._start
        for _ in range(blocks_for(end, window) - first):
            self._follow(request)
            shot = self._shot.shot if self._shot else 0
            for x in self._take.next_block(shot, request.variation):
                if not bool(x.isfinite().all()):
                    raise EngineError(FailureKind.NAN, f"latents of block {len(self._take.blocks)} are not finite")
                yield np.empty((0, *x.shape[1:2], *x.shape[3:]), np.float16)
            yield self._take.blocks[-1][0].transpose(0, 1).cpu().numpy()

    def decode(self, request: SegmentRequested, latents: Latents) -> Frames:
        """The frames of a block, without what lies behind the segment's end."""
        block = torch.from_numpy(np.asarray(latents)).transpose(0, 1)[None]
        frames = self._take.decode(block)[: request.frames - self._decoded].cpu().numpy()
        self._decoded += len(frames)
        return frames

    def _follow(self, request: SegmentRequested) -> None:
        """Change the prompt where the next block begins a new shot."""
        frame = max(self._start + self._take.frames, request.shots[0].start_frame)
        shot = [s for s in request.shots if s.start_frame <= frame][-1]
        if self._shot is None or self._shot.shot != shot.shot:
            self._shot = shot
            self._take.prompt(self._engine.context(self._model, shot, request.negative))
