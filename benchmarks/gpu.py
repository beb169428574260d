"""`benchmarks/gpu.sh`: each part in a process of its own with its time; what fails says so in the JSON and stops no other part."""

import argparse
import json
import multiprocessing
import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from typing import TypeAlias

Figures: TypeAlias = Mapping[str, float | int | str]
Part: TypeAlias = Callable[..., Figures]
"""Takes `tiny` by name."""
TOTAL_S = 460.0
"""All parts together; a part that has no time left is not begun."""
BUDGETS_S: Mapping[str, float] = {
    "card": 30,
    "parity": 60,
    "first_frame": 60,
    "denoise": 90,
    "end_to_end": 90,
    "length": 90,
    "storage": 90,
    "ledger": 60,
    "startup": 120,
    "compile": 150,
}
"""In the order in which they run, the most telling first."""


def main() -> int:
    """Run the parts and print one JSON object. Exit code 1 if one of them failed."""
    parser = argparse.ArgumentParser(prog="benchmarks/gpu.sh", description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"which of {', '.join(BUDGETS_S)}; none: all")
    parser.add_argument("--tiny", action="store_true", help="the tiny configuration, as without a card")
    said = parser.parse_args()
    if unknown := set(said.parts) - BUDGETS_S.keys():
        parser.error(f"no part {', '.join(sorted(unknown))}")
    # Asks NVML whether there is a card: the driver itself does not survive a fork.
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    from benchmarks.gpu_parts import PARTS  # torch, seconds: not for --help

    found: dict[str, float | int | str] = {}
    errors: dict[str, str] = {}
    begun_s = time.monotonic()
    for name in said.parts or BUDGETS_S:
        left_s = min(BUDGETS_S[name], TOTAL_S - (time.monotonic() - begun_s))
        part_s = time.monotonic()
        try:
            found |= guarded(PARTS[name], left_s, tiny=said.tiny)
        except (PartError, OSError) as error:
            errors[name] = str(error)
        print(f"{name}: {time.monotonic() - part_s:.1f} s {errors.get(name, '')}", file=sys.stderr, flush=True)
    print(json.dumps({**found, "seconds": round(time.monotonic() - begun_s, 1), "errors": errors}, indent=1))
    return 1 if errors else 0


class PartError(Exception):
    """A part raised, ended or took too long."""


def guarded(part: Part, limit_s: float, *, tiny: bool) -> Figures:
    """One part in a fork of this process, which has imported everything and touched no device. Raises: PartError."""
    if limit_s <= 0:
        raise PartError("no time left")
    ours, theirs = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=_run, args=(part, tiny, theirs))
    process.start()
    theirs.close()
    try:
        if not ours.poll(limit_s):
            raise PartError(f"not done in {limit_s:.0f} s")
        figures, error = json.loads(ours.recv_bytes())
    except EOFError as ended:
        process.join()
        raise PartError(f"the process ended with {process.exitcode}") from ended
    finally:
        process.kill()
        process.join()
    if error:
        raise PartError(error)
    return figures


def _run(part: Part, tiny: bool, answer: Connection) -> None:
    try:
        figures = part(tiny=tiny)
    except Exception as error:  # noqa: BLE001 (whatever goes wrong in a part is its result)
        traceback.print_exc()
        answer.send_bytes(json.dumps([{}, f"{type(error).__name__}: {error}"[:500]]).encode())
    else:
        answer.send_bytes(json.dumps([dict(figures), ""]).encode())


if __name__ == "__main__":
    raise SystemExit(main())
