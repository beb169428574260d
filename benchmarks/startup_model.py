"""What the start-up benchmark's processes do once torch is there: write a checkpoint, or load it and make a block."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from safetensors.torch import save_file

from benchmarks.gpu_model import Scale, random_model, scale, take_of
from gpu_consumers.engines.causal_dit.checkpoint import load, read
from gpu_consumers.engines.causal_dit.config import DitConfig
from gpu_consumers.engines.causal_dit.models import MODELS
from gpu_consumers.engines.causal_dit.transformer import Transformer
from gpu_consumers.engines.causal_dit.vae import Vae

_MEDIUM = replace(MODELS["tiny"], name="medium", dit=DitConfig(layers=12, dim=1024, ffn_dim=4096, heads=8, text_dim=64))
"""800 MB in float32: enough for a disk to be slow, little enough for a benchmark."""


def write(files: Sequence[Path], name: str) -> dict[str, float]:
    """The checkpoint's two files."""
    model = random_model(_scale(name))
    for file, module in zip(files, (model.transformer, model.vae), strict=True):
        save_file({key: tensor.contiguous() for key, tensor in module.state_dict().items()}, file)
    return {"bytes": sum(file.stat().st_size for file in files)}


def start(files: Sequence[Path], name: str, size: tuple[int, int], began: float) -> dict[str, float]:
    """Load them as the engine does and make the first block. `began`: when the process was started, in seconds since the epoch."""
    wanted = replace(_scale(name), width=size[0], height=size[1])
    if wanted.device.type == "cuda":
        torch.zeros(1, device=wanted.device)
    imported = time.time()
    with torch.device("meta"):
        transformer, vae = Transformer(wanted.config.dit), Vae(wanted.config.vae)
    for module, file in zip((transformer, vae), files, strict=True):
        load(module, read(file), dtype=wanted.dtype, device=wanted.device)
    if wanted.device.type == "cuda":
        torch.cuda.synchronize()
    loaded = time.time()
    tiny = random_model(replace(wanted, config=MODELS["tiny"]))
    model = replace(tiny, config=wanted.config, transformer=transformer.eval(), vae=vae.eval())
    take = take_of(wanted, model)
    for _ in take.next_block(0, 0):
        pass
    take.decode(take.last)
    done = time.time()
    return {
        "import_s": imported - began,
        "load_s": loaded - imported,
        "first_block_s": done - loaded,
        "all_s": done - began,
        "gb": sum(file.stat().st_size for file in files) / 1e9,
    }


def _scale(name: str) -> Scale:
    if name == "medium":
        return replace(scale(tiny=True), config=_MEDIUM)
    return scale(tiny=name == "tiny")
