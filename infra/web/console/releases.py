"""longtake.releases.v1 and what ClickHouse knows of both sides: releases, why one was rolled back, beginning and ending one."""

import time
from collections.abc import Mapping

from fastapi import APIRouter, Depends, Request, Response
from starlette.concurrency import run_in_threadpool

from infra.settings import Settings
from infra.web.api import Parts
from infra.web.console.facts import AwayError, Row, Warehouse
from infra.web.console.pages import Pages, form, see
from schemas.engines import ENGINES
from schemas.errors import BadInputError
from schemas.headers import trace_root
from schemas.records import ReleaseChanged
from streams.releases.gate import ACTIVE
from streams.releases.known import read_releases
from streams.releases.orders import Order, OrderError, begun, said_changes, stopped

_SOURCE = "longtake/door"
_MOST_CHANGES = 20


def new_releases(parts: Parts, pages: Pages, settings: Settings, warehouse: Warehouse) -> APIRouter:
    """`/releases` and below."""
    routes = ReleaseRoutes(parts, pages, settings, warehouse)
    look, act = [Depends(pages.viewer)], [Depends(pages.operator)]
    router = APIRouter(include_in_schema=False, prefix="/releases")
    router.get("", dependencies=look)(routes.releases)
    router.post("", dependencies=act)(routes.start)
    router.get("/{name}", dependencies=look)(routes.release)
    router.post("/{name}/stop", dependencies=act)(routes.stop)
    return router


class ReleaseRoutes:
    """One method per route."""

    def __init__(self, parts: Parts, pages: Pages, settings: Settings, warehouse: Warehouse) -> None:
        self._parts = parts
        self._pages = pages
        self._settings = settings
        self._warehouse = warehouse

    def releases(self, request: Request) -> Response:
        """The newest first."""
        return self._list(request, {}, "")

    async def start(self, request: Request) -> Response:
        """Begin one, or the form again with what is wrong with it."""
        given = await form(request)
        try:
            known = await run_in_threadpool(read_releases, self._settings)
            release = begun(order(given), known.all(), _now_us())
        except (BadInputError, ValueError, OrderError) as error:
            return await run_in_threadpool(self._list, request, given, str(error))
        await self._publish(release)
        return see(f"/releases/{release.name}")

    def release(self, request: Request, name: str) -> Response:
        """One: what its gates saw, both sides, and why it was rolled back."""
        return self._one(request, name, "")

    async def stop(self, request: Request, name: str) -> Response:
        """End it."""
        reason = (await form(request)).get("reason", "stopped")[:500]
        known = await run_in_threadpool(read_releases, self._settings)
        if (release := known.releases.get(name)) is not None:
            try:
                await self._publish(stopped(release, reason, _now_us()))
            except OrderError as error:
                return await run_in_threadpool(self._one, request, name, str(error))
        return see(f"/releases/{name}")

    async def _publish(self, release: ReleaseChanged) -> None:
        trace = trace_root(f"release/{release.name}")
        await run_in_threadpool(self._parts.writer.publish, [release], trace, source=_SOURCE)

    def _list(self, request: Request, given: Mapping[str, str], error: str) -> Response:
        found = sorted(read_releases(self._settings).all(), key=lambda r: r.started_us, reverse=True)
        status = 422 if error else 200
        return self._pages.page(
            request, "releases.html", status, releases=found, given=given, error=error, engines=tuple(ENGINES)
        )

    def _one(self, request: Request, name: str, error: str) -> Response:
        known = read_releases(self._settings)
        release = known.releases.get(name)
        if release is None:
            return self._pages.page(request, "unknown.html", 404, what=f"release {name}")
        arms, problem = self._arms(name)
        return self._pages.page(
            request,
            "release.html",
            422 if error else 200,
            release=release,
            cause=known.causes.get(name),
            changes=said_changes(release),
            active=release.stage in ACTIVE,
            arms=arms,
            problem=problem,
            error=error,
        )

    def _arms(self, name: str) -> tuple[list[Row], str]:
        try:
            return self._warehouse.arms(name), ""
        except AwayError as error:
            return [], str(error)


def order(given: Mapping[str, str]) -> Order:
    """What a form asks for. Raises: BadInputError."""
    numbers = {name: _number(given, name) for name in ("share", "base_rate", "effect") if name in given}
    change = tuple(line.strip() for line in given.get("change", "").splitlines() if line.strip())[:_MOST_CHANGES]
    return Order(name=given.get("name", ""), engine=given.get("engine", ""), change=change, **numbers)


def _number(given: Mapping[str, str], name: str) -> float:
    try:
        return float(given[name])
    except ValueError as error:
        raise BadInputError(field=name, rule="number", message=f"{given[name]!r:.80} is no number") from error


def _now_us() -> int:
    return time.time_ns() // 1000
