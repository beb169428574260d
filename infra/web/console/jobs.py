"""longtake.jobs.v1 -> the list of jobs; and from a form to longtake.prompts.v1."""

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response

from infra.web.api import Parts, publish
from infra.web.console.pages import Pages, form, see
from schemas.engines import ENGINES
from schemas.errors import BadInputError
from schemas.records import PromptSubmitted, Stage
from streams.prompts.storyboard import parse_storyboard
from streams.storyboard import storyboard

ROWS = 50
_HEARD_S = 5.0
_TURN_S = 0.05
_WHOLE = ("width", "height", "seed")
_REAL = ("fps", "duration_s")


def new_jobs(parts: Parts, pages: Pages) -> APIRouter:
    """`/jobs` and `/submit`."""
    routes = Jobs(parts, pages)
    router = APIRouter(include_in_schema=False)
    router.get("/jobs", dependencies=[Depends(pages.viewer)])(routes.jobs)
    router.get("/submit", dependencies=[Depends(pages.operator)])(routes.empty)
    router.post("/submit", dependencies=[Depends(pages.operator)])(routes.submit)
    return router


class Jobs:
    """One method per route."""

    def __init__(self, parts: Parts, pages: Pages) -> None:
        self._parts = parts
        self._pages = pages

    def jobs(
        self,
        request: Request,
        stage: Annotated[Stage | None, Query()] = None,
        page: Annotated[int, Query(ge=1, le=1_000_000)] = 1,
        until: Annotated[int | None, Query(ge=0)] = None,
    ) -> Response:
        """The newest jobs first. With `until` the pages stay as they are while new jobs come: these are only counted."""
        every = self._parts.view.jobs()
        newest_us = every[0].submitted_us if every else 0
        pinned_us = newest_us if until is None else until
        fitting = [job for job in every if stage in (None, job.stage)]
        shown = [job for job in fitting if job.submitted_us <= pinned_us]
        return self._pages.page(
            request,
            "jobs.html",
            jobs=shown[(page - 1) * ROWS : page * ROWS],
            counts=Counter(job.stage for job in every),
            stages=tuple(Stage),
            stage=stage,
            number=page,
            pages=max(1, -(-len(shown) // ROWS)),
            newer=len(fitting) - len(shown),
            until=pinned_us,
            problem=self._parts.view.problem,
        )

    def empty(self, request: Request) -> Response:
        """The form. Its job id is there already: sent twice, it is one job."""
        return self._form(request, {"job_id": f"job-{secrets.token_hex(4)}"}, None)

    async def submit(self, request: Request) -> Response:
        """To the job's page, or the form again with what is wrong with it."""
        given = await form(request)
        try:
            prompt = wish(given)
            storyboard(prompt)
        except BadInputError as error:
            return self._form(request, given, error)
        await publish(self._parts, prompt)
        deadline_s = time.monotonic() + _HEARD_S
        while self._parts.view.job(prompt.job_id) is None and time.monotonic() < deadline_s:
            await asyncio.sleep(_TURN_S)
        return see(f"/jobs/{prompt.job_id}")

    def _form(self, request: Request, given: Mapping[str, str], error: BadInputError | None) -> Response:
        status = 422 if error else 200
        return self._pages.page(request, "submit.html", status, given=given, error=error, engines=sorted(ENGINES))


def wish(given: Mapping[str, str]) -> PromptSubmitted:
    """The prompt in a form's fields; a storyboard says all itself. Raises: BadInputError."""
    now_us, job_id = time.time_ns() // 1000, given.get("job_id", "")
    if "storyboard" in given:
        return replace(parse_storyboard(given["storyboard"], job_id), submitted_us=now_us)
    values: dict[str, Any] = {name: _number(given, name, int) for name in _WHOLE if name in given}
    values |= {name: _number(given, name, float) for name in _REAL if name in given}
    values |= {name: given[name] for name in ("engine", "text") if name in given}
    return PromptSubmitted(job_id=job_id, submitted_us=now_us, **values)


def _number(given: Mapping[str, str], name: str, kind: type[int] | type[float]) -> int | float:
    try:
        return kind(given[name])
    except ValueError as error:
        raise BadInputError(field=name, rule="number", message=f"{given[name]!r} is no number") from error
