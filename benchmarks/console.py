"""The console with 10,000 jobs on a real broker, in a real Chromium: how soon there is a page, and how far it is behind Kafka."""

import statistics
import threading
from collections.abc import Generator
from contextlib import contextmanager

from playwright.sync_api import Page, expect

from infra.bus.outputs import Cause, outputs_of
from infra.bus.writer import Writer
from infra.settings import Settings
from infra.web.app import new_app, new_parts
from infra.web.console.site import add_console
from infra.web.view import View
from schemas.headers import trace_root
from tests.web.behind import behind_ms, other_stage
from tests.web.browser import chromium, opened
from tests.web.serving import served
from tests.web.test_console_pages import job, painted_ms

_JOBS = 10_000
_PAINTS = 7
_UPDATES = 40
_OTHERS_S = 0.02
"""Between changes of other jobs: the page is never left in peace."""


def measure(settings: Settings) -> dict[str, float]:
    """First paint in ms (median), and ms from before an event is sent to its row being changed (median and p95) while 50 other jobs
    change each second."""
    with Writer(settings) as writer:
        writer.write(
            output
            for number in range(_JOBS)
            for output in outputs_of(
                [job(number)], Cause(id=str(number), traceparent=trace_root("x"), source="bench", time_us=1)
            )
        )
        with View(settings) as view:
            assert view.caught_up(120)
            parts = new_parts(settings, view, writer)
            app = new_app(parts)
            add_console(app, settings, parts)
            with served(app) as base, chromium() as browser, opened(browser) as page:
                painted = [painted_ms(page, f"{base}/console/jobs") for _ in range(_PAINTS)]
                expect(page.locator("#count-all")).to_have_text(str(_JOBS))
                behind = _updates(settings, page, writer)
    return {
        "console_first_paint_ms": statistics.median(painted),
        "console_update_p50_ms": statistics.median(behind),
        "console_update_p95_ms": statistics.quantiles(behind, n=20)[18],
    }


def _updates(settings: Settings, page: Page, writer: Writer) -> list[float]:
    expect(page.locator("#link")).to_have_text("live")
    times_ms: list[float] = []
    watched = job(_JOBS - 5)
    with _restless(settings):
        for _ in range(_UPDATES):
            watched = other_stage(watched)
            times_ms.append(behind_ms(page, writer, watched))
    return times_ms


@contextmanager
def _restless(settings: Settings) -> Generator[None]:
    """Jobs that are on no page and on this one change all the time."""
    over = threading.Event()

    def change() -> None:
        with Writer(settings) as writer:
            number = 0
            while not over.wait(_OTHERS_S):
                number = (number + 1) % 1000
                writer.publish([other_stage(job(_JOBS - 10 - number))], trace_root("x"))

    thread = threading.Thread(target=change)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
