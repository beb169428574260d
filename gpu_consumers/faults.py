"""What goes wrong with an engine: told from the words of errors and logs, and what the next attempt changes."""

import re
from dataclasses import dataclass
from enum import StrEnum

from schemas.records import FailureKind, SegmentRequested


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """Words by which a fault is known. Device Xids are NVIDIA's ("GPU deployment: Xid errors")."""

    kind: FailureKind
    words: re.Pattern[str]


def _sign(kind: FailureKind, *words: str) -> Sign:
    return Sign(kind=kind, words=re.compile("|".join(words), re.IGNORECASE))


_XID = r"xid\b.{0,40}?:\s*"
SIGNS = (
    _sign(
        FailureKind.DEVICE_LOST,
        rf"{_XID}(48|61|62|64|74|79|94|95|109|119|120|140)\b",
        r"device[ _](is )?(lost|removed|hung)\b|gpu[ _](is )?lost|fallen off the bus",
        r"uncorrectable ecc|ecc ?uncorrectable|no cuda-capable device|busy or unavailable",
        r"unable to determine the device handle|cuda error: unknown error",
    ),
    _sign(
        FailureKind.OUT_OF_MEMORY,
        r"out[ _]of[ _]memory|outofmemory|memoryerror|bad_alloc|cannot allocate memory|alloc_failed",
        r"oom[-_ ]kill|killed the engine process for memory|\boom\b",
    ),
    _sign(
        FailureKind.KERNEL,
        rf"{_XID}(13|31|43)\b",
        r"illegal (memory access|instruction|address)|misaligned address|unspecified launch failure|device-side assert",
        r"no kernel image|invalid device function|launch timed out|(cublas|cudnn|cusolver)_status_(?!alloc)|shader",
        r"\bkernel (error|failed|failure|fault|hang)",
    ),
    _sign(
        FailureKind.SYNC,
        r"nccl\w*(error|.{0,80}?(error|abort|time[d ]*out|unhandled|failure))|collective operation timeout",
        r"(fence|semaphore|barrier|stream|queue)\b.{0,40}(timed? ?out|timeout|failed|never)|\bsync(hroni[sz]ation)?\b",
    ),
    _sign(
        FailureKind.IO,
        r"no space left|input/output error|\bi/?o[ _]?(error|timeout|failure)|read-only file system|quota exceeded",
        r"connection (reset|refused|aborted)|broken pipe|stale file handle|permission denied|no such file",
        r"bloberror|safetensorerror|oserror|(checksum|digest) mismatch|\be(io|nospc)\b",
    ),
    _sign(FailureKind.NAN, r"\bnans?\b|not finite|non-?finite"),
    _sign(FailureKind.SINK_COLLAPSE, r"sink[ _]collapse|snap(s|ped)? back"),
    _sign(
        FailureKind.WRONG_FRAME_COUNT,
        r"wrong[ _](frame[ _])?count|\d+ frames instead of \d+|frame count mismatch|made no latents",
    ),
    _sign(
        FailureKind.FROZEN,
        r"^\W*frozen|frozen[ _](frame|picture|segment|video)|(frames?|picture|video)\b.{0,20}\bfrozen",
        r"frames are the same|duplicate frames",
    ),
    _sign(FailureKind.BLACK, r"frames are black|black frames"),
    _sign(FailureKind.STATE_MISSING, r"state[ _]missing|latents of an earlier segment|do not lead to frame"),
    _sign(FailureKind.TIMEOUT, r"timed? ?-?out|timeout|no step for|no heartbeat|\bstall|\bhang\b|\bhung\b|watchdog"),
)
"""Causes before their symptoms: a lost device also times out, and takes its collectives with it."""


def classify(text: str) -> FailureKind | None:
    """The first of `SIGNS` in the text; None: nothing that is known."""
    return next((sign.kind for sign in SIGNS if sign.words.search(text)), None)


def rank(kind: FailureKind) -> int:
    """Lower is nearer to the cause; kinds without signs come last."""
    return next((i for i, sign in enumerate(SIGNS) if sign.kind is kind), len(SIGNS))


class Change(StrEnum):
    """What an attempt does otherwise than the one before."""

    RESTART = "restart the engine process"
    OTHER_DEVICE = "take another device"
    OFFLOAD = "offload the cache to host memory"
    """Slower, the same bits."""
    SMALLER_CACHE = "make the cache smaller"
    """Other bits."""
    OTHER_SEED = "take another seed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """The next attempt: from the segment's first frame on, out of the latents before it. Nothing changes inside a segment."""

    from_frame: int
    changes: frozenset[Change]


_FIRST: dict[FailureKind, frozenset[Change]] = {
    FailureKind.DEVICE_LOST: frozenset({Change.RESTART, Change.OTHER_DEVICE}),
    FailureKind.OUT_OF_MEMORY: frozenset({Change.RESTART, Change.OFFLOAD}),
    FailureKind.SYNC: frozenset({Change.RESTART}),
    FailureKind.KERNEL: frozenset({Change.RESTART}),
    FailureKind.TIMEOUT: frozenset({Change.RESTART}),
    FailureKind.CRASHED: frozenset({Change.RESTART}),
    FailureKind.WRONG_FRAME_COUNT: frozenset({Change.RESTART}),
    FailureKind.NAN: frozenset({Change.OTHER_SEED}),
    FailureKind.BLACK: frozenset({Change.OTHER_SEED}),
    FailureKind.FROZEN: frozenset({Change.OTHER_SEED}),
    FailureKind.SINK_COLLAPSE: frozenset({Change.OTHER_SEED}),
}
"""What is not here is tried again as it was: a store that was away, latents that were not there yet."""
_LATER: dict[FailureKind, frozenset[Change]] = {
    FailureKind.OUT_OF_MEMORY: frozenset({Change.SMALLER_CACHE}),
    FailureKind.SYNC: frozenset({Change.OTHER_DEVICE}),
    FailureKind.KERNEL: frozenset({Change.OTHER_DEVICE}),
    FailureKind.TIMEOUT: frozenset({Change.OTHER_DEVICE}),
    FailureKind.CRASHED: frozenset({Change.OTHER_DEVICE}),
    FailureKind.IO: frozenset({Change.RESTART}),
    FailureKind.NAN: frozenset({Change.RESTART, Change.OTHER_DEVICE}),
}
"""Besides, from the second failure of the same segment on."""


def retry(request: SegmentRequested, kind: FailureKind, failures: int) -> Retry:
    """What the next attempt at a segment is. `failures`: of this segment so far, this one included."""
    return Retry(from_frame=request.start_frame, changes=changes_after(kind, failures))


def changes_after(kind: FailureKind, failures: int) -> frozenset[Change]:
    """What the next attempt does otherwise: the worker what concerns its process and device, the director what is in the request."""
    changes = _FIRST.get(kind, frozenset())
    return changes | _LATER.get(kind, frozenset()) if failures > 1 else changes
