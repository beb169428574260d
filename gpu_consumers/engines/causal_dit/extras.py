"""What jobs add to a loaded model: adapters, the control branch, the preview decoder. The model itself is never changed."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TypeVar
from weakref import WeakValueDictionary

import torch
from torch import Tensor, nn

from gpu_consumers.engines.causal_dit.checkpoint import CheckpointError, load, naming, read
from gpu_consumers.engines.causal_dit.control import ControlVideo
from gpu_consumers.engines.causal_dit.footage import FootageError, check_footage, footage
from gpu_consumers.engines.causal_dit.layouts import original_names
from gpu_consumers.engines.causal_dit.lora import Lora, finite_lora, read_lora, with_loras
from gpu_consumers.engines.causal_dit.models import MODELS, Model, ModelConfig
from gpu_consumers.engines.causal_dit.preview import PreviewDecoder, preview_weights
from gpu_consumers.engines.causal_dit.transformer import Transformer
from gpu_consumers.engines.causal_options import CausalOptions, Extras
from gpu_consumers.engines.engine import EngineError
from schemas.records import FailureKind, SegmentRequested

Net = TypeVar("Net", bound=nn.Module)


def asked_config(options: CausalOptions, folder: Path) -> ModelConfig:
    """The configuration as a job wants it. Raises: CheckpointError if there is none, or if a file is not there or no adapter."""
    if options.config not in MODELS:
        raise CheckpointError(f"no config {options.config!r}; there are {sorted(MODELS)}")
    config, extras, running = MODELS[options.config], options.extras, options.running
    if extras.control:
        confined(folder, extras.control)
    return replace(
        config,
        kept=running.kept,
        window=running.window or config.window,
        dit=replace(config.dit, control_layers=config.control_layers) if extras.control else config.dit,
        adapters=tuple(_ranks(read_lora(_adapter_path(folder, name))) for name, _ in extras.loras),
        previewed=extras.preview,
    )


class Additions:
    """For one loaded model. What several jobs ask for is on the device once; adapters go with the last job that has them."""

    def __init__(self, model: Model, folder: Path) -> None:
        self._model, self._folder = model, folder
        self._loras: WeakValueDictionary[str, Lora] = WeakValueDictionary()
        self._controlled: Transformer | None = None
        self._preview: PreviewDecoder | None = None

    def applied(self, extras: Extras) -> Model:
        """The model with what a job asks for. Raises: CheckpointError naming the tensors that do not fit, or the file that is not there."""
        model = self._model
        if extras.control:
            self._controlled = self._controlled or self._with_branch()
            model = replace(model, transformer=self._controlled)
        if extras.loras:
            loras = [(self._lora(name), weight) for name, weight in extras.loras]
            adapted = with_loras(model.transformer, loras)
            model = replace(model, transformer=adapted, loras=tuple(lora for lora, _ in loras))
        if extras.preview:
            self._preview = self._preview or self._preview_decoder()
            model = replace(model, preview=self._preview)
        return model

    def _lora(self, name: str) -> Lora:
        lora = self._loras.get(name)
        if lora is None:
            lora = finite_lora(_adapter_path(self._folder, name)).to(self._model.device, self._model.dtype)
            self._loras[name] = lora
        return lora

    def _with_branch(self) -> Transformer:
        """The model's own tensors, and those of the branch beside them."""
        base, config = self._model.transformer, self._model.config
        make = partial(Transformer, replace(config.dit, control_layers=config.control_layers))
        whole = self._made(make, config.control, 20_262)
        part = nn.Module()
        part.vace_patch_embedding, part.vace_blocks = whole.vace_patch_embedding, whole.vace_blocks
        if config.control:
            path = confined(self._folder, config.control)
            tensors = original_names(read(path))
            self._load(path, part, {name: t for name, t in tensors.items() if name.startswith("vace_")})
        part.to(self._model.device, self._model.dtype)
        whole.load_state_dict(base.state_dict(), assign=True, strict=False)
        return whole.eval().requires_grad_(False)

    def _preview_decoder(self) -> PreviewDecoder:
        config = self._model.config
        made = self._made(partial(PreviewDecoder, config.preview_sizes), config.preview, 20_263)
        if config.preview:
            path = confined(self._folder, config.preview)
            self._load(path, made, preview_weights(made, read(path)))
        return made.to(self._model.device, self._model.dtype).eval().requires_grad_(False)

    def _load(self, path: Path, module: nn.Module, tensors: Mapping[str, Tensor]) -> None:
        with naming(path):
            load(module, tensors, dtype=self._model.dtype, device=self._model.device)

    def _made(self, make: Callable[[], Net], file: str, seed: int) -> Net:
        """Without storage where a file brings the weights, else with random ones."""
        if file:
            with torch.device("meta"):
                return make()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            made = make()
            for parameter in made.parameters():
                if parameter.ndim > 1:
                    nn.init.normal_(parameter, std=parameter[0].numel() ** -0.5)
        return made


def control_video(model: Model, path: Path, request: SegmentRequested, start: int) -> ControlVideo:
    """The control of a take that begins at frame `start`. Raises: EngineError, now or later, if the video is of no use."""
    form = request.format
    size, rate = (form.height, form.width), Fraction(form.fps_num, form.fps_den)
    try:
        check_footage(path, size)
    except FootageError as error:
        raise EngineError(FailureKind.ENGINE, str(error), retryable=False) from error
    return ControlVideo(model.vae, _readable(footage(path, size, rate, start)), model.config.window)


def confined(folder: Path, relative: str) -> Path:
    """Raises: CheckpointError if there is no such file, or if a link leads out of the folder."""
    path = (folder / relative).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise CheckpointError(f"{relative} is not in {folder}")
    if not path.exists():
        raise CheckpointError(f"{folder / relative}: not there; docs/engines.md says where to get what")
    return path


def _readable(frames: Iterator[Tensor]) -> Iterator[Tensor]:
    try:
        yield from frames
    except FootageError as error:
        raise EngineError(FailureKind.ENGINE, str(error), retryable=False) from error


def _adapter_path(folder: Path, name: str) -> Path:
    path = confined(folder, name)
    if not path.is_dir() and path.suffix != ".safetensors":
        raise CheckpointError(f"{name}: an adapter is a .safetensors file or a folder in peft's layout")
    return path


def _ranks(lora: Lora) -> tuple[tuple[str, int], ...]:
    return tuple((name, down.shape[0]) for name, (down, _) in sorted(lora.pairs.items()))
