"""Assets on a stated workload: how often a job has not to wait for one, against plain LRU caches of the same size, in the same run.

The workload: four machines with 16 partitions, four jobs at once on each, 80 % busy, 1,000 jobs. A catalogue of 1,000 files, 1.5 MB in
the mean (log-normal), asked for by Zipf's law (exponent 0.9); a job is made with four of them and two of its own that never come back, a
narration and its subtitles. Videos have 4, 12, 30 or 120 s and are generated in real time; all assets of a job are asked for when it
is assembled. A cache holds a tenth of the catalogue. The store gives 10 MB/s to a machine and 50 ms of delay for each file. Every
five minutes a machine is away for one, and its jobs go on at the next.

Time is simulated (`assets_line.py`); what is measured is the product's own code on real files of 1/256 of their size. An asset that is
still on its way when a job asks is no hit. The peer takes no time at all and gets the same requests in the same order.
"""

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import xxhash

from benchmarks.assets_line import Film, Line
from infra.assets.placement import keepers
from schemas.records import AssetRef, Blob

_MACHINES, _AT_ONCE = 4, 4
_JOBS, _FILES, _SHARED, _EXPONENT = 1000, 1000, 4, 0.9
_LENGTHS_S, _SHARES = (4, 12, 30, 120), (0.25, 0.4, 0.25, 0.1)
_BUSY = 0.8
_MEAN_BYTES, _NARRATION_BYTES, _SUBTITLES_BYTES = 1_500_000, 1_200_000, 5_000
_CACHE_SHARE = 0.1
_NODES, _PLACED = 8, 20_000


def measure() -> dict[str, float]:
    """Hit rates, bytes from the store over the peer's, and the share of contents that move when a machine joins or leaves."""
    budget_bytes = round(_CACHE_SHARE * _FILES * _MEAN_BYTES)
    films = list(_workload())
    with tempfile.TemporaryDirectory(prefix="longtake-assets-") as folder:
        names = [f"m{n}" for n in range(_MACHINES)]
        placed = Line(Path(folder) / "placed", budget_bytes, dict.fromkeys(names, "")).run(films)
        alone = Line(Path(folder) / "alone", budget_bytes, {}).run(films)
    return {
        "asset_hit_rate": placed.hits / placed.asked,
        "asset_unplaced_hit_rate": alone.hits / alone.asked,
        "asset_lru_hit_rate": placed.lru_hits / placed.asked,
        "asset_misses_ratio": (placed.asked - placed.hits) / (placed.asked - placed.lru_hits),
        "asset_wait_ms_per_job": placed.wait_s / len(films) * 1e3,
        "asset_lru_wait_ms_per_job": placed.lru_wait_s / len(films) * 1e3,
        "asset_store_bytes_ratio": placed.store_bytes / placed.lru_bytes,
        "asset_unplaced_store_bytes_ratio": alone.store_bytes / alone.lru_bytes,
        **_moves(),
    }


def _workload(seed: int = 11) -> Iterator[Film]:
    random = np.random.default_rng(seed)
    drawn = random.lognormal(0, 0.8, _FILES)
    sizes = (drawn / drawn.mean() * _MEAN_BYTES).astype(int)
    weights = 1 / np.arange(1, _FILES + 1) ** _EXPONENT
    per_s = _BUSY * _MACHINES * _AT_ONCE / float(np.dot(_LENGTHS_S, _SHARES))
    now_s = 0.0
    for number in range(_JOBS):
        now_s += random.exponential(1 / per_s)
        shared = random.choice(_FILES, _SHARED, replace=False, p=weights / weights.sum())
        own = ((f"narration-{number}", _NARRATION_BYTES), (f"words-{number}", _SUBTITLES_BYTES))
        yield Film(
            job_id=f"job-{number}",
            arrives_s=now_s,
            length_s=float(random.choice(_LENGTHS_S, p=_SHARES)),
            assets=(*((f"file-{n}", int(sizes[n])) for n in shared), *own),
        )


def _moves() -> dict[str, float]:
    """Of contents, those whose machine changes when an eighth becomes a ninth, and back; beside hash modulo number of machines."""
    refs = [_ref(n) for n in range(_PLACED)]
    before, after = ({f"m{n}": "" for n in range(count)} for count in (_NODES, _NODES + 1))
    fair = 1 / (_NODES + 1)
    moved = np.mean([keepers(ref, before, 1) != keepers(ref, after, 1) for ref in refs])
    hashes = [xxhash.xxh64_intdigest(ref.content.digest.encode()) for ref in refs]
    modulo = np.mean([h % _NODES != h % (_NODES + 1) for h in hashes])
    return {
        "asset_moved_ratio": float(moved) / fair,
        "asset_moved_modulo_ratio": float(modulo) / fair,
        "asset_share_skew": _skew(refs, after),
    }


def _skew(refs: list[AssetRef], nodes: Mapping[str, str]) -> float:
    """The largest share of contents over the fair one."""
    kept = [node for ref in refs for node in keepers(ref, nodes)]
    return max(kept.count(node) for node in nodes) * len(nodes) / len(kept)


def _ref(number: int) -> AssetRef:
    digest = f"sha256:{number:064x}"
    blob = Blob(uri="file:///store/x", digest=digest, size_bytes=1, media_type="audio/wav")
    return AssetRef(name=f"file-{number}", version="1", region="", content=blob)
