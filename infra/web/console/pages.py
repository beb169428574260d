"""Templates to pages, the forms that come back, and who gets to see which."""

import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qsl, quote

from fastapi import HTTPException, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from infra.web.access import Access
from infra.web.sessions import Role

ROOT = "/console"
STATIC = Path(__file__).with_name("static")
MAX_FORM_BYTES = 2 << 20
_FIELDS = 50


class Pages:
    """Renders templates for whoever asks."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._templates = Environment(
            loader=FileSystemLoader(Path(__file__).with_name("templates")),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters |= {
            "moment": moment,
            "instant": instant,
            "seconds": seconds,
            "size": size,
            "path": _path,
        }
        self._common = {"root": ROOT, "version": secrets.token_hex(4), "open": access.open}

    def page(self, request: Request, template: str, status: int = 200, **values: object) -> HTMLResponse:
        """A page. Its scripts and styles are files of ours: none stands in it."""
        common = {**self._common, "here": request.url.path, "operator": self._access.role(request) == Role.OPERATOR}
        content = self._templates.get_template(template).render(**common, **values)
        return HTMLResponse(content, status, {"Cache-Control": "no-store"})

    def away(self, request: Request, error: Exception) -> Response:
        """Instead of what cannot be had while Kafka is away."""
        if not request.url.path.startswith(ROOT):
            return JSONResponse({"detail": "Kafka is away"}, 503)
        return self.page(request, "away.html", 503, problem=str(error)[:300])

    def viewer(self, request: Request) -> None:
        """Raises: HTTPException that leads to the sign-in page."""
        if self._access.role(request) == Role.NOBODY:
            target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            raise HTTPException(303, headers={"Location": f"{ROOT}/sign-in?next={quote(target, safe='')}"})
        self._access.viewer(request)

    def operator(self, request: Request) -> None:
        """Raises: HTTPException that leads to the sign-in page, or says that this is for operators."""
        self.viewer(request)
        self._access.operator(request)


async def form(request: Request) -> Mapping[str, str]:
    """The fields of a form that was sent, without those left empty. Raises: HTTPException."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_FORM_BYTES:
            raise HTTPException(413, f"a form has at most {MAX_FORM_BYTES} bytes")
    try:
        pairs = parse_qsl(body.decode(), max_num_fields=_FIELDS)
    except ValueError as error:
        raise HTTPException(422, "not a form") from error
    return {name: value.replace("\r\n", "\n").strip() for name, value in pairs if value.strip()}


def see(path: str) -> RedirectResponse:
    """To a page, after something was done."""
    return RedirectResponse(ROOT + path, 303)


def moment(time_us: int | None) -> str:
    """`2026-11-30 19:06:08` in UTC; empty for 0."""
    return datetime.fromtimestamp(time_us / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S") if time_us else ""


def instant(time_us: int) -> str:
    """`2026-11-30 19:06:08.123` in UTC."""
    return datetime.fromtimestamp(time_us / 1e6, UTC).isoformat(" ", "milliseconds").removesuffix("+00:00")


def seconds(value: float | None) -> str:
    """`3.2 s`, `2:05 min`, `1:02:05 h`; a dash if unknown."""
    if value is None:
        return "–"  # noqa: RUF001 (a dash for people)
    if value < 60:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02} h" if hours else f"{minutes}:{rest:02} min"


def size(count: int) -> str:
    """`1.2 MB`."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def _path(text: str) -> str:
    return quote(text, safe="")
