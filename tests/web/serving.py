"""An application of the door behind a real socket: server-sent events never end, and a browser needs an address."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import uvicorn
from starlette.types import ASGIApp

from infra.local.ports import free_port
from tests.bus.line import eventually


@contextmanager
def served(app: ASGIApp) -> Iterator[str]:
    """Its address."""
    config = uvicorn.Config(app, host="127.0.0.1", port=free_port(), log_level="error", lifespan="off")
    server = uvicorn.Server(config)
    thread = Thread(target=server.run, daemon=True)
    thread.start()
    try:
        eventually(lambda: server.started, "the server")
        yield f"http://127.0.0.1:{config.port}"
    finally:
        server.should_exit = server.force_exit = True
        thread.join(10)
