"""`make detectors`: plants faults, leaves as many clips clean, and writes to `out/detectors.json` what the line's checks found.

Two targets: at least 99.5 % of the planted are found where they are, at most 0.5 % of the clean are called faulty. Clips follow from
the seed alone.
"""

import argparse
import json
import os
import tempfile
import zlib
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.detectors import coded, hdr, long, pieces, sound
from benchmarks.detectors.case import Case, Result
from infra.inserts import Database
from infra.objects import Objects
from infra.settings import Settings
from qc_consumers.check import Bench

OUT = Path("out") / "detectors.json"
FOUND, FALSE = 0.995, 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one clip."""

    case: str
    gate: str
    clip: int
    found: bool
    false: tuple[str, ...]
    looked: tuple[str, ...]


def main() -> None:
    """Run the named cases, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.detectors")
    parser.add_argument("names", nargs="*", help="cases; none: all")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    jobs = [
        (index, clip, arguments.seed)
        for index, case in enumerate(_cases())
        for clip in range(case.clips)
        if not arguments.names or case.name in arguments.names
    ]
    with ProcessPoolExecutor(max_workers=min(os.cpu_count() or 1, 8)) as pool:
        outcomes = list(pool.map(_outcome, jobs, chunksize=4))
    report = summary(outcomes)
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(report, indent=1) + "\n")
    _print(outcomes, report)
    good = report["found"] >= FOUND * report["planted"] and report["false"] <= FALSE * report["clean"]
    raise SystemExit(0 if good else 1)


def summary(outcomes: Sequence[Outcome]) -> dict[str, object]:
    """`planted, found, clean, false`, and the same per detector. A clean clip counts for every detector that looked at it."""
    planted = [outcome for outcome in outcomes if outcome.gate]
    clean = [outcome for outcome in outcomes if not outcome.gate]
    looked = Counter(gate for outcome in clean for gate in outcome.looked)
    false = Counter(gate for outcome in clean for gate in outcome.false)
    gates = sorted({outcome.gate for outcome in planted} | set(false))
    return {
        "planted": len(planted),
        "found": sum(outcome.found for outcome in planted),
        "clean": len(clean),
        "false": sum(bool(outcome.false) for outcome in clean),
        "detectors": {
            gate: {
                "planted": sum(outcome.gate == gate for outcome in planted),
                "found": sum(outcome.found for outcome in planted if outcome.gate == gate),
                "clean": looked[gate],
                "false": false[gate],
            }
            for gate in gates
        },
    }


def _cases() -> list[Case]:
    return [*pieces.cases(), *coded.cases(), *long.cases(), *sound.cases(), *hdr.cases()]


def _outcome(job: tuple[int, int, int]) -> Outcome:
    index, clip, seed = job
    case = _cases()[index]
    rng = np.random.default_rng([seed, zlib.crc32(case.name.encode()), clip])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "scratch").mkdir()
        settings = Settings(objects=(folder / "objects").as_uri(), state=folder / "state", clickhouse="http://unused")
        bench = Bench(
            objects=Objects(settings.objects),
            database=Database(settings),
            scratch=folder / "scratch",
            worker="detectors",
            threads=1,
        )
        result: Result = case.make(rng, bench)
    return Outcome(
        case=case.name,
        gate=case.gate,
        clip=clip,
        found=result.has(case.gate),
        false=tuple(sorted(result.false_gates())),
        looked=tuple(sorted(result.looked)),
    )


def _print(outcomes: Sequence[Outcome], report: dict[str, object]) -> None:
    for outcome in outcomes:
        if outcome.gate and not outcome.found:
            print(f"missed: {outcome.case} {outcome.clip}")
        if not outcome.gate and outcome.false:
            print(f"false: {outcome.case} {outcome.clip}: {', '.join(outcome.false)}")
    print(json.dumps(report["detectors"], indent=1))
    print({key: value for key, value in report.items() if key != "detectors"}, f"written to {OUT}")


if __name__ == "__main__":
    main()
