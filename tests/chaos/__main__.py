"""`python -m tests.chaos --seed N`: the full form. Prints a table, writes out/chaos.json; ends with 1 if anything is lost, doubled, wrong or late."""

import argparse
import json
import logging
import sys
import tempfile
from pathlib import Path

from tests.chaos.bus import run_bus
from tests.chaos.line import Form, run_line
from tests.chaos.outcome import Outcome, summary, table, too_slow
from tests.chaos.schedule import full

OUT = Path("out") / "chaos.json"
SESSION_S = 20.0


def main() -> int:
    """Run both levels. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--records", type=int, default=100_000)
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.ERROR)
    outcomes: list[Outcome] = []
    folder = Path(tempfile.mkdtemp(prefix="longtake-chaos-"))
    print(f"seed {arguments.seed}; logs in {folder}", flush=True)
    if arguments.records:
        outcomes.append(run_bus(arguments.seed, arguments.records, SESSION_S, full, folder / "bus"))
    if arguments.jobs:
        outcomes.append(run_line(arguments.seed, Form(jobs=arguments.jobs, session_s=SESSION_S), full, folder / "line"))
    for outcome in outcomes:
        print(table([outcome]))
    results = summary(arguments.seed, outcomes)
    late = too_slow(outcomes)
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(results, indent=1) + "\n")
    print("\n".join([*results["problems"], *late]))
    print(f"written to {OUT}")
    return 0 if all(outcome.clean for outcome in outcomes) and not late else 1


if __name__ == "__main__":
    sys.exit(main())
