"""What a job can choose by `config=NAME`: sizes, window, schedule and where the weights are, and the model built from it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from gpu_consumers.engines.causal_dit.checkpoint import CheckpointError, load_file, read_ahead
from gpu_consumers.engines.causal_dit.config import AS_COMPUTED, TINY, WAN_1_3B, DitConfig, Kept, Window
from gpu_consumers.engines.causal_dit.decode import DecodeStream
from gpu_consumers.engines.causal_dit.lora import Lora, finite_lora, merge
from gpu_consumers.engines.causal_dit.preview import TAEHV, PreviewConfig, PreviewDecoder, PreviewStream
from gpu_consumers.engines.causal_dit.sampler import DISTILLED, Schedule, unipc
from gpu_consumers.engines.causal_dit.text import Umt5, load_umt5, tiny_umt5
from gpu_consumers.engines.causal_dit.transformer import Transformer
from gpu_consumers.engines.causal_dit.vae import Vae, VaeConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """One choice. Paths are relative to the folder of models; an empty `transformer` means random weights."""

    name: str
    dit: DitConfig
    vae: VaeConfig
    window: Window
    schedule: Schedule
    kept: Kept = AS_COMPUTED
    transformer: str = ""
    decoder: str = ""
    text: str = ""
    loras: tuple[tuple[str, float], ...] = ()
    """Adapters with their weights, merged in this order."""
    control: str = ""
    control_layers: tuple[int, ...] = ()
    """Of the control branch in that checkpoint."""
    preview: str = ""
    preview_sizes: PreviewConfig = TAEHV
    adapters: tuple[tuple[tuple[str, int], ...], ...] = ()
    """What a job adds to it: of each live adapter the weights with their ranks. A control branch is in `dit` then."""
    previewed: bool = False
    """A job decodes with the preview decoder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What is on the device."""

    config: ModelConfig
    transformer: Transformer
    vae: Vae
    text: Umt5
    device: torch.device
    dtype: torch.dtype
    loras: tuple[Lora, ...] = ()
    """The live adapters in the transformer: held here for other jobs that ask for them."""
    preview: PreviewDecoder | None = None

    def decode_stream(self) -> DecodeStream | PreviewStream:
        """A take's decoder."""
        return DecodeStream(self.vae) if self.preview is None else PreviewStream(self.preview)


_WAN_VAE = "Wan2.1-T2V-1.3B-Diffusers/vae"
_UMT5 = "Wan2.1-T2V-1.3B-Diffusers/text_encoder"
_VACE = "Wan2.1-VACE-1.3B"
_VACE_LAYERS = tuple(range(0, 30, 2))
_TINY_DECODER = "taehv/taew2_1.pth"

MODELS: Mapping[str, ModelConfig] = {
    config.name: config
    for config in (
        ModelConfig(
            name="tiny",
            dit=TINY,
            vae=VaeConfig(dim=4),
            window=Window(),
            schedule=DISTILLED,
            control_layers=(0,),
            preview_sizes=PreviewConfig(widths=(8, 8, 8, 8)),
        ),
        ModelConfig(
            name="self-forcing-1.3b",
            dit=WAN_1_3B,
            vae=VaeConfig(),
            window=Window(),
            schedule=DISTILLED,
            transformer="Self-Forcing/checkpoints/self_forcing_dmd.pt",
            decoder=_WAN_VAE,
            text=_UMT5,
            control=_VACE,
            control_layers=_VACE_LAYERS,
            preview=_TINY_DECODER,
        ),
        ModelConfig(
            name="longlive-1.3b",
            dit=WAN_1_3B,
            vae=VaeConfig(),
            window=Window(),
            schedule=DISTILLED,
            transformer="LongLive-1.3B/models/longlive_base.pt",
            loras=(("LongLive-1.3B/models/lora.pt", 1.0),),
            decoder=_WAN_VAE,
            text=_UMT5,
            control=_VACE,
            control_layers=_VACE_LAYERS,
            preview=_TINY_DECODER,
        ),
        ModelConfig(
            name="wan-1.3b",
            dit=WAN_1_3B,
            vae=VaeConfig(),
            window=Window(),
            schedule=unipc(50),
            transformer="Wan2.1-T2V-1.3B",
            decoder=_WAN_VAE,
            text=_UMT5,
            control=_VACE,
            control_layers=_VACE_LAYERS,
            preview=_TINY_DECODER,
        ),
    )
}


def build(config: ModelConfig, folder: Path, device: torch.device) -> Model:
    """The model on the device, in bf16 on CUDA and float32 elsewhere. Raises: CheckpointError naming the file that is not there or not what it should be."""
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    if not config.transformer:
        return _random(config, device, dtype)
    paths = [folder / name for name in (config.transformer, config.decoder, config.text)]
    for path in paths:
        if not path.exists():
            raise CheckpointError(f"{path}: not there; docs/engines.md says where to get it")
    read_ahead(paths[0])
    with torch.device("meta"):
        transformer, vae = Transformer(config.dit), Vae(config.vae)
    load_file(transformer, paths[0], dtype=dtype, device=device)
    for name, weight in config.loras:
        merge(transformer, finite_lora(folder / name), weight)
    load_file(vae, paths[1], dtype=dtype, device=device)
    try:
        text = load_umt5(paths[2], config.dit.text_tokens, dtype)
    except (OSError, ValueError) as error:  # transformers' words for files that are not there or not its own
        raise CheckpointError(f"{paths[2]}: no text encoder with its tokenizer: {error}") from error
    return _ready(config, transformer, vae, text)


def _random(config: ModelConfig, device: torch.device, dtype: torch.dtype) -> Model:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(20_260)
        transformer, vae = Transformer(config.dit), Vae(config.vae)
        text = tiny_umt5(config.dit.text_tokens, config.dit.text_dim, seed=20_261)
        for module in (transformer, vae):
            for parameter in module.parameters():
                if parameter.ndim > 1:
                    torch.nn.init.normal_(parameter, std=parameter[0].numel() ** -0.5)
    return _ready(config, transformer.to(device, dtype), vae.to(device, dtype), text)


def _ready(config: ModelConfig, transformer: Transformer, vae: Vae, text: Umt5) -> Model:
    weight = transformer.head.head.weight
    return Model(
        config=config,
        transformer=transformer.eval().requires_grad_(False),
        vae=vae.eval().requires_grad_(False),
        text=text,
        device=weight.device,
        dtype=weight.dtype,
    )
