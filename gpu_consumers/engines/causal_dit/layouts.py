"""Names of the transformer's tensors in the checkpoints one can get, to the original's names that this engine uses."""

import re
from collections.abc import Mapping
from typing import TypeVar

Value = TypeVar("Value")


class CheckpointError(Exception):
    """The file is not the model's: the message says why, or lists the tensors that are missing, left over or of another shape."""


_WRAPPERS = ("model.", "_fsdp_wrapped_module.", "module.")
_DIFFUSERS = re.compile(r"^condition_embedder\.|\.attn[12]\.|\.ffn\.net\.")
"""An adapter may have only some of these."""
_FROM_DIFFUSERS = (
    (r"condition_embedder\.time_embedder\.linear_1\.", "time_embedding.0."),
    (r"condition_embedder\.time_embedder\.linear_2\.", "time_embedding.2."),
    (r"condition_embedder\.text_embedder\.linear_1\.", "text_embedding.0."),
    (r"condition_embedder\.text_embedder\.linear_2\.", "text_embedding.2."),
    (r"condition_embedder\.time_proj\.", "time_projection.1."),
    (r"condition_embedder\.image_embedder\.norm1\.", "img_emb.proj.0."),
    (r"condition_embedder\.image_embedder\.ff\.net\.0\.proj\.", "img_emb.proj.1."),
    (r"condition_embedder\.image_embedder\.ff\.net\.2\.", "img_emb.proj.3."),
    (r"condition_embedder\.image_embedder\.norm2\.", "img_emb.proj.4."),
    (r"((?:vace_)?blocks\.\d+)\.scale_shift_table", r"\1.modulation"),
    (r"scale_shift_table", "head.modulation"),
    (r"proj_out\.", "head.head."),
    (r"((?:vace_)?blocks\.\d+)\.attn1\.", r"\1.self_attn."),
    (r"((?:vace_)?blocks\.\d+)\.attn2\.", r"\1.cross_attn."),
    (r"((?:vace_)?blocks\.\d+)\.ffn\.net\.0\.proj\.", r"\1.ffn.0."),
    (r"((?:vace_)?blocks\.\d+)\.ffn\.net\.2\.", r"\1.ffn.2."),
    (r"(vace_blocks\.\d+)\.proj_in\.", r"\1.before_proj."),
    (r"(vace_blocks\.\d+)\.proj_out\.", r"\1.after_proj."),
    # diffusers numbers the norms in order of use, the original by kind: only the affine one has weights.
    (r"((?:vace_)?blocks\.\d+)\.norm2\.", r"\1.norm3."),
)
_ATTENTION = {
    "to_q": "q",
    "to_k": "k",
    "to_v": "v",
    "to_out.0": "o",
    "add_k_proj": "k_img",
    "add_v_proj": "v_img",
    "norm_added_k": "norm_k_img",
    "norm_q": "norm_q",
    "norm_k": "norm_k",
}


def original_names(tensors: Mapping[str, Value]) -> dict[str, Value]:
    """The tensors under the original's names, whichever layout they came in: Wan, diffusers, Self-Forcing or LongLive.

    Raises: CheckpointError if two tensors end up under one name.
    """
    bare = {_unwrapped(name): value for name, value in tensors.items()}
    diffusers = any(_DIFFUSERS.search(name) for name in bare)
    named = {(_from_diffusers(name) if diffusers else name): value for name, value in bare.items()}
    if len(named) != len(tensors):
        raise CheckpointError("two tensors of the checkpoint have the same name")
    return named


def _unwrapped(name: str) -> str:
    changed = True
    while changed:
        changed = False
        for wrapper in _WRAPPERS:
            if name.startswith(wrapper):
                name, changed = name.removeprefix(wrapper), True
            elif f".{wrapper}" in name:
                name, changed = name.replace(f".{wrapper}", "."), True
    return name


def _from_diffusers(name: str) -> str:
    for pattern, replacement in _FROM_DIFFUSERS:
        name, count = re.subn(f"^{pattern}", replacement, name)
        if count:
            break
    head, dot, rest = name.partition("_attn.")
    if dot:
        for theirs, ours in _ATTENTION.items():
            if rest.startswith(f"{theirs}."):
                return f"{head}{dot}{ours}.{rest.removeprefix(f'{theirs}.')}"
    return name
