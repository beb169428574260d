"""The transactional worker of the `jobs` table: longtake.prompts.v1, control and every answer -> the next requests, longtake.jobs.v1.

What it decides is in `decider.py` and the modules that one names; the loop is `infra/bus/table.py`. Here they only meet.
"""

import time
from collections.abc import Callable, Sequence
from itertools import chain

from infra.assets.catalogue import Catalogue
from infra.assets.known import following_catalogue
from infra.bus.clients import Member
from infra.bus.process import stop_on_signals
from infra.bus.table import run_table
from infra.settings import Settings
from infra.storage.disk import DiskWatch
from schemas.engines import add_installed
from schemas.records import Instruction, Lint, Shot
from streams.decider import INPUTS, JobDecider
from streams.jobs import Rules
from streams.prompts.instruct import PARSE_DEADLINE_S, parse_with_deadline
from streams.prompts.vocabulary import vocabulary
from streams.queueing import Limits
from streams.releases.known import following

_TURN_S = 0.2


def run(settings: Settings, slot: int) -> None:
    """Decide until SIGTERM or SIGINT. Raises: BusError: start the process again."""
    stop = stop_on_signals()
    add_installed()
    vocabulary()  # reads YAML for longer than a parse may take: not within the first prompt's deadline
    rules = Rules(segment_attempts=settings.segment_attempts, stale_us=round(settings.stale_s * 1e6))
    limits = Limits(
        in_flight=settings.jobs_in_flight,
        tenant_in_flight=settings.tenant_jobs_in_flight,
        tenant_queue=settings.tenant_jobs_queued,
        weights=settings.tenant_weights,
    )
    member = Member(role="director", topics=INPUTS, slot=slot)
    assets = Catalogue()
    with following(settings) as releases, following_catalogue(settings, assets) as assets_read:
        for read in (releases.read, assets_read):  # a job must not be planned past what was there before it
            while not read.wait(_TURN_S):
                if stop.is_set():
                    return
        decider = JobDecider(rules=rules, instruct=instruct_shots, limits=limits, releases=releases.all, assets=assets)
        run_table(settings, member, decider, stop, DiskWatch(settings).has_room)


def instruct_shots(
    shots: Sequence[Shot], negative: Sequence[str], clock: Callable[[], float] = time.monotonic
) -> tuple[tuple[Instruction, ...], tuple[Lint, ...]]:
    """All shots parsed within one deadline: what is left of it goes to the next shot."""
    end = clock() + PARSE_DEADLINE_S
    parsed = [
        parse_with_deadline(
            shot.prompt,
            shot.camera,
            clock=clock,
            deadline_s=max(0.0, end - clock()),
            shot=index,
            negative=negative,
        )
        for index, shot in enumerate(shots)
    ]
    return tuple(instruction for instruction, _ in parsed), tuple(chain.from_iterable(lints for _, lints in parsed))
