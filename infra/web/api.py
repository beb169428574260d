"""The door for programs: longtake.prompts.v1 and control.v1 by HTTP, and what the line says of its jobs.

It only produces to Kafka and reads from Kafka and the store, so it can be many or none.
"""

import mimetypes
import secrets
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from fastapi.responses import FileResponse, JSONResponse, RedirectResponse, StreamingResponse
from starlette.concurrency import run_in_threadpool

from infra.bus.writer import Writer
from infra.objects import BlobError, Objects
from infra.web.access import Access
from infra.web.links import Links
from infra.web.models import Failure, FromSegment, JobList, JobPage, Problem, Reason, Sent, Submitted
from infra.web.view import Job, View
from schemas.codec import content_hash, decode_prompt
from schemas.errors import BadInputError
from schemas.headers import trace_id, trace_root
from schemas.records import CancelRequested, PromptSubmitted, RetryRequested, Stage
from schemas.topics import Event
from streams.validation import check_job_id, check_prompt

FILES = "/v1/files"
MAX_BODY_BYTES = 1 << 20
_LINK_S = 3600
_SOURCE = "longtake/door"
Responses = dict[int | str, dict[str, Any]]
JobId = Annotated[str, Path(max_length=200, description="As it was submitted.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the routes work with."""

    view: View
    writer: Writer
    objects: Objects
    access: Access
    links: Links


def new_router(parts: Parts) -> APIRouter:
    """All routes of `/v1`."""
    refusals: Responses = {401: {"model": Failure}, 403: {"model": Failure}}
    missing: Responses = {404: {"model": Failure}}
    look = APIRouter(prefix="/v1", dependencies=[Depends(parts.access.viewer)], responses=refusals)
    act = APIRouter(prefix="/v1", dependencies=[Depends(parts.access.operator)], responses=refusals)
    routes = Routes(parts)
    taken: Responses = {
        200: {"model": Submitted},
        409: {"model": Problem},
        413: {"model": Failure},
        422: {"model": Problem},
    }
    act.post("/jobs", status_code=202, response_model=Submitted, responses=taken, openapi_extra=_prompt_body())(
        routes.submit
    )
    act.post("/jobs/{job_id}/cancel", status_code=202, response_model=Sent, responses=missing)(routes.cancel)
    act.post("/jobs/{job_id}/retry", status_code=202, response_model=Sent, responses=missing)(routes.retry)
    look.get("/jobs", response_model=JobList)(routes.jobs)
    look.get("/jobs/{job_id}", response_model=JobPage, responses=missing)(routes.job)
    stream: Responses = {200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}}
    look.get("/jobs/{job_id}/events", response_class=StreamingResponse, responses=stream | missing)(routes.job_events)
    look.get("/events", response_class=StreamingResponse, responses=stream)(routes.events)
    moved: Responses = {307: {"description": "A signed link, good for an hour."}}
    look.get("/jobs/{job_id}/video", status_code=307, response_class=Response, responses=moved | missing)(routes.video)
    router = APIRouter()
    router.include_router(look)
    router.include_router(act)
    router.get(FILES + "/{key:path}", include_in_schema=False)(routes.file)
    return router


class Routes:
    """One method per route."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def submit(self, request: Request) -> Response:
        """Put a prompt on its topic. The same id with the same content any number of times is one job."""
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_BODY_BYTES:
                return _failed(413, f"a prompt has at most {MAX_BODY_BYTES} bytes")
        try:
            prompt = decode_prompt(body) if body[:1] == b"{" else None
            if not isinstance(prompt, PromptSubmitted):
                raise BadInputError(field="value", rule="type", message="a prompt is a JSON object")
            check_prompt(prompt)
        except BadInputError as error:
            return _problem(422, error)
        digest = content_hash(prompt)
        known = self._parts.view.job(prompt.job_id)
        if known and known.changed:
            if known.changed.content_hash == digest:
                return _said(200, Submitted(job_id=prompt.job_id, content_hash=digest, trace_id="", known=True))
            message = "a job of this id and other content was accepted before"
            return _problem(409, BadInputError(field="job_id", rule="content", message=message))
        trace = await publish(self._parts, prompt)
        return _said(202, Submitted(job_id=prompt.job_id, content_hash=digest, trace_id=trace, known=False))

    async def cancel(self, job_id: JobId, why: Reason) -> Response:
        """Ask for an end of the job. Without effect if it has ended."""
        return await self._ask(job_id, CancelRequested(job_id=job_id, reason=why.reason))

    async def retry(self, job_id: JobId, where: FromSegment) -> Response:
        """Ask for a failed or cancelled job to go on."""
        return await self._ask(job_id, RetryRequested(job_id=job_id, from_segment=where.from_segment))

    async def jobs(
        self,
        stage: Annotated[Stage | None, Query(description="Only jobs in this stage.")] = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
        offset: Annotated[int, Query(ge=0, le=10_000_000)] = 0,
    ) -> JobList:
        """The newest jobs first."""
        found = [job for job in self._parts.view.jobs() if stage in (None, job.stage)]
        return JobList(jobs=tuple(found[offset : offset + limit]), total=len(found))

    async def job(self, job_id: JobId) -> Response:
        """All that the line has said of a job."""
        job = self._parts.view.job(job_id)
        if job is None:
            return _unknown(job_id)
        return _said(200, JobPage(job=job.changed, progress=job.progress, refused=job.refused, video=job.video))

    async def job_events(self, job_id: JobId, last_event_id: Annotated[int | None, Header(ge=0)] = None) -> Response:
        """The job's events as server-sent events: where it stands now, then what comes."""
        job = self._parts.view.job(job_id)
        return _unknown(job_id) if job is None else _stream(self._parts.view, job_id, job, last_event_id)

    async def events(self, last_event_id: Annotated[int | None, Header(ge=0)] = None) -> Response:
        """The events of all jobs, as they come."""
        return _stream(self._parts.view, "", None, last_event_id)

    async def video(self, job_id: JobId) -> Response:
        """Where the finished video can be had, for an hour, by whoever has the link."""
        job = self._parts.view.job(job_id)
        if job is None or job.video is None:
            return _failed(404, f"no finished video of job {job_id}")
        blob = job.video.video
        key = self._parts.objects.key_of(blob)
        if blob.uri.startswith("file:"):
            return RedirectResponse(self._parts.links.make(key, _LINK_S))
        return RedirectResponse(await run_in_threadpool(self._parts.objects.link, blob, _LINK_S))

    async def file(self, key: str, until: int, signature: str) -> Response:
        """An object of a local store, for whoever has a link."""
        if not self._parts.links.good(key, until, signature):
            return _failed(403, "the link is over, or was not made here")
        try:
            path = self._parts.objects.local_path(key)
        except BlobError as error:
            return _failed(404, str(error))
        return FileResponse(path, media_type=mimetypes.guess_type(path.name)[0] or "application/octet-stream")

    async def _ask(self, job_id: str, event: CancelRequested | RetryRequested) -> Response:
        try:
            check_job_id(job_id)
        except BadInputError:
            return _unknown(job_id)
        if self._parts.view.job(job_id) is None:
            return _unknown(job_id)
        return _said(202, Sent(job_id=job_id, trace_id=await publish(self._parts, event)))


async def publish(parts: Parts, event: Event) -> str:
    """Put an event on its topic, as the beginning of a trace; the trace's id."""
    traceparent = trace_root(secrets.token_hex(16))
    await run_in_threadpool(parts.writer.publish, [event], traceparent, source=_SOURCE)
    return trace_id(traceparent)


def _stream(view: View, job_id: str, job: Job | None, after: int | None) -> StreamingResponse:
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_lines(view, job_id, job, after), media_type="text/event-stream", headers=headers)


async def _lines(view: View, job_id: str, job: Job | None, after: int | None) -> AsyncGenerator[str]:
    """Server-sent events: https://html.spec.whatwg.org/multipage/server-sent-events.html."""
    if job and after is None:
        page = JobPage(job=job.changed, progress=job.progress, refused=job.refused, video=job.video)
        yield f"event: JobPage\ndata: {page.model_dump_json()}\n\n"
    async for told in view.follow(job_id, after):
        yield f"id: {told.number}\nevent: {told.name}\ndata: {told.json}\n\n" if told else ": still here\n\n"


def _said(status: int, answer: Submitted | Sent | JobPage) -> Response:
    return Response(answer.model_dump_json(), status, media_type="application/json")


def _problem(status: int, error: BadInputError) -> Response:
    problem = Problem(field=error.field, rule=error.rule, message=error.message)
    return Response(problem.model_dump_json(), status, media_type="application/json")


def _failed(status: int, detail: str) -> Response:
    return JSONResponse({"detail": detail}, status)


def _unknown(job_id: str) -> Response:
    return _failed(404, f"no job {job_id}")


def _prompt_body() -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/PromptSubmitted"}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}
