"""The door as an ASGI application, and the process that serves it."""

import logging
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.staticfiles import StaticFiles
from pydantic import TypeAdapter
from swagger_ui_bundle import swagger_ui_path

from infra.bus.writer import Writer
from infra.metrics.door import Door, Health
from infra.objects import Objects
from infra.settings import Settings
from infra.web.access import Access
from infra.web.api import FILES, Parts, new_router
from infra.web.counted import counted
from infra.web.links import Links
from infra.web.live import new_live_router
from infra.web.models import Problem
from infra.web.qoe import new_reports
from infra.web.view import View
from schemas.records import PromptSubmitted

_CATCH_UP_S = 30.0
_STOP_S = 2
"""Server-sent events never end by themselves."""
_HEADERS = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin"}
"""With `no-referrer` the forms of our own pages would come with the origin `null`."""
_POLICY = "default-src 'none'; frame-ancestors 'none'"
_DOCS_POLICY = (
    "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; script-src 'self' 'unsafe-inline'; "
    "frame-ancestors 'none'; base-uri 'none'"
)
"""Swagger UI is started by a line of script in its page."""
log = logging.getLogger(__name__)
Next = Callable[[Request], Awaitable[Response]]
Extend = Callable[[FastAPI, Settings, Parts], None]


def new_parts(settings: Settings, view: View, writer: Writer) -> Parts:
    """What the application works with. `settings` have every address. Raises: AccessError."""
    links = Links(secrets.token_bytes(32), FILES)
    return Parts(view=view, writer=writer, objects=Objects(settings.objects), access=Access(settings), links=links)


def new_app(parts: Parts) -> FastAPI:
    """The application."""
    app = FastAPI(
        title="Longtake", version=version("longtake"), docs_url=None, redoc_url=None, openapi_url="/v1/openapi.json"
    )
    app.include_router(new_router(parts))
    app.include_router(new_reports(parts))
    app.include_router(new_live_router(parts))
    app.mount("/docs/assets", StaticFiles(directory=swagger_ui_path))
    app.get("/docs", include_in_schema=False)(_docs)
    app.get("/healthz", include_in_schema=False)(_alive)
    app.get("/readyz", include_in_schema=False)(lambda: _ready(parts.view))
    app.exception_handler(RequestValidationError)(_invalid)
    app.middleware("http")(_harden)
    app.middleware("http")(counted)
    generated = app.openapi

    def openapi() -> dict[str, Any]:
        document = generated()
        template = "#/components/schemas/{model}"
        prompt = TypeAdapter(PromptSubmitted).json_schema(ref_template=template)
        schemas = document["components"]["schemas"]
        schemas |= prompt.pop("$defs", {}) | {"PromptSubmitted": prompt | {"additionalProperties": False}}
        return document

    app.openapi = openapi
    return app


def serve(settings: Settings, extend: Extend | None = None) -> None:
    """Serve until SIGTERM or SIGINT, with what `extend` adds; metrics at a port of their own. Raises: AccessError; BusError."""
    with Writer(settings) as writer, View(settings) as view, Door(settings, _health(view)):
        parts = new_parts(settings, view, writer)
        app = new_app(parts)
        if extend:
            extend(app, settings, parts)
        app.router.lifespan_context = _lifespan(view)
        uvicorn.run(
            app,
            host=settings.door_host,
            port=settings.door_port,
            log_level="warning",
            server_header=False,
            timeout_graceful_shutdown=_STOP_S,
        )


def _health(view: View) -> Health:
    return Health(age_s=lambda: 0.0, unhealthy=lambda: "", unready=lambda: view.problem)


def _lifespan(view: View) -> Callable[[FastAPI], Any]:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        if not view.caught_up(_CATCH_UP_S):
            log.warning("the topics are not read yet; what the door says may be old")
        yield

    return lifespan


async def _alive() -> Response:
    """The loop turns, or nobody answers."""
    return Response("ok")


def _ready(view: View) -> Response:
    return Response(view.problem or "ok", 503 if view.problem else 200)


def _docs() -> Response:
    return get_swagger_ui_html(
        openapi_url="/v1/openapi.json",
        title="Longtake",
        swagger_js_url="/docs/assets/swagger-ui-bundle.js",
        swagger_css_url="/docs/assets/swagger-ui.css",
        swagger_favicon_url="/docs/assets/favicon-32x32.png",
    )


async def _invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 (what it is registered for)
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"][1:]) or "value"
    problem = Problem(field=field, rule=first["type"], message=first["msg"])
    return Response(problem.model_dump_json(), 422, media_type="application/json")


async def _harden(request: Request, call_next: Next) -> Response:
    response = await call_next(request)
    response.headers.update(_HEADERS)
    docs = request.url.path.startswith("/docs")
    response.headers.setdefault("Content-Security-Policy", _DOCS_POLICY if docs else _POLICY)
    return response
