"""The native engine behind the protocol of `gpu_consumers/engines/engine.py`."""

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from gpu_consumers.engines.causal_dit.attention import kernels
from gpu_consumers.engines.causal_dit.card import Card, Place, card_of
from gpu_consumers.engines.causal_dit.checkpoint import CheckpointError
from gpu_consumers.engines.causal_dit.extras import Additions, asked_config, confined, control_video
from gpu_consumers.engines.causal_dit.grid import blocks_for, frames_of
from gpu_consumers.engines.causal_dit.ledger import predict
from gpu_consumers.engines.causal_dit.memory import device_cache
from gpu_consumers.engines.causal_dit.models import MODELS, Model, ModelConfig, build
from gpu_consumers.engines.causal_dit.sampler import Context
from gpu_consumers.engines.causal_dit.take import Take
from gpu_consumers.engines.causal_dit.text import Embedded, EmbeddingCache
from gpu_consumers.engines.causal_dit.transformer import Transformer
from gpu_consumers.engines.causal_options import CausalOptions, causal_options
from gpu_consumers.engines.causal_running import Compile
from gpu_consumers.engines.engine import EngineError, Frames, Latents
from gpu_consumers.engines.shots import described
from schemas.errors import BadInputError
from schemas.records import FailureKind, PlannedShot, SegmentRequested

_VERSION = "2"
_VAE = 8
_SIDE = 16
"""Latent pixels are 8 wide, patches two of them."""
_EMBEDDINGS = 64

