"""The page of one job, what it shows, and asking for its end or another try."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Path, Request, Response
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from infra.objects import BlobError, job_key
from infra.web.api import JobId, Parts, publish
from infra.web.console.facts import AwayError, Facts, Warehouse
from infra.web.console.pages import Pages, form, see
from infra.web.console.stills import StillError, still
from infra.web.console.timeline import timeline
from infra.web.view import Job
from schemas.records import CancelRequested, RetryRequested, Stage, VideoFormat
from streams.live.names import KIND, MASTER

_FIRST_MISSING = 2**31 - 1
_DECODERS = 2
_SEAMS = 200
"""Shown; the worst of a long video are a question on the SQL page."""


def new_job(parts: Parts, pages: Pages, warehouse: Warehouse) -> APIRouter:
    """`/jobs/{job_id}` and below."""
    routes = JobRoutes(parts, pages, warehouse)
    look, act = [Depends(pages.viewer)], [Depends(pages.operator)]
    router = APIRouter(include_in_schema=False, prefix="/jobs/{job_id}")
    router.get("", dependencies=look)(routes.job)
    router.get("/frames.json", dependencies=look)(routes.frames)
    router.get("/frames/{frame}.jpg", dependencies=look)(routes.picture)
    router.post("/cancel", dependencies=act)(routes.cancel)
    router.post("/retry", dependencies=act)(routes.retry)
    return router


class JobRoutes:
    """One method per route."""

    def __init__(self, parts: Parts, pages: Pages, warehouse: Warehouse) -> None:
        self._parts = parts
        self._pages = pages
        self._warehouse = warehouse
        self._decoders = asyncio.Semaphore(_DECODERS)

    def job(self, request: Request, job_id: JobId) -> Response:
        """All there is of a job."""
        job = self._parts.view.job(job_id)
        if job is None:
            return self._pages.page(request, "unknown.html", 404, what=f"job {job_id}")
        facts = self._warehouse.facts(job_id) if job.changed else Facts()
        frames = job.changed.frames if job.changed else 0
        stage = job.changed.stage if job.changed else None
        return self._pages.page(
            request,
            "job.html",
            job_id=job_id,
            job=job,
            facts=facts,
            time=timeline(job.prompt, facts, frames),
            seams=facts.seams[:_SEAMS],
            live=job.video is None and bool(facts.pieces) and self._is_live(job_id),
            fps=_fps(job.changed.format) if job.changed else 0.0,
            can_cancel=stage is not None and stage not in (Stage.FINISHED, Stage.FAILED, Stage.CANCELLED),
            can_retry=stage in (Stage.FAILED, Stage.CANCELLED),
        )

    def frames(self, job_id: JobId) -> Response:
        """What the chart shows, one list per column."""
        try:
            return JSONResponse(self._warehouse.frames(job_id))
        except AwayError as error:
            raise HTTPException(503, str(error)) from error

    async def picture(self, job_id: JobId, frame: Annotated[int, Path(ge=0)]) -> Response:
        """One frame of the job as JPEG."""
        async with self._decoders:
            try:
                content = await run_in_threadpool(self._still, self._known(job_id), job_id, frame)
            except StillError as error:
                raise HTTPException(404, str(error)) from error
        return Response(content, media_type="image/jpeg", headers={"Cache-Control": "private, max-age=600"})

    async def cancel(self, request: Request, job_id: JobId) -> Response:
        """Ask for its end."""
        self._known(job_id)
        await publish(self._parts, CancelRequested(job_id=job_id, reason=(await form(request)).get("reason", "")[:500]))
        return see(f"/jobs/{job_id}")

    async def retry(self, request: Request, job_id: JobId) -> Response:
        """Ask for another try, from a segment on; nothing given: from the first that is missing."""
        self._known(job_id)
        first = (await form(request)).get("from_segment", str(_FIRST_MISSING))
        if not first.isdecimal() or int(first) > _FIRST_MISSING:
            raise HTTPException(422, "from_segment is the number of a segment")
        await publish(self._parts, RetryRequested(job_id=job_id, from_segment=int(first)))
        return see(f"/jobs/{job_id}")

    def _is_live(self, job_id: str) -> bool:
        """Whether there is something to play while the job still runs."""
        try:
            return bool(self._parts.objects.read(job_key(job_id, KIND, MASTER)))
        except (BlobError, ValueError):
            return False

    def _still(self, job: Job, job_id: str, frame: int) -> bytes:
        facts = Facts() if job.video else self._warehouse.facts(job_id)
        return still(self._parts.objects, job, facts, frame)

    def _known(self, job_id: str) -> Job:
        job = self._parts.view.job(job_id)
        if job is None:
            raise HTTPException(404, f"no job {job_id}")
        return job


def _fps(form: VideoFormat) -> float:
    return form.fps_num / form.fps_den
