"""Reads engine logs: for every abort, what kind of fault it was, in which module, and what to check.

An abort is one line, `RENDER_ABORT frame=120 gpu=0 reason="..."`, with further `key=value` pairs in any order; the lines around
it say more. The worker writes such lines itself (`abort_line`).
"""

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

from gpu_consumers.faults import classify, rank
from schemas.records import FailureKind, SegmentFailed, SegmentRequested

_BEFORE, _AFTER = 40, 10
"""Lines that may belong to an abort; never those of the abort before it."""
_ABORT = re.compile(r"\bRENDER_ABORT\b(.*)")
_PAIR = re.compile(r'\b(\w+)=("(?:[^"\\]|\\.)*"|[^\s"]+)')
_DIGITS = 18
"""No frame has a longer number; Python reads none beyond 4,300."""
_TROUBLE = re.compile(
    r"error|warn|fail|fatal|critical|exception|abort|xid|kill|time[d ]*out|assert|\blost\b", re.IGNORECASE
)
"""Other lines are not evidence: a loader that says `weights frozen` has not seen a frozen picture."""
_FRAME = re.compile(r'File "[^"]*?((?:[\w.-]+/)*[\w.-]+\.py)", line (\d+)')
_OURS = re.compile(r"(?:gpu_consumers|infra|streams|qc_consumers|schemas)/.*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """One abort. `line` counts from 1; `evidence` is the line that told, `module` where it happened or is to be looked for."""

    line: int
    frame: int | None
    gpu: str
    reason: str
    kind: FailureKind | None
    """None: nothing that is known."""
    evidence: str
    module: str
    check: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class _Abort:
    number: int
    text: str
    around: list[str]
    after: int = field(default=0)


def diagnose(lines: Iterable[str]) -> Iterator[Diagnosis]:
    """The aborts of a log in order. Reads it once, and remembers a few lines of it."""
    before: deque[str] = deque(maxlen=_BEFORE)
    open_abort: _Abort | None = None
    for number, line in enumerate(chain(lines, [None]), 1):
        abort = None if line is None else _ABORT.search(line)
        if open_abort and (line is None or abort or open_abort.after == _AFTER):
            yield _diagnosis(open_abort)
            open_abort = None
        if line is None:
            return
        if abort:
            open_abort = _Abort(number=number, text=abort[1], around=list(before))
            before.clear()
        elif open_abort:
            open_abort.around.append(line.rstrip("\n"))
            open_abort.after += 1
        else:
            before.append(line.rstrip("\n"))


def abort_line(request: SegmentRequested, failure: SegmentFailed, gpu: str) -> str:
    """A failed segment in the form that `diagnose` reads. `frame` is the segment's first."""
    return (
        f"RENDER_ABORT frame={request.start_frame} gpu={gpu or '-'} kind={failure.kind} job={failure.job_id} "
        f"segment={failure.segment} attempt={failure.attempt} reason={json.dumps(failure.reason)}"
    )


def _diagnosis(abort: _Abort) -> Diagnosis:
    pairs = {key: _value(value) for key, value in _PAIR.findall(abort.text)}
    reason = pairs.get("reason", "")
    kind, evidence = _kind(pairs.get("kind", ""), reason, [line for line in abort.around if _TROUBLE.search(line)])
    frame = pairs.get("frame", "")
    return Diagnosis(
        line=abort.number,
        frame=int(frame) if frame.isdecimal() and len(frame) <= _DIGITS else None,
        gpu=pairs.get("gpu", ""),
        reason=reason,
        kind=kind,
        evidence=evidence,
        module=_traced([*abort.around, reason]) or MODULES.get(kind, "unknown"),
        check=CHECKS.get(kind, UNKNOWN),
    )


def _kind(said: str, reason: str, around: list[str]) -> tuple[FailureKind | None, str]:
    """The cause nearest to the root of what the abort says itself and what the lines around it say."""
    found = [(kind, text) for text in (reason, *around) if (kind := classify(text))]
    if said in set(FailureKind):
        found.insert(0, (FailureKind(said), reason))
    return min(found, key=lambda item: rank(item[0]), default=(None, reason))


def _traced(lines: list[str]) -> str:
    """The innermost place of the last traceback: in this project, or else at all."""
    places = [(path, line) for text in lines for path, line in _FRAME.findall(text)]
    ours = [(own[0], line) for path, line in places if (own := _OURS.search(path))]
    for path, line in (ours or places)[-1:]:
        return f"{path}:{line}"
    return ""


def _value(text: str) -> str:
    if not text.startswith('"'):
        return text
    try:
        return str(json.loads(text)).encode(errors="replace").decode()  # half a surrogate pair cannot be printed
    except ValueError:  # a backslash that is none of JSON's
        return text[1:-1]


MODULES: dict[FailureKind | None, str] = {
    FailureKind.DEVICE_LOST: "the card, its slot and its driver",
    FailureKind.OUT_OF_MEMORY: "gpu_consumers/engines/causal_dit/ledger.py, gpu_consumers/memory",
    FailureKind.KERNEL: "gpu_consumers/engines/causal_dit/attention.py, the kernels of torch and flash-attn",
    FailureKind.SYNC: "NCCL, or streams that wait for each other",
    FailureKind.IO: "infra/objects.py, the disk or the object store",
    FailureKind.TIMEOUT: "gpu_consumers/supervisor.py, gpu_consumers/patience.py",
    FailureKind.CRASHED: "gpu_consumers/child.py",
    FailureKind.NAN: "gpu_consumers/engines/causal_dit/sampler.py",
    FailureKind.SINK_COLLAPSE: "gpu_consumers/engines/causal_dit/memory.py",
    FailureKind.WRONG_FRAME_COUNT: "gpu_consumers/stages.py, the engine's decode",
    FailureKind.FROZEN: "gpu_consumers/checks.py",
    FailureKind.BLACK: "gpu_consumers/checks.py",
    FailureKind.STATE_MISSING: "gpu_consumers/stages.py, the latents in the object store",
    FailureKind.ENGINE: "the engine, or what was asked of it",
}
UNKNOWN = ("read the lines around the abort: nothing in them is known here",)
CHECKS: dict[FailureKind | None, tuple[str, ...]] = {
    FailureKind.DEVICE_LOST: (
        "nvidia-smi -q: is the card there, its ECC counts, its retired pages, its temperature",
        "dmesg | grep -i xid: the number says what the driver saw (79: off the bus, 48, 94, 95: memory)",
        "the slot, the power cable and the riser; then the card, in another machine",
    ),
    FailureKind.OUT_OF_MEMORY: (
        "longtake plan --size WxH --gpu SIZE: what the configuration needs, by part, and what to change",
        "nvidia-smi: who else uses the card; dmesg: did the kernel kill the process for host memory",
        "fragmentation above 70 %: restart the worker",
    ),
    FailureKind.KERNEL: (
        "does it happen at the same frame again: run once with CUDA_LAUNCH_BLOCKING=1 to see which kernel",
        "torch, flash-attn and the driver: built for this card and for each other (longtake doctor)",
        "on one card only: its memory (Xid 31 and 13 come from broken cards too)",
    ),
    FailureKind.SYNC: (
        "NCCL_DEBUG=INFO: which rank was last, and over which network interface",
        "nvidia-smi nvlink -e: errors on the links; nvidia-smi topo -m: are they all there",
        "did another rank end first: its log has the cause",
    ),
    FailureKind.IO: (
        "df and df -i on the state folder and the object store; dmesg: errors of the disk",
        "can the worker reach the object store with its credentials (longtake doctor)",
    ),
    FailureKind.TIMEOUT: (
        "nvidia-smi dmon: is the card busy, throttled, or shared with others",
        "first steps compile: is the time-out (LONGTAKE_SEGMENT_TIMEOUT_S) longer than that",
        "py-spy dump on the engine process: where does it stand",
    ),
    FailureKind.CRASHED: (
        "the engine process's own traceback, in the same log above",
        "a signal without one: dmesg for segfaults and the kernel's memory killer",
    ),
    FailureKind.NAN: (
        "the same seed again: if it is NaN again, the prompt or the LoRA weights overflow the precision",
        "only after hours or on one card: its memory (ECC counts)",
    ),
    FailureKind.SINK_COLLAPSE: (
        "at which latent: windowed models do this around 132 and 201",
        "another seed, a longer window, or a new shot before that point",
    ),
    FailureKind.WRONG_FRAME_COUNT: (
        "the engine's version: did the decoder start a take in the middle (one frame for the first latent)",
        "are the segment's latents in the store as many as its blocks",
    ),
    FailureKind.FROZEN: (
        "the prompt: was motion asked for that the engine does not know",
        "the last latents: do they change, or only their decoding does not",
    ),
    FailureKind.BLACK: (
        "the latents: all near zero means the model, others the decoder",
        "the decoder's weights: do they belong to the model",
    ),
    FailureKind.STATE_MISSING: (
        "the objects that latent_ref names: are they in the store, with their digests",
        "was the store swept while the job was running",
    ),
    FailureKind.ENGINE: ("the reason says it: an option, a size or a file that the engine cannot work with",),
}
