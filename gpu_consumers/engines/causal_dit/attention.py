"""One attention for the whole engine: flash-attn where the card and the package are there, torch's SDPA elsewhere."""

import logging
from collections.abc import Callable
from functools import cache
from importlib import import_module

import torch
import torch.nn.functional as nn_functional
from torch import Tensor

from gpu_consumers.engines.causal_dit.kernels import FLASH_3, MODULES, SDPA, choice, installed

log = logging.getLogger(__name__)
_HALF = (torch.float16, torch.bfloat16)


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Softmax attention of q [B, Lq, heads, d] over k and v [B, Lk, heads, d], out [B, Lq, heads, d].

    `mask` [Lq, Lk] bool, True: visible. flash-attn takes half precision on CUDA without a mask; all else goes to SDPA.
    """
    flash = flash_attention(q.device) if q.is_cuda and q.dtype in _HALF and mask is None else None
    if flash is not None:
        return flash(q, k, v)
    out = nn_functional.scaled_dot_product_attention(
        q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), attn_mask=mask
    )
    return out.transpose(1, 2)


@cache
def kernels(device: torch.device) -> str:
    """Whose kernels attention in half precision has on this device: a name of kernels.py. Looked up and logged once."""
    found = installed()
    capability = torch.cuda.get_device_capability(device) if device.type == "cuda" else None
    name = choice(capability, found)
    while name != SDPA:
        try:
            import_module(MODULES[name])
            break
        except ImportError as error:
            log.warning("attention: %s does not load (%s)", name, error)
            found.remove(name)
            name = choice(capability, found)
    log.info("attention: %s", name)
    return name


@cache
def flash_attention(device: torch.device) -> Callable[[Tensor, Tensor, Tensor], Tensor] | None:
    """flash-attn's function for this device; None: SDPA."""
    name = kernels(device)
    if name == SDPA:
        return None
    function = import_module(MODULES[name]).flash_attn_func
    return function if name != FLASH_3 else lambda q, k, v: _first(function(q, k, v))


def _first(out: Tensor | tuple[Tensor, ...]) -> Tensor:
    return out[0] if isinstance(out, tuple) else out
