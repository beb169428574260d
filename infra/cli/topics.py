"""`longtake topics`: what there is to read and to write."""

from typing import Annotated

import typer

from infra.bus import clients
from infra.bus.progress import EndsQuery
from infra.bus.topics import partition_counts
from infra.cli.output import console, print_json, table
from infra.cli.reach import reach
from schemas.topics import TOPICS


def topics(ctx: typer.Context, as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False) -> None:
    """List the line's topics, their records and where they end."""
    client = clients.admin(reach(ctx, "kafka"))
    counts = partition_counts(client, [topic.name for topic in TOPICS])
    ends = EndsQuery(client, [(name, n) for name, count in counts.items() for n in range(count)]).result().stable

    def end_of(name: str) -> int:
        return sum(ends[name, n] for n in range(counts[name]))

    found = [
        {
            "topic": topic.name,
            "records": [event.__name__ for event in topic.events],
            "compacted": topic.compacted,
            "partitions": counts[topic.name],
            "end": end_of(topic.name),
        }
        for topic in TOPICS
    ]
    if as_json:
        print_json(found)
        return
    rows = [
        (
            t.name,
            ", ".join(e.__name__ for e in t.events) or "any, unchanged",
            "yes" if t.compacted else "",
            end_of(t.name),
        )
        for t in TOPICS
    ]
    console().print(table("", ("topic", "records", "compacted", "end"), rows))
