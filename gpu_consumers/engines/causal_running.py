"""The options of `causal_dit` that say how it runs: its cache, its kernels, its embeddings. Read without its libraries.

| option | value | |
|---|---|---|
| `kv` | `full`, `fp8`, `int8` | how keys and values are kept: as the engine computes (bf16 on a card), or in half of that |
| `offload` | 1 .. 40 | keys and values lie in host memory, this many layers are fetched at a time: the same bits, slower |
| `window` | 6 .. 21 latents, 3 by 3 | what a block may attend to, sink and itself included (12) |
| `sink` | 0 .. 18 latents, 3 by 3 | of these the first ones of the take (3) |
| `compile` | `off`, `on`, `graphs` | torch.compile for the transformer's blocks; `graphs`: replayed as CUDA graphs |
| `embedding` | `exact`, `near` | whether the embedding of a nearly equal prompt will do; the segment's event says whose it was |
| `similarity` | 0.5 .. 1 | from which Jaccard similarity of word triples on prompts are nearly equal (0.9) |

`full` and `offload` give the same bits as each other; every other value gives another picture, and all are part of the request
and so of its hash. With `near` the picture depends on what the worker has seen before: only then a restored take may differ.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from gpu_consumers.engines.causal_dit.config import AS_COMPUTED, Kept, Precision, Window
from schemas.errors import BadInputError

RUNNING = ("kv", "offload", "window", "sink", "compile", "embedding", "similarity")
_WHOLE = re.compile(r"\d{1,4}")
_SHARE = re.compile(r"[01](\.\d{1,6})?")
MAX_WINDOW = 21
"""The models were trained on 21 latents at once: beyond, positions are ones that they have never seen."""
CHUNK_LAYERS = 3
"""Layers that are fetched at once where nothing else is said; two such chunks are on the card."""
SMALL_WINDOW = 9
"""Sink, one block behind and the one in hand: less and the picture wanders."""


class Compile(StrEnum):
    """How the transformer's blocks are run."""

    OFF = "off"
    ON = "on"
    GRAPHS = "graphs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """`window` None: the model's own. `similarity` None: exact embeddings only."""

    kept: Kept = AS_COMPUTED
    window: Window | None = None
    compile: Compile = Compile.OFF
    similarity: float | None = None


def running_options(options: Mapping[str, str]) -> Running:
    """Those of `RUNNING` among the options. Raises: BadInputError naming the option and the rule it breaks."""
    precision = Precision(_choice(options, "kv", tuple(Precision)))
    near = _choice(options, "embedding", ("exact", "near")) == "near"
    if "similarity" in options and not near:
        raise _wrong("similarity", "without", "only with embedding=near")
    return Running(
        kept=Kept(precision=precision, offload=_whole(options, "offload", 1, 40) if "offload" in options else 0),
        window=_window(options),
        compile=Compile(_choice(options, "compile", tuple(Compile))),
        similarity=_similarity(options.get("similarity", "0.9")) if near else None,
    )


def offloaded(options: Mapping[str, str]) -> dict[str, str]:
    """The same job with its keys and values in host memory: the same bits, slower."""
    return {"offload": str(CHUNK_LAYERS), **options}


def smaller(options: Mapping[str, str]) -> dict[str, str] | None:
    """The same job with a smaller cache, which makes another picture: int8 first, then a small window. None: it is the smallest."""
    if options.get("kv", Precision.FULL) == Precision.FULL:
        return {**options, "kv": Precision.INT8}
    now = _window(options) or Window()
    return {**options, "window": str(SMALL_WINDOW), "sink": "3"} if now.latents > SMALL_WINDOW else None


def _window(options: Mapping[str, str]) -> Window | None:
    if not options.keys() & {"window", "sink"}:
        return None
    default = Window()
    latents = _whole(options, "window", 2 * default.block, MAX_WINDOW) if "window" in options else default.latents
    sink = _whole(options, "sink", 0, MAX_WINDOW - default.block) if "sink" in options else default.sink
    for name, value in (("window", latents), ("sink", sink)):
        if value % default.block:
            raise _wrong(name, "block", f"a multiple of {default.block}: blocks are whole")
    if latents < sink + default.block:
        raise _wrong("window", "sink", f"at least the sink of {sink} and a block of {default.block}")
    return Window(latents=latents, sink=sink)


def _choice(options: Mapping[str, str], name: str, values: tuple[str, ...]) -> str:
    """The first of the values if nothing is said."""
    value = options.get(name, values[0])
    if value not in values:
        raise _wrong(name, "choice", f"one of {', '.join(values)}, not {value[:40]!r}")
    return value


def _whole(options: Mapping[str, str], name: str, low: int, high: int) -> int:
    text = options[name]
    if not _WHOLE.fullmatch(text):
        raise _wrong(name, "type", f"a whole number, not {text[:40]!r}")
    if not low <= int(text) <= high:
        raise _wrong(name, "range", f"between {low} and {high}")
    return int(text)


def _similarity(text: str) -> float:
    if not _SHARE.fullmatch(text):
        raise _wrong("similarity", "type", f"a number, not {text[:40]!r}")
    if not 0.5 <= float(text) <= 1:
        raise _wrong("similarity", "range", "between 0.5 and 1")
    return float(text)


def _wrong(name: str, rule: str, message: str) -> BadInputError:
    return BadInputError(field=f"engine_options.{name}", rule=rule, message=message)
