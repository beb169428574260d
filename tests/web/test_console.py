"""The console of a whole stack, as `longtake up` starts it, in a real Chromium: what a person does there happens on the line."""

import re
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from infra.bus.outputs import Output
from infra.bus.writer import Writer
from infra.local.ports import free_port
from infra.local.services import filled
from infra.local.stack import attached
from infra.settings import Settings
from schemas.headers import trace_root
from schemas.records import PromptSubmitted
from tests.bus.line import eventually
from tests.web.browser import chromium, needs_chromium, opened, violations, wait_for

pytestmark = needs_chromium
PAGES = (
    *("/jobs", "/jobs/film", "/jobs/film/events", "/submit", "/dead-letters", "/releases", "/releases/softer", "/sql"),
    "/fleet",
)
PATIENCE_MS = 60_000
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Settings, str]]:
    """A stack of its own and the address of its console."""
    settings = Settings(state=tmp_path_factory.mktemp("console") / "state", door_port=free_port())
    with attached(settings) as services:
        eventually(lambda: _ready(services.console), "the console")
        yield filled(settings, services), f"{services.console}/console"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with opened(browser) as page:
        yield page


@pytest.fixture(scope="module")
def film(stack: tuple[Settings, str], browser: Browser) -> str:
    """The page of a finished job; it was submitted at the console and watched there, never loaded anew by hand."""
    _, console = stack
    with opened(browser) as page:
        submit(page, console, job_id="film", text="A red ball rolls across a table", seconds="2")
        expect(page.locator("#state .stage")).to_have_text("finished")
        expect(page.locator("#state")).to_contain_text("2.0 s, 48 frames")
        return page.url


@pytest.fixture(scope="module")
def release(stack: tuple[Settings, str], browser: Browser) -> str:
    """The page of a release that was begun at the console."""
    with opened(browser) as page:
        page.goto(f"{stack[1]}/releases")
        page.get_by_text("Begin a release").click()
        page.get_by_label("Name", exact=True).fill("softer")
        page.get_by_label("Share of its jobs").fill("0.0001")
        page.get_by_label("What it changes").fill("crf=30")
        page.get_by_role("button", name="Begin").click()
        expect(page.locator("#state .stage")).to_have_text("running")
        return page.url


def _ready(console: str) -> bool:
    try:
        return httpx.get(f"{console}/readyz").status_code == 200
    except httpx.TransportError:
        return False


def submit(page: Page, console: str, *, job_id: str, text: str, seconds: str) -> None:
    page.goto(f"{console}/submit")
    page.get_by_label("What is to be seen").fill(text)
    for label, value in (("Seconds", seconds), ("Width", "320"), ("Height", "180"), ("Job id", job_id)):
        page.get_by_label(label).fill(value)
    page.get_by_role("button", name="Submit").click()
    page.wait_for_url(f"{console}/jobs/{job_id}")


def test_a_click_on_the_chart_seeks_and_keys_step_by_a_frame(film: str, page: Page) -> None:
    page.goto(film)
    wait_for(page, "document.querySelector('video').readyState >= 2")
    chart = page.locator("#quality .u-over")
    box = chart.bounding_box()
    assert box
    chart.click(position={"x": box["width"] / 2, "y": 20})
    shown = page.get_by_label("Frame", exact=True)
    expect(shown).to_have_value(re.compile("2[345]"))
    frame = int(shown.input_value())
    wait_for(page, f"Math.abs(document.querySelector('video').currentTime - {(frame + 0.5) / 24}) < 0.001")
    page.locator("h1").click()
    page.keyboard.press(".")
    expect(shown).to_have_value(str(frame + 1))
    page.keyboard.press(",")
    page.keyboard.press(",")
    expect(shown).to_have_value(str(frame - 1))


def test_a_job_is_watched_while_it_is_made_and_the_chart_seeks_in_it(stack: tuple[Settings, str], page: Page) -> None:
    submit(page, stack[1], job_id="show", text="Waves roll onto a beach", seconds="120")
    expect(page.get_by_role("heading", name="Video so far")).to_be_visible()
    wait_for(page, "document.querySelector('video').readyState >= 2")
    assert page.evaluate("document.querySelector('video').src.startsWith('blob:')"), "hls.js feeds it"
    page.evaluate("document.querySelector('video').play()")
    wait_for(page, "document.querySelector('video').getVideoPlaybackQuality().totalVideoFrames > 5")
    page.evaluate("document.querySelector('video').pause()")
    chart = page.locator("#quality .u-over")
    box = chart.bounding_box()
    assert box
    before_s = page.evaluate("document.querySelector('video').currentTime")
    chart.click(position={"x": box["width"] / 2, "y": 20})
    wait_for(
        page, f"document.querySelector('video').currentTime !== {before_s} && !document.querySelector('video').seeking"
    )
    wait_for(
        page,
        "Math.abs(document.querySelector('video').currentTime * 24 - 0.5 - document.getElementById('frame').value) < 0.02",
    )
    expect(page.locator("#state .stage")).to_have_text("generating")
    grown = "document.querySelector('video').duration"
    wait_for(page, f"{grown} > {page.evaluate(grown)}")
    page.get_by_role("button", name="Cancel the job").click()
    expect(page.locator("#state .stage")).to_have_text("cancelled")


