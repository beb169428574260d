"""Any text- or image-to-video pipeline of diffusers, from a local folder. Nothing is ever downloaded.

A pipeline makes one clip and forgets it. What is carried from segment to segment is the last picture: a pipeline that takes an
image goes on from it, so that its first frame, which repeats that picture, is left out. One that takes none makes takes of a
single segment only.

Latents differ from pipeline to pipeline, and so do their decoders; what this engine calls latents are the pipeline's
pictures [T, 3, H, W] uint8, exactly as the next segment needs them.
"""

import inspect
import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeAlias

import diffusers
import numpy as np
import torch
import transformers
import xxhash
from diffusers.pipelines.pipeline_utils import DiffusionPipeline
from numpy.typing import NDArray
from PIL import Image

from gpu_consumers.engines.clip_options import DiffusersOptions, diffusers_options
from gpu_consumers.engines.engine import EngineError, Frames, Latents
from gpu_consumers.engines.shots import begins_take, text_of
from schemas.errors import BadInputError
from schemas.records import FailureKind, SegmentRequested

Picture: TypeAlias = NDArray[np.uint8]
_VERSION = "1"


class DiffusersEngine:
    """One per process. Pipelines are loaded when they are first asked for, and stay."""

    def __init__(self) -> None:
        self._models = Path(os.environ.get("LONGTAKE_MODELS", "models")).resolve()
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        self._pipelines: dict[str, Any] = {}
        for library in (diffusers, transformers):
            library.utils.logging.disable_progress_bar()

    @property
    def name(self) -> str:
        """As in requests."""
        return "diffusers"

    @property
    def version(self) -> str:
        """Of the arithmetic, and what it runs on; which pipeline is in the job's options."""
        return f"{_VERSION}-{diffusers.__version__}-{self._device}-torch{torch.__version__.split('+')[0]}"

    def restore(self, request: SegmentRequested, latents: Sequence[Latents]) -> "DiffusersState":
        """`latents`: those of the segment before, if there is one."""
        if not latents and not begins_take(request):
            raise EngineError(FailureKind.STATE_MISSING, f"no latents before segment {request.segment}")
        last = np.asarray(latents[-1][-1]) if latents else None
        if last is not None and (last.dtype != np.uint8 or last.ndim != 3):
            raise EngineError(FailureKind.STATE_MISSING, f"latents are {last.dtype}, not pictures")
        return DiffusersState(self, last)

    def close(self) -> None:
        """Drop the pipelines."""
        self._pipelines.clear()
        if self._device == "cuda":
            torch.cuda.empty_cache()

    def pipeline(self, folder: str) -> Any:
        """The pipeline, on the device. Raises: EngineError if it is not there or none."""
        if folder not in self._pipelines:
            path = self.path(folder)
            if not (path / "model_index.json").is_file():
                raise _refused(f"no diffusers pipeline in {path}: it has no model_index.json")
            dtype = torch.bfloat16 if self._device == "cuda" else torch.float32
            try:
                # Tensors only, and no code of the folder's own: pickles and custom pipelines are refused.
                loaded = DiffusionPipeline.from_pretrained(
                    path, torch_dtype=dtype, local_files_only=True, use_safetensors=True
                )
            except (OSError, ValueError) as error:
                raise _refused(f"{path} cannot be loaded: {error}") from error
            loaded.set_progress_bar_config(disable=True)
            self._pipelines[folder] = loaded.to(self._device)
        return self._pipelines[folder]

    def path(self, relative: str) -> Path:
        """Inside the folder of models. Raises: EngineError if a link leads out of it."""
        path = (self._models / relative).resolve()
        if not path.is_relative_to(self._models):
            raise _refused(f"{relative} is not in {self._models}")
        return path


