"""The console: pages for people on top of the door. Rendered here, kept up to date by the door's server-sent events."""

from collections.abc import Awaitable, Callable

from confluent_kafka import KafkaException
from fastapi import FastAPI, Request, Response
from fastapi.responses import RedirectResponse
from fastapi.staticfiles import StaticFiles

from infra.bus.errors import BusError
from infra.settings import Settings
from infra.web.api import Parts
from infra.web.console.events import new_events
from infra.web.console.facts import Warehouse
from infra.web.console.fleet import new_fleet
from infra.web.console.job import new_job
from infra.web.console.jobs import new_jobs
from infra.web.console.letters import new_letters
from infra.web.console.pages import ROOT, STATIC, Pages
from infra.web.console.questions import new_questions
from infra.web.console.releases import new_releases
from infra.web.console.signin import new_signin

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; media-src blob: {media}; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
Next = Callable[[Request], Awaitable[Response]]


def add_console(app: FastAPI, settings: Settings, parts: Parts) -> None:
    """Put the console's pages on a door. `settings` have every address."""
    pages, warehouse = Pages(parts.access), Warehouse(settings)
    app.mount(f"{ROOT}/static", StaticFiles(directory=STATIC))
    for router in (
        new_jobs(parts, pages),
        new_events(parts.view, pages, settings),
        new_job(parts, pages, warehouse),
        new_letters(parts, pages, settings),
        new_questions(pages, warehouse),
        new_releases(parts, pages, settings, warehouse),
        new_fleet(pages, settings),
        new_signin(parts.access, pages),
    ):
        app.include_router(router, prefix=ROOT)
    for error in (KafkaException, BusError):
        app.exception_handler(error)(pages.away)
    for path in ("/", ROOT):
        app.get(path, include_in_schema=False)(_home)
    # A store that is no folder links to itself, under names that only it knows.
    policy = _POLICY.format(media="'self'" if settings.objects.startswith("file:") else "'self' https: http:")

    async def harden(request: Request, call_next: Next) -> Response:
        response = await call_next(request)
        if request.url.path.startswith(ROOT):
            response.headers["Content-Security-Policy"] = policy
        return response

    app.middleware("http")(harden)


def _home() -> Response:
    return RedirectResponse(f"{ROOT}/jobs")
