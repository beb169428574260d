"""The parts of `benchmarks/gpu.sh`. Each runs in a process of its own and returns flat figures."""

import copy
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from queue import Queue

import torch
from torch import Tensor

from benchmarks.gpu import Figures
from benchmarks.gpu_model import (
    Scale,
    block_of,
    cache_of,
    context_of,
    fill,
    random_model,
    relative,
    scale,
    seconds,
    synchronise,
    take_of,
)
from benchmarks.startup import started
from gpu_consumers.engines.causal_dit.attention import kernels
from gpu_consumers.engines.causal_dit.config import TINY, Kept, Precision, Window
from gpu_consumers.engines.causal_dit.decode import DecodeStream
from gpu_consumers.engines.causal_dit.ledger import predict
from gpu_consumers.engines.causal_dit.live import LiveBytes
from gpu_consumers.engines.causal_dit.memory import device_cache
from gpu_consumers.engines.causal_dit.sampler import take_in
from gpu_consumers.engines.causal_dit.take import Take
from gpu_consumers.engines.causal_dit.transformer import Transformer
from gpu_consumers.engines.causal_dit.vae import Vae, VaeConfig
from gpu_consumers.engines.causal_running import Compile

_FRAMES = 12
"""Of a block that is not the take's first."""
_FULL = 16
"""Blocks."""
_AHEAD = 2
"""Blocks that may wait for the decoder."""
_GRID = (4, 6)


def card(*, tiny: bool) -> Figures:
    """What it runs on."""
    wanted = scale(tiny=tiny)
    found: dict[str, float | int | str] = {"torch": torch.__version__, "config": wanted.config.name}
    found |= {"width": wanted.width, "height": wanted.height, "attention": kernels(wanted.device)}
    if wanted.device.type == "cuda":
        properties = torch.cuda.get_device_properties(wanted.device)
        found |= {"device": properties.name, "device_gb": round(properties.total_memory / 1e9, 1)}
    else:
        found |= {"device": "cpu"}
    return found


def parity(*, tiny: bool) -> Figures:
    """Six blocks of the tiny model and their decoding on the device, against the same weights in float64 on the CPU."""
    wanted = scale(tiny=tiny)
    torch.backends.cudnn.allow_tf32 = False
    torch.manual_seed(1)
    model, vae = Transformer(TINY).double().eval(), Vae(VaeConfig(dim=4)).double().eval()
    text = torch.randn(1, TINY.text_tokens, TINY.text_dim, dtype=torch.float64)
    blocks = torch.randn(1, 16, 18, 2 * _GRID[0], 2 * _GRID[1], dtype=torch.float64)

    def run(device: torch.device, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        mine, decoder = (copy.deepcopy(m).to(device, dtype) for m in (model, vae))
        context = mine.context(text.to(device, dtype))
        cache = device_cache(TINY, Window(), _GRID, torch.zeros(1, dtype=dtype, device=device))
        flows: list[Tensor] = []
        for block in blocks.to(device, dtype).split(3, dim=2):
            cache.begin(cache.latents)
            flows.append(mine(block, torch.full((1,), 500.0, device=device), context, cache))
        stream = DecodeStream(decoder)
        pixels = [stream.decode(block) for block in blocks.to(device, dtype).split(3, dim=2)]
        return torch.cat(flows, dim=2), torch.cat(pixels, dim=2)

    flow, pixels = run(torch.device("cpu"), torch.float64)
    found: dict[str, float] = {}
    for name, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16)):
        other, seen = run(wanted.device, dtype)
        found[f"parity_{name}_error"] = relative(other, flow)
        found[f"parity_{name}_decoder_error"] = relative(seen, pixels)
    return found


def first_frame(*, tiny: bool) -> Figures:
    """From a prompt's embedding to the first block's frames in host memory, kernels warm: a new take on a loaded model."""
    wanted = scale(tiny=tiny)
    model = random_model(wanted)

    def begin() -> None:
        take = take_of(wanted, model)
        _denoised(take)
        take.decode(take.last)

    return {"first_frame_s": seconds(wanted, begin, 2)}


def denoise(*, tiny: bool) -> Figures:
    """Frames per second of denoising alone, the window full; four steps and the clean pass."""
    wanted = scale(tiny=tiny)
    return {"denoise_fps": _denoise_fps(wanted, take_of(wanted, random_model(wanted)))}


def end_to_end(*, tiny: bool) -> Figures:
    """The same with decoding in a thread and on a stream of its own, at most two blocks behind.

    `decode_overlap`: how much of the shorter of the two is hidden behind the longer; 1: all of it.
    """
    wanted = scale(tiny=tiny)
    take = take_of(wanted, random_model(wanted))
    fill(take, wanted)
    block = take.last
    denoise_s = seconds(wanted, lambda: _denoised(take), 2)
    decode_s = seconds(wanted, lambda: take.decode(block), 2)
    queue: Queue[Tensor | None] = Queue(_AHEAD)

    def decode() -> None:
        while (latents := queue.get()) is not None:
            take.decode(latents)

    thread = threading.Thread(target=torch.no_grad()(decode))
    begun_s = time.perf_counter()
    thread.start()
    for _ in range(wanted.blocks):
        _denoised(take)
        queue.put(take.last)
    queue.put(None)
    thread.join()
    both_s = (time.perf_counter() - begun_s) / wanted.blocks
    return {
        "end_to_end_fps": _FRAMES / both_s,
        "decode_fps": _FRAMES / decode_s,
        "decode_overlap": (denoise_s + decode_s - both_s) / min(denoise_s, decode_s),
    }


