"""One attention for the whole engine: flash-attn where the card and the package are there, torch's SDPA elsewhere."""

import logging
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec

import torch
import torch.nn.functional as nn_functional
from torch import Tensor

log = logging.getLogger(__name__)
_HALF = (torch.float16, torch.bfloat16)


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Softmax attention of q [B, Lq, heads, d] over k and v [B, Lk, heads, d], out [B, Lq, heads, d].

    `mask` [Lq, Lk] bool, True: visible. flash-attn takes half precision on CUDA without a mask; all else goes to SDPA.
    """
    flash = flash_attention() if q.is_cuda and q.dtype in _HALF and mask is None else None
    if flash is not None:
        return flash(q, k, v)
    out = nn_functional.scaled_dot_product_attention(
        q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), attn_mask=mask
    )
    return out.transpose(1, 2)


@cache
def flash_attention() -> Callable[[Tensor, Tensor, Tensor], Tensor] | None:
    """flash-attn 3, else 2, else None. Looked up and logged once."""
    for module, name in (("flash_attn_interface", "flash-attn 3"), ("flash_attn", "flash-attn 2")):
        if find_spec(module) is None:
            continue
        try:
            function = import_module(module).flash_attn_func
        except ImportError as error:
            log.info("attention: %s is installed without its kernels (%s)", name, error)
            continue
        log.info("attention: %s", name)
        return lambda q, k, v, f=function: _first(f(q, k, v))
    log.info("attention: torch SDPA")
    return None


def _first(out: Tensor | tuple[Tensor, ...]) -> Tensor:
    return out[0] if isinstance(out, tuple) else out