_predicted = cache(predict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A model, what it made of prompts, what jobs add to it, and its transformer as they want it compiled."""

    model: Model
    embeddings: EmbeddingCache
    additions: Additions
    compiled: dict[Compile, Transformer] = field(default_factory=dict)


class CausalDitEngine:
    """One per process. A model is loaded when a job asks for it, and stays until another is loaded and no take is of it."""

    def __init__(self) -> None:
        self._folder = Path(os.environ.get("LONGTAKE_MODELS", "models"))
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self._side = torch.cuda.Stream() if self._device.type == "cuda" else None
        self._card: Card | None = None
        self._models: dict[str, Loaded] = {}

    @property
    def name(self) -> str:
        """As in requests."""
        return "causal_dit"

    @property
    def version(self) -> str:
        """Of the arithmetic, and what it runs on."""
        return f"{_VERSION}-{self._device.type}-torch{torch.__version__.split('+')[0]}-{kernels(self._device)}"

    @property
    def card(self) -> Card:
        """What takes share. Raises: EngineError."""
        if self._card is None:
            self._card = card_of(self._device)
        return self._card

    def restore(self, request: SegmentRequested, latents: Sequence[Latents]) -> "CausalDitState":
        """`latents` [T, 16, h, w] float16: those since the take's start, whole segments in order."""
        options = _options(request)
        if request.format.width % _SIDE or request.format.height % _SIDE:
            raise EngineError(FailureKind.ENGINE, f"width and height must be multiples of {_SIDE}", retryable=False)
        try:
            asked = asked_config(options, self._folder)
            place = self._admitted(asked, request)
            loaded = self._loaded(options.config)
            fitted = loaded.additions.applied(options.extras)
        except CheckpointError as error:
            raise EngineError(FailureKind.ENGINE, str(error), retryable=False) from error
        transformer = _transformer(loaded, fitted.transformer, options.running.compile)
        model = replace(fitted, config=asked, transformer=transformer)
        state = CausalDitState(model, Prompts(model, loaded.embeddings, options, request), request, place, self._side)
        if options.extras.control:
            start = request.start_frame - frames_of(sum(map(len, latents)))
            state.take.steer(control_video(model, confined(self._folder, options.extras.control), request, start))
        state.replay(request, [torch.from_numpy(np.asarray(part)) for part in latents])
        return state

    def close(self) -> None:
        """Drop the models."""
        self._models = {}
        if self._device.type == "cuda":
            torch.cuda.empty_cache()

    def _admitted(self, config: ModelConfig, request: SegmentRequested) -> Place | None:
        """Room for a take by the ledger's numbers. None: nobody counts. Raises: NoRoomError."""
        if self.card.budget_bytes is None:
            return None
        dtype = torch.bfloat16 if self._device.type == "cuda" else torch.float32
        ledger = _predicted(config, request.format.width, request.format.height, dtype)
        return self.card.admit(config.name, ledger)

    def _loaded(self, name: str) -> Loaded:
        if name not in self._models:
            self._models = {held: model for held, model in self._models.items() if held in self.card.models}
            model = build(MODELS[name], self._folder, self._device)
            embeddings = EmbeddingCache(model.text, capacity=_EMBEDDINGS, clock=time.monotonic)
            additions = Additions(model, self._folder)
            self._models[name] = Loaded(model=model, embeddings=embeddings, additions=additions)
        return self._models[name]


class Prompts:
    """What a job's shots become: cross-attention's keys and values. `borrowed`: shots that follow the embedding of another text."""

    def __init__(self, model: Model, cache: EmbeddingCache, options: CausalOptions, request: SegmentRequested) -> None:
        self._model, self._cache = model, cache
        self._similarity = options.running.similarity
        self._weight = options.extras.control_weight
        self._negative = ", ".join(request.negative)
        self.borrowed: dict[int, str] = {}

    def context(self, shot: PlannedShot) -> Context:
        """Of a shot's prompt, and of the negative one where the schedule is guided."""
        positive = self._embedded(described(shot.instruction))
        if positive.prompt != described(shot.instruction):
            self.borrowed[shot.shot] = positive.prompt
        tensors = [positive.tensor]
        if self._model.config.schedule.guidance > 1:
            tensors.append(self._cache.get(self._negative).tensor)
        with torch.no_grad():
            embedded = torch.stack(tensors).to(self._model.device, self._model.dtype)
            if not bool(embedded.isfinite().all()):
                reason = "the text encoder's embedding is not finite: look at its weights"
                raise EngineError(FailureKind.ENGINE, reason, retryable=False)
            return replace(self._model.transformer.context(embedded), control_weight=self._weight)

    def _embedded(self, text: str) -> Embedded:
        return self._cache.get(text) if self._similarity is None else self._cache.get_near(text, self._similarity)


class CausalDitState:
    """One job's take. A segment is a whole number of blocks, but for the take's last: its surplus frames are dropped."""

    def __init__(
        self,
        model: Model,
        prompts: Prompts,
        request: SegmentRequested,
        place: Place | None,
        side: "torch.cuda.Stream | None",
    ) -> None:
        size = (request.format.height // _VAE, request.format.width // _VAE)
        grid = (size[0] // 2, size[1] // 2)
        batch = 2 if model.config.schedule.guidance > 1 else 1
        like = torch.zeros(batch, dtype=model.dtype, device=model.device)
        cache = device_cache(model.config.dit, model.config.window, grid, like, kept=model.config.kept)
        self._model, self._prompts, self._place = model, prompts, place
        self.take = Take(model, cache, size, request.seed, side)
        self._shot: PlannedShot | None = None
        self._start = request.start_frame
        self._decoded = 0

    @property
    def notes(self) -> dict[str, str]:
        """For the segment's event: whose embedding a shot follows, where it is not its own."""
        return {f"embedding of shot {shot}": text for shot, text in self._prompts.borrowed.items()}

    def replay(self, request: SegmentRequested, parts: Sequence[Tensor]) -> None:
        """Bring the take to where the request starts. Raises: EngineError (`STATE_MISSING`) if the latents do not fit."""
        size = (request.format.height // _VAE, request.format.width // _VAE)
        if any(part.shape[1:] != (self._model.config.vae.channels, *size) for part in parts):
            raise EngineError(FailureKind.STATE_MISSING, f"latents that are not {size[0]}x{size[1]}")
        latents = torch.cat(list(parts)).transpose(0, 1)[None] if parts else torch.empty(1, 0, 0)
        block = self._model.config.window.block
        count = latents.shape[2] if parts else 0
        if count % block or frames_of(count) > request.start_frame:
            raise EngineError(FailureKind.STATE_MISSING, f"{count} latents do not lead to frame {request.start_frame}")
        self._start = request.start_frame - frames_of(count)
        for index in range(count // block):
            part = latents[:, :, index * block : (index + 1) * block].clone()
            if self._start + self.take.frames < request.shots[0].start_frame:
                self.take.remember(part)
                continue
            self._follow(request)
            self.take.replay(part)
        self.take.warm_decoder()

    def denoise(self, request: SegmentRequested) -> Iterator[Latents]:
        """Latents [1, 16, h, w] float16, block by block, and an empty one after every pass. Raises: EngineError."""
        self._decoded = 0
        first, window = self.take.blocks, self._model.config.window
        if self._start + self.take.frames != request.start_frame:
            raise EngineError(FailureKind.STATE_MISSING, f"the take is at frame {self._start + self.take.frames}")
        end = request.start_frame + request.frames - self._start
        for _ in range(blocks_for(end, window) - first):
            self._follow(request)
            shot = self._shot.shot if self._shot else 0
            for x in self.take.next_block(shot, request.variation):
                if not bool(x.isfinite().all()):
                    raise EngineError(FailureKind.NAN, f"latents of block {self.take.blocks} are not finite")
                yield np.empty((0, *x.shape[1:2], *x.shape[3:]), np.float16)
            yield from self.take.last[0].transpose(0, 1).numpy()[:, None]

    def decode(self, request: SegmentRequested, latents: Latents) -> Frames:
        """The frames of a latent, without what lies behind the segment's end. Raises: EngineError."""
        block = torch.from_numpy(np.asarray(latents)).transpose(0, 1)[None]
        frames = self.take.decode(block)[: request.frames - self._decoded].numpy()
        self._decoded += len(frames)
        return frames

    def _follow(self, request: SegmentRequested) -> None:
        """Change the prompt where the next block begins a new shot."""
        frame = max(self._start + self.take.frames, request.shots[0].start_frame)
        shot = [s for s in request.shots if s.start_frame <= frame][-1]
        if self._shot is None or self._shot.shot != shot.shot:
            self._shot = shot
            self.take.prompt(self._prompts.context(shot))


def _options(request: SegmentRequested) -> CausalOptions:
    try:
        return causal_options(request.engine_options)
    except BadInputError as error:
        raise EngineError(FailureKind.ENGINE, str(error), retryable=False) from error


def _transformer(loaded: Loaded, fitted: Transformer, how: Compile) -> Transformer:
    """`fitted`: with what the job adds; only the model's own is kept compiled."""
    if how is Compile.OFF:
        return fitted
    from gpu_consumers.engines.causal_dit.compiling import compiled  # torch's compiler takes seconds to import

    if fitted is not loaded.model.transformer:
        return compiled(fitted, how)
    if how not in loaded.compiled:
        loaded.compiled[how] = compiled(fitted, how)
    return loaded.compiled[how]