def length(*, tiny: bool) -> Figures:
    """Memory at the end of a long take against that after 16 blocks, when all that is kept is full; 1.0 is constant."""
    wanted = scale(tiny=tiny)
    take = take_of(wanted, random_model(wanted))
    live = LiveBytes()
    with nullcontext() if wanted.device.type == "cuda" else live:
        take.replay(block_of(wanted))
        for index in range(1, _FULL):
            take.replay(block_of(wanted, index))
        early = _held(wanted, live)
        for index in range(_FULL, wanted.latents // 3):
            take.replay(block_of(wanted, index))
        late = _held(wanted, live)
    return {"length_latents": wanted.latents, "length_memory_ratio": late / early}


def storage(*, tiny: bool) -> Figures:
    """What offloading, fp8 and int8 cost: the time of a pass and the size of the cache against the plain one, and the error."""
    wanted = scale(tiny=tiny)
    model = random_model(wanted)
    context = context_of(model)
    kinds = {
        "full": Kept(),
        "offload": Kept(offload=3),
        "fp8": Kept(precision=Precision.FP8),
        "int8": Kept(precision=Precision.INT8),
        "int8_offload": Kept(precision=Precision.INT8, offload=3),
    }
    found: dict[str, float] = {}
    exact, full_s, full_bytes = torch.empty(0), 0.0, 0
    for name, kept in kinds.items():
        cache = cache_of(wanted, kept)
        for index in range(5):
            take_in(model.transformer, cache, context, block_of(wanted, index).to(model.device, model.dtype))
        x, at = block_of(wanted, 9).to(model.device, model.dtype), torch.full((1,), 500.0, device=model.device)
        cache.begin(cache.latents)
        flow = model.transformer(x, at, context, cache)
        pass_s = seconds(
            wanted, lambda cache=cache, x=x, at=at: model.transformer(x, at, context, cache), wanted.blocks
        )
        if name == "full":
            exact, full_s, full_bytes = flow, pass_s, cache.storage.device_bytes
            found["kv_full_pass_ms"] = pass_s * 1e3
            continue
        found[f"kv_{name}_time_ratio"] = pass_s / full_s
        found[f"kv_{name}_memory_ratio"] = cache.storage.device_bytes / full_bytes
        found[f"kv_{name}_error"] = relative(flow, exact)
    return found


def ledger(*, tiny: bool) -> Figures:
    """The memory that is predicted against what the allocator (the CPU: the live tensors) had at most. 1.0 is right."""
    wanted = scale(tiny=tiny)
    predicted = predict(wanted.config, wanted.width, wanted.height, wanted.dtype)
    cuda = wanted.device.type == "cuda"
    model = random_model(wanted)
    weights = sum(p.numel() * p.element_size() for m in (model.transformer, model.vae) for p in m.parameters())
    live = LiveBytes()
    with nullcontext() if cuda else live:
        take = take_of(wanted, model)
        fill(take, wanted)
        denoised = _excess(wanted, live, lambda: _denoised(take))
        take.decode(take.last)
        decoded = _excess(wanted, live, lambda: take.decode(take.last))
        held = _held(wanted, live)
    used = held + denoised + decoded + (0 if cuda else weights)
    return {
        "ledger_predicted_gb": predicted.total / 1e9,
        "ledger_used_gb": used / 1e9,
        "ledger_ratio": predicted.total / used,
    }


def startup(*, tiny: bool) -> Figures:
    """A new process to the first block's frames, from a checkpoint on the disk: not in the page cache, and read ahead into it."""
    wanted = scale(tiny=tiny)
    return started(wanted.config.name, wanted.width, wanted.height)


def compile_(*, tiny: bool) -> Figures:
    """Denoising with compiled blocks, and those as CUDA graphs. On the CPU without a compiler: whether it runs, not how fast."""
    from gpu_consumers.engines.causal_dit.compiling import compiled  # torch's compiler takes seconds to import

    wanted = scale(tiny=tiny)
    cuda = wanted.device.type == "cuda"
    model = random_model(wanted)
    found: dict[str, float] = {}
    for how in (Compile.ON, Compile.GRAPHS) if cuda else (Compile.ON,):
        begun_s = time.perf_counter()
        faster = compiled(model.transformer, how, "inductor" if cuda else "eager")
        take = take_of(wanted, replace(model, transformer=faster))
        found[f"compile_{how}_fps"] = _denoise_fps(wanted, take)
        found[f"compile_{how}_warm_up_s"] = time.perf_counter() - begun_s
    return found


def _denoise_fps(wanted: Scale, take: Take) -> float:
    fill(take, wanted)
    return _FRAMES / seconds(wanted, lambda: _denoised(take), wanted.blocks)


def _denoised(take: Take) -> None:
    for _ in take.next_block(0, 0):
        pass


def _held(wanted: Scale, live: LiveBytes) -> int:
    synchronise(wanted)
    return torch.cuda.memory_allocated() if wanted.device.type == "cuda" else live.now


def _excess(wanted: Scale, live: LiveBytes, work: Callable[[], object]) -> int:
    """What work needs for a while, on top of what it leaves behind."""
    live.peak = live.now
    if wanted.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    work()
    held = _held(wanted, live)
    return (torch.cuda.max_memory_allocated() if wanted.device.type == "cuda" else live.peak) - held


PARTS: Mapping[str, Callable[..., Figures]] = {
    "card": card,
    "parity": parity,
    "first_frame": first_frame,
    "denoise": denoise,
    "end_to_end": end_to_end,
    "length": length,
    "storage": storage,
    "ledger": ledger,
    "startup": startup,
    "compile": compile_,
}
