"""`longtake insights`: the derived streams, computed again."""

import time
from typing import Annotated

import typer

from infra.bus import clients
from infra.bus.groups import GroupOffsets
from infra.bus.progress import EndsQuery, Offsets
from infra.bus.topics import partition_counts
from infra.cli.errors import CliError, Exit
from infra.cli.output import say
from infra.cli.reach import reach
from infra.settings import Settings
from streams.insights.facts import SOURCES
from streams.insights.generations import Generations, group_of

app = typer.Typer(help="The derived streams: progress, baselines, throughput.", no_args_is_help=True)
_POLL_S = 0.5
_ANSWER_S = 10.0


@app.command()
def rebuild(
    ctx: typer.Context,
    wait: Annotated[float, typer.Option(help="Seconds until it has to have caught up; 0: do not wait.")] = 120.0,
) -> None:
    """Compute the derived streams again from all that the topics hold. The line goes on meanwhile."""
    settings = reach(ctx, "kafka")
    generations = Generations(settings)
    generation = generations.begin()
    say(f"began generation {generation}: the insights worker starts again and replays")
    if not wait:
        return
    _wait_until_read(settings, group_of(generation), SOURCES, wait)
    generations.drop_before(generation)
    say("done")


def _wait_until_read(settings: Settings, group: str, topics: tuple[str, ...], wait_s: float) -> None:
    client = clients.admin(settings)
    places = [(name, n) for name, count in partition_counts(client, topics).items() for n in range(count)]
    ends = EndsQuery(client, places).result().stable
    deadline = time.monotonic() + wait_s
    with GroupOffsets(settings) as asked:
        while (left := _left(ends, asked.of(group, places, _ANSWER_S))) > 0:
            if time.monotonic() > deadline:
                raise CliError(
                    Exit.FAILED, f"{left} records are not read yet: does the worker run? See 'longtake status'"
                )
            time.sleep(_POLL_S)


def _left(ends: Offsets, committed: Offsets) -> int:
    """A transaction's marker at the end of a partition is no record: 1 left there is none."""
    return sum(max(end - committed.get(place, 0) - 1, 0) for place, end in ends.items())