def test_every_record_of_a_job_is_listed_with_where_it_is_and_what_it_says(film: str, page: Page) -> None:
    page.goto(film)
    page.get_by_role("link", name="Every record of this job").click()
    names = page.locator(".records summary").all_text_contents()
    assert names[0] == "PromptSubmitted"
    assert {"SegmentRequested", "SegmentGenerated", "PieceChecked", "VideoFinished", "JobChanged"} <= set(names)
    first = page.locator(".records tbody tr").first
    expect(first).to_contain_text(re.compile(r"20\d\d-.*\.\d{3}"))
    expect(first).to_contain_text(re.compile(r"longtake\.prompts\.v1\s*\d+\s*\d+"))
    first.locator("summary").click()
    expect(first.locator("pre")).to_contain_text('"job_id": "film"')


def test_a_release_is_begun_seen_and_stopped(release: str, page: Page) -> None:
    page.goto(release)
    expect(page.locator("#state")).to_contain_text("crf=30")
    expect(page.locator("#arms")).to_contain_text("No job yet")
    page.get_by_role("button", name="Stop the release").click()
    expect(page.locator("#state .stage")).to_have_text("stopped")
    page.get_by_role("link", name="Releases").click()
    expect(page.get_by_role("row", name="softer")).to_contain_text("stopped")
    page.get_by_text("Begin a release").click()
    page.get_by_label("Name", exact=True).fill("softer")
    page.get_by_label("What it changes").fill("crf=31")
    page.get_by_role("button", name="Begin").click()
    expect(page.get_by_role("alert")).to_contain_text("there was a release softer before")


def test_both_sides_of_a_seam_are_shown(film: str, page: Page) -> None:
    page.goto(film)
    page.locator("#seams summary").first.click()
    sides = page.locator("#seams figure img")
    for number in (0, 1):
        side = sides.nth(number)
        side.scroll_into_view_if_needed()
        picture = f"document.querySelectorAll('#seams figure img')[{number}]"
        wait_for(page, f"{picture}.complete && {picture}.naturalWidth === 320")


def test_a_job_is_cancelled_and_can_be_retried(stack: tuple[Settings, str], page: Page) -> None:
    submit(page, stack[1], job_id="long", text="Clouds pass over a city", seconds="600")
    page.get_by_role("button", name="Cancel the job").click()
    expect(page.locator("#state .stage")).to_have_text("cancelled")
    expect(page.get_by_role("button", name="Retry the job")).to_be_visible()


def test_a_wrong_wish_is_not_sent_and_says_what_is_wrong(stack: tuple[Settings, str], page: Page) -> None:
    page.goto(f"{stack[1]}/submit")
    page.get_by_label("Seconds").fill("4")
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_role("alert")).to_contain_text("text")
    expect(page.get_by_label("Seconds")).to_have_value("4")


def test_a_dead_letter_is_mended_and_replayed(stack: tuple[Settings, str], page: Page) -> None:
    settings, console = stack
    wish = b'{"job_id": "odd", "text": "A fox runs through snow", "duration_s": 1, "width": 321, "height": 180}'
    with Writer(settings) as writer:
        headers = (("traceparent", trace_root("odd").encode()),)
        writer.write([Output(topic=PromptSubmitted.topic, key=b"odd", value=wish, headers=headers)])
    eventually(lambda: _status(page, f"{console}/jobs/odd") == 200, "the console has heard of the job")
    expect(page.locator("#state .stage")).to_have_text("refused")
    page.goto(f"{console}/dead-letters")
    page.get_by_role("row", name="odd").get_by_role("link").click()
    record = page.get_by_label("The record, to be mended")
    record.fill(record.input_value().replace('"width": 321', '"width": "wide"'))
    page.get_by_role("button", name="Replay").click()
    expect(page.get_by_role("alert")).to_contain_text("width")
    record.fill(record.input_value().replace('"wide"', "320"))
    assert violations(page) == []
    page.get_by_role("button", name="Replay").click()
    expect(page.get_by_role("status")).to_contain_text("Replayed")
    page.goto(f"{console}/jobs/odd")
    expect(page.locator("#state .stage")).to_have_text("finished")


def test_clickhouse_answers_and_nobody_writes_there(film: str, stack: tuple[Settings, str], page: Page) -> None:
    page.goto(f"{stack[1]}/sql?question=3&job=film")
    page.get_by_role("button", name="Ask").click()
    expect(page.locator("h2#answer")).to_have_text(re.compile(r"[1-9]\d* rows?"))
    page.get_by_label("One statement").fill("DROP TABLE frame_log")
    page.get_by_role("button", name="Ask").click()
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.locator("h2#answer")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_keeps_the_rules_of_accessibility(
    film: str, release: str, stack: tuple[Settings, str], browser: Browser, scheme: str
) -> None:
    with opened(browser, color_scheme=scheme) as page:
        for path in PAGES:
            page.goto(stack[1] + path)
            if path == "/jobs/film":
                page.locator("#quality canvas").wait_for()
            assert violations(page) == [], path


def test_every_page_fits_a_phone(film: str, release: str, stack: tuple[Settings, str], browser: Browser) -> None:
    with opened(browser, viewport={"width": 360, "height": 740}) as page:
        for path in PAGES:
            page.goto(stack[1] + path)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path


def test_the_fleet_is_all_processes_of_the_stack(stack: tuple[Settings, str], page: Page) -> None:
    page.goto(f"{stack[1]}/fleet")
    expect(page.locator("#processes")).to_contain_text("console")
    expect(page.locator("#groups")).to_contain_text("longtake.director-0")
    group = page.get_by_role("row", name="longtake.director ")
    expect(group.get_by_role("cell").nth(1)).to_have_text(re.compile(r"\d+"))


def _status(page: Page, url: str) -> int:
    answer = page.goto(url)
    return answer.status if answer else 0