class DiffusersState:
    """One job: the picture that its take has come to."""

    def __init__(self, engine: DiffusersEngine, last: Picture | None) -> None:
        """`last`: [3, H, W]."""
        self._engine, self._last = engine, last

    def denoise(self, request: SegmentRequested) -> Iterator[Latents]:
        """All pictures of the segment at once, and an empty chunk after every step before. Raises: EngineError."""
        options = _options(request)
        begins = begins_take(request)
        folder = options.opening if begins and options.opening else options.model
        pipeline = self._engine.pipeline(folder)
        given = self._given(request, options, folder, pipeline)
        repeated = 0 if begins else 1
        arguments = _arguments(pipeline, request, options, request.frames + repeated)
        if given is not None:
            arguments["image"] = given
        pictures = yield from _called(pipeline, arguments, (3, request.format.height, request.format.width))
        pictures = pictures[repeated : repeated + request.frames]
        self._last = pictures[-1] if len(pictures) else None
        yield pictures

    def decode(self, request: SegmentRequested, latents: Latents) -> Frames:  # noqa: ARG002 (the protocol's)
        """The same pictures, [T, H, W, 3]."""
        return np.ascontiguousarray(np.asarray(latents, np.uint8).transpose(0, 2, 3, 1))

    def _given(
        self, request: SegmentRequested, options: DiffusersOptions, folder: str, pipeline: Any
    ) -> Image.Image | None:
        """The picture that the pipeline is to begin with. Raises: EngineError if it needs one and has none, or the other way round."""
        takes_one = "image" in _parameters(pipeline)
        size = (request.format.width, request.format.height)
        if not begins_take(request):
            if not takes_one:
                raise _refused(
                    f"{folder} ({type(pipeline).__name__}) takes no picture, so it cannot go on with a take: "
                    "give an image-to-video pipeline as model (and this one as opening), or shorter shots"
                )
            assert self._last is not None  # noqa: S101 (restore has seen to it)
            return Image.fromarray(np.ascontiguousarray(self._last.transpose(1, 2, 0)))
        if not takes_one:
            return None
        if not options.image or request.segment:
            raise _refused(f"{folder} begins with a picture: give opening=FOLDER, or image=FILE for the first take")
        try:
            with Image.open(self._engine.path(options.image)) as image:
                return image.convert("RGB").resize(size, Image.Resampling.LANCZOS)
        except OSError as error:
            raise _refused(f"image {options.image} cannot be read: {error}") from error


def _arguments(pipeline: Any, request: SegmentRequested, options: DiffusersOptions, frames: int) -> dict[str, Any]:
    """What the pipeline is called with: of all that can be said, what it has parameters for."""
    key = f"{request.seed}/{request.segment}/{request.variation}".encode()
    said = {
        "prompt": text_of(request),
        "negative_prompt": ", ".join(request.negative) or None,
        "width": request.format.width,
        "height": request.format.height,
        "num_frames": _length(pipeline, frames),
        "frame_rate": round(request.format.fps_num / request.format.fps_den),
        "num_inference_steps": options.steps,
        "guidance_scale": options.guidance,
        "generator": torch.Generator().manual_seed(xxhash.xxh3_64_intdigest(key) >> 1),
        "output_type": "np",
    }
    known = _parameters(pipeline)
    return {name: value for name, value in said.items() if name in known and value is not None}


def _length(pipeline: Any, frames: int) -> int:
    """The least number of frames, not below `frames`, that the pipeline's decoder makes: 1 + a multiple of its stride in time."""
    names = ("vae_scale_factor_temporal", "vae_temporal_compression_ratio")
    stride = next((int(getattr(pipeline, name)) for name in names if hasattr(pipeline, name)), 1)
    return 1 + -(-(frames - 1) // stride) * stride


def _called(pipeline: Any, arguments: dict[str, Any], size: tuple[int, int, int]) -> Generator[Latents, None, Picture]:
    """Call the pipeline in a thread; yields an empty chunk after every step, returns the pictures [T, 3, H, W]."""
    news: SimpleQueue[Future[Any] | None] = SimpleQueue()

    def step(_pipeline: Any, _step: int, _time: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
        news.put(None)
        return kwargs

    if "callback_on_step_end" in _parameters(pipeline):
        arguments = {**arguments, "callback_on_step_end": step}
    with ThreadPoolExecutor(1, thread_name_prefix="pipeline") as pool:
        pool.submit(pipeline, **arguments).add_done_callback(news.put)
        while (done := news.get()) is None:
            yield np.empty((0, *size), np.uint8)
    try:
        made = np.asarray(done.result().frames[0])
    except (ValueError, TypeError) as error:
        raise _refused(f"{type(pipeline).__name__} refuses: {error}") from error
    if not np.isfinite(made).all():
        raise EngineError(FailureKind.NAN, "the pipeline's pictures are not finite")
    return (made.clip(0, 1) * 255).round().astype(np.uint8).transpose(0, 3, 1, 2)


def _parameters(pipeline: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(type(pipeline).__call__).parameters


def _options(request: SegmentRequested) -> DiffusersOptions:
    try:
        return diffusers_options(request.engine_options)
    except BadInputError as error:
        raise _refused(str(error)) from error


def _refused(reason: str) -> EngineError:
    return EngineError(FailureKind.ENGINE, reason, retryable=False)
