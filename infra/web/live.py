"""A job's live streams by HTTP: playlists that grow, segments that never change, for viewers and whoever has a signed link."""

import re
from typing import Any

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool

from infra.objects import BlobError, job_key
from infra.web.api import JobId, Parts
from infra.web.models import Failure
from schemas.records import Stage

_FOLDER = "live"
_MASTER = "master.m3u8"
_LINK_S = 6 * 3600
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\.(?P<ending>m3u8|mp4|m4s)")
_TYPES = {"m3u8": "application/vnd.apple.mpegurl", "mp4": "video/mp4", "m4s": "video/iso.segment"}
_URI = re.compile(r'(?m)^(#EXT-X-MAP:URI=")?([^#"\r\n]+)')
_NEVER_CHANGES = "private, max-age=86400, immutable"
_END = "#EXT-X-ENDLIST"


def new_live_router(parts: Parts) -> APIRouter:
    """Its routes, under `/v1/jobs/{job_id}/live`."""
    router, routes = APIRouter(prefix="/v1/jobs/{job_id}/live"), LiveRoutes(parts)
    refusals: dict[int | str, dict[str, Any]] = {code: {"model": Failure} for code in (401, 403, 404)}
    moved = {307: {"description": "A signed link, good for six hours."}}
    router.get("", status_code=307, response_class=Response, responses=refusals | moved)(routes.link)
    router.get("/{name}", response_class=Response, responses=refusals)(routes.file)
    return router


class LiveRoutes:
    """One method per route."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def link(self, request: Request, job_id: JobId) -> Response:
        """Where a player that cannot sign in can play the job, from its first checked piece on."""
        self._parts.access.viewer(request)
        folder = _folder(job_id)
        await run_in_threadpool(self._read, f"{folder}/{_MASTER}")
        query = self._parts.links.make(folder, _LINK_S).partition("?")[2]
        return RedirectResponse(f"live/{_MASTER}?{query}", headers={"Cache-Control": "no-store"})

    async def file(self, request: Request, job_id: JobId, name: str, until: int = 0, signature: str = "") -> Response:
        """A playlist, header or segment. With a link's query, so are the addresses in a playlist."""
        folder, match = _folder(job_id), _NAME.fullmatch(name)
        if not signature:
            self._parts.access.viewer(request)
        elif not self._parts.links.good(folder, until, signature):
            raise HTTPException(403, "the link is over, or was not made here")
        if match is None:
            raise HTTPException(404, f"no {name} of job {job_id}")
        data = await run_in_threadpool(self._read, f"{folder}/{name}")
        ending = match["ending"]
        if ending != "m3u8":
            return Response(data, media_type=_TYPES[ending], headers={"Cache-Control": _NEVER_CHANGES})
        query = f"?until={until}&signature={signature}" if signature else ""
        text = self._closed(job_id, _URI.sub(rf"\g<1>\g<2>{query}", data.decode()))
        return Response(text, media_type=_TYPES[ending], headers={"Cache-Control": "no-store"})

    def _closed(self, job_id: str, text: str) -> str:
        """Nothing more comes of a job that failed or was cancelled, unless it is retried: only here is its playlist at its end."""
        job = self._parts.view.job(job_id)
        changed = job.changed if job else None
        over = changed is not None and changed.stage in (Stage.FAILED, Stage.CANCELLED)
        grows = "#EXT-X-PLAYLIST-TYPE:EVENT" in text and _END not in text
        return f"{text}{_END}\n" if over and grows else text

    def _read(self, key: str) -> bytes:
        """Raises: HTTPException if it is not there."""
        try:
            return self._parts.objects.read(key)
        except BlobError as error:
            raise HTTPException(404, "nothing of that name is live") from error


def _folder(job_id: str) -> str:
    """Raises: HTTPException if the id cannot be in a key."""
    try:
        return job_key(job_id, _FOLDER, _MASTER).rpartition("/")[0]
    except ValueError as error:
        raise HTTPException(404, f"no job {job_id!r}") from error
