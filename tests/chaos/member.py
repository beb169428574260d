"""`python -m tests.chaos.member ROLE --slot N`: a worker or a director of `tests.bus.line`, as a process of a stack."""

import argparse
from dataclasses import replace

from infra import logs
from infra.bus.process import run_process, stop_on_signals
from infra.bus.table import run_table
from infra.bus.work import ThreadWork
from infra.bus.worker import run_worker
from infra.settings import Settings
from tests.bus.line import TABLE, WORKER, Counter, reply


def main() -> None:
    """Never returns."""
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=[WORKER.role, TABLE.role])
    parser.add_argument("--slot", type=int, default=0)
    arguments = parser.parse_args()
    settings = Settings()
    logs.set_up()
    logs.logging.getLogger("infra.bus.worker").setLevel(logs.logging.WARNING)  # a line for each record is too many
    stop = stop_on_signals()
    if arguments.role == WORKER.role:
        member = replace(WORKER, slot=arguments.slot)
        run_process(lambda: run_worker(settings, member, ThreadWork(reply, settings.slots), stop))
    member = replace(TABLE, slot=arguments.slot)
    run_process(lambda: run_table(settings, member, Counter(), stop))


if __name__ == "__main__":
    main()
