"""What the door is asked, in numbers: by route, never by address."""

import time
from collections.abc import Awaitable, Callable

from fastapi import Request, Response
from prometheus_client import Histogram

REQUEST_S = Histogram(
    "longtake_http_request_seconds",
    "From a request to the head of its answer.",
    ("method", "route", "status"),
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


async def counted(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
    """A middleware. What no route answers is one route."""
    begun_s = time.monotonic()
    response = await call_next(request)
    route = getattr(request.scope.get("route"), "path", "none")
    method = request.method if request.method in _METHODS else "other"
    REQUEST_S.labels(method, route, str(response.status_code)).observe(time.monotonic() - begun_s)
    return response
