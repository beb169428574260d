"""Who is at work: the processes of the local stack, and the groups of the broker, wherever their members run."""

from dataclasses import dataclass

from confluent_kafka import KafkaException
from fastapi import APIRouter, Depends, Request, Response

from infra.bus import clients
from infra.bus.groups import GroupOffsets
from infra.local.services import read_services
from infra.metrics.outside import lags_of
from infra.settings import Settings
from infra.web.console.pages import Pages

_ANSWER_S = 5.0
_OURS = "longtake."


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One consumer of a group."""

    name: str
    host: str
    partitions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A role of the line, as the broker sees it."""

    name: str
    state: str
    members: tuple[Member, ...]
    lag: int
    """Committed records that it has not committed the outcome of: what waits and what is in hand."""


def groups(settings: Settings) -> list[Group]:
    """The line's groups. Raises: KafkaException; TimeoutError."""
    admin = clients.admin(settings)
    listed = admin.list_consumer_groups(request_timeout=_ANSWER_S).result().valid
    names = sorted(group.group_id for group in listed if group.group_id.startswith(_OURS))
    if not names:
        return []
    with GroupOffsets(settings) as asked:
        lags = lags_of(admin, asked, names)
    told = [future.result() for future in admin.describe_consumer_groups(names, request_timeout=_ANSWER_S).values()]
    return [
        Group(
            name=group.group_id,
            state=group.state.name.lower().replace("_", " "),
            members=tuple(
                Member(
                    name=member.group_instance_id or member.client_id,
                    host=member.host.lstrip("/"),
                    partitions=len(member.assignment.topic_partitions) if member.assignment else 0,
                )
                for member in group.members
            ),
            lag=sum(lags[group.group_id].values()),
        )
        for group in told
    ]


def new_fleet(pages: Pages, settings: Settings) -> APIRouter:
    """`/fleet`."""
    router = APIRouter(include_in_schema=False, dependencies=[Depends(pages.viewer)])

    @router.get("/fleet")
    def fleet(request: Request) -> Response:  # pyright: ignore[reportUnusedFunction] (a route)
        services = read_services(settings.state)
        try:
            found, problem = groups(settings), ""
        except KafkaException as error:
            found, problem = [], f"Kafka: {error.args[0].str()}"
        except TimeoutError:
            found, problem = [], "Kafka does not answer"
        processes = services.processes if services else ()
        return pages.page(request, "fleet.html", processes=processes, groups=found, problem=problem)

    return router
