"""longtake.qoe.v1: how videos play, as players say. A sample player page, and the link that players report to.

Who reports needs no password but the link, which names one job and was signed here: a report can be made up by whoever was given
the video, and only about that one. A job counts once in a release's gates, however many plays are reported.
"""

import html
import secrets
import time
from pathlib import Path as File
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request, Response
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.concurrency import run_in_threadpool

from infra.web.api import Parts
from infra.web.links import Links
from infra.web.models import Failure
from schemas.headers import trace_root
from schemas.records import PlayReported, VideoFinished

REPORTS = "/v1/qoe"
MAX_BYTES = 4096
_GOOD_S = 24 * 3600
_DAY_MS = 24 * 3600 * 1000
_SCRIPT = File(__file__).with_name("player.js")
_POLICY = "default-src 'none'; script-src 'self'; connect-src 'self'; media-src {media}; frame-ancestors 'none'; base-uri 'none'"
_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{job}</title>
<video id="video" controls playsinline preload="none" width="960" data-report="{report}" src="{video}"></video>
<p id="said"></p>
<script src="/v1/player.js"></script>
"""
Said = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9._-]+$")]
Count = Annotated[int, Field(ge=0, le=1_000_000)]
Time = Annotated[int, Field(ge=0, le=_DAY_MS)]
JobId = Annotated[str, Path(max_length=200)]


class PlayReport(BaseModel):
    """One play so far, in absolute values: send it again when it has changed."""

    model_config = ConfigDict(extra="forbid", strict=True)
    play: Said
    """Names the play: a random id."""
    first_frame_ms: Annotated[int, Field(ge=-1, le=_DAY_MS)]
    """-1: no picture so far."""
    played_ms: Time = 0
    stalls: Count = 0
    stalled_ms: Time = 0
    decode_errors: Count = 0
    dropped_frames: Count = 0
    player: Said


def new_reports(parts: Parts) -> APIRouter:
    """The routes of players and their reports."""
    routes = Reports(parts, Links(secrets.token_bytes(32), REPORTS))
    router = APIRouter()
    router.get("/v1/player.js", include_in_schema=False)(_script)
    missing: dict[int | str, dict[str, Any]] = {status: {"model": Failure} for status in (401, 403, 404)}
    router.get(
        "/v1/jobs/{job_id}/play",
        response_class=HTMLResponse,
        dependencies=[Depends(parts.access.viewer)],
        responses=missing,
    )(routes.play)
    body = {"required": True, "content": {"application/json": {"schema": PlayReport.model_json_schema()}}}
    refusals = {status: {"model": Failure} for status in (403, 404, 413, 422)}
    router.post(
        REPORTS + "/{job_id}",
        status_code=202,
        response_class=Response,
        responses={**refusals},
        openapi_extra={"requestBody": body},
    )(routes.report)
    return router


class Reports:
    """One method per route."""

    def __init__(self, parts: Parts, links: Links) -> None:
        self._view = parts.view
        self._writer = parts.writer
        self._objects = parts.objects
        self._files = parts.links
        self._links = links

    async def play(self, job_id: JobId) -> Response:
        """A page that plays the finished video and reports how it went."""
        video = self._video(job_id)
        if video is None:
            return JSONResponse({"detail": f"no finished video of job {job_id}"}, 404)
        local = video.video.uri.startswith("file:")
        if local:
            source = self._files.make(self._objects.key_of(video.video), _GOOD_S)
        else:
            source = await run_in_threadpool(self._objects.link, video.video, _GOOD_S)
        report = self._links.make(job_id, _GOOD_S)
        page = _PAGE.format(job=html.escape(job_id), report=html.escape(report), video=html.escape(source))
        policy = _POLICY.format(media="'self'" if local else "https: http:")
        return HTMLResponse(page, headers={"Content-Security-Policy": policy, "Cache-Control": "no-store"})

    async def report(self, request: Request, job_id: JobId, until: int, signature: str) -> Response:
        """Take a player's report to the page's link."""
        if not self._links.good(job_id, until, signature):
            return JSONResponse({"detail": "the link is over, or was not made here"}, 403)
        if self._video(job_id) is None:
            return JSONResponse({"detail": f"no finished video of job {job_id}"}, 404)
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_BYTES:
                return JSONResponse({"detail": f"a report has at most {MAX_BYTES} bytes"}, 413)
        try:
            said = PlayReport.model_validate_json(body)
        except ValidationError as error:
            first = error.errors()[0]
            return JSONResponse({"detail": f"{'.'.join(map(str, first['loc'])) or 'value'}: {first['msg']}"}, 422)
        event = PlayReported(job_id=job_id, **said.model_dump(), reported_us=time.time_ns() // 1000)
        await run_in_threadpool(self._writer.publish, [event], trace_root(job_id), source="longtake/door")
        return Response(status_code=202)

    def _video(self, job_id: str) -> VideoFinished | None:
        job = self._view.job(job_id)
        return job.video if job else None


def _script() -> Response:
    return FileResponse(_SCRIPT, media_type="text/javascript")
