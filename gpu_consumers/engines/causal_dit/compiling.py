"""torch.compile for the transformer's blocks, where a job asks for it: other kernels, so other bits, sooner.

Only what lies between two attentions is compiled: the cache, whose rows change from block to block, stays outside. On a card
`graphs` replays each of these parts as a CUDA graph, which saves the launches; it pays where pictures are small.
Imported when a job wants it: torch's compiler takes seconds to import.
"""

from typing import Any

import torch
import torch._dynamo.config
from torch import Tensor, nn

from gpu_consumers.engines.causal_dit.lora import sharing
from gpu_consumers.engines.causal_dit.memory import Memory
from gpu_consumers.engines.causal_dit.transformer import Transformer
from gpu_consumers.engines.causal_running import Compile

_MODES = {Compile.ON: "default", Compile.GRAPHS: "reduce-overhead"}
_VARIANTS = 64
"""Of one code: 30 layers, several sizes. Beyond torch's limit it would silently run uncompiled."""


class _Outside:
    """A memory that compiled code calls and does not look into."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    @torch.compiler.disable
    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return self._memory.attend(layer, q, k, v)


def compiled(model: Transformer, how: Compile, backend: str = "inductor") -> Transformer:
    """The same weights in blocks that are compiled at their first run, which takes a minute or so; `model` stays as it is."""
    mine = sharing(model)
    torch._dynamo.config.recompile_limit = max(_VARIANTS, torch._dynamo.config.recompile_limit)
    mode = _MODES[how] if backend == "inductor" else None
    for block in mine.blocks:
        block.compile(backend=backend, mode=mode)

    def before(_: nn.Module, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        if how is Compile.GRAPHS:
            torch.compiler.cudagraph_mark_step_begin()
        x, time, context, memory, *more = arguments
        return x, time, context, _Outside(memory), *more

    mine.register_forward_pre_hook(before)
    return mine
