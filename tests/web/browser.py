"""A real Chromium for tests of pages, and the accessibility rules of axe-core."""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this machine")
_AXE = (Path(__file__).parent / "vendor" / "axe.min.js").read_text()
_PATIENCE_MS = 60_000


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        yield browser
        browser.close()


@contextmanager
def opened(browser: Browser, **options: Any) -> Iterator[Page]:
    """A page in a context of its own. What it complains about, a script or the policy, fails the test."""
    context = browser.new_context(**options)
    page = context.new_page()
    page.set_default_timeout(_PATIENCE_MS)
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda said: complaints.append(said.text) if "Content Security" in said.text else None)
    yield page
    context.close()
    assert complaints == []


def wait_for(page: Page, expression: str) -> Any:
    """What the expression is once it is something. Playwright's own waiting evaluates strings in the page, which its policy forbids."""
    deadline = time.monotonic() + _PATIENCE_MS / 1000
    while not (found := page.evaluate(expression)):
        assert time.monotonic() < deadline, expression
        page.wait_for_timeout(50)
    return found


def violations(page: Page) -> list[str]:
    """What axe has against the page as it is now."""
    page.evaluate(_AXE)
    found: dict[str, Any] = page.evaluate("axe.run()")
    return [f"{v['id']}: {v['nodes'][0]['html'][:200]}" for v in found["violations"]]
