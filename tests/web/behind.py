"""How far the page of all jobs is behind Kafka: from before an event is sent to when Chromium has its row changed."""

import time
from dataclasses import replace

from playwright.sync_api import Page

from infra.bus.writer import Writer
from schemas.headers import trace_root
from schemas.records import JobChanged, Stage
from tests.web.browser import wait_for

_WATCH = """(id) => {
  window.changedAt = 0;
  const row = () => document.getElementById(id)?.querySelector('.stage')?.textContent;
  const before = row();
  window.watching?.disconnect();
  window.watching = new MutationObserver(() => { if (!window.changedAt && row() !== before) window.changedAt = Date.now(); });
  window.watching.observe(document.body, {childList: true, subtree: true, characterData: true});
}"""


def behind_ms(page: Page, writer: Writer, job: JobChanged) -> float:
    """Sends the job as changed to another stage and waits for its row."""
    page.evaluate(_WATCH, f"job-{job.job_id}")
    sent_ms = time.time() * 1000
    writer.publish([job], trace_root(job.job_id))
    return float(wait_for(page, "window.changedAt")) - sent_ms


def other_stage(job: JobChanged) -> JobChanged:
    """The job, further or back again."""
    return replace(job, stage=Stage.ASSEMBLING if job.stage == Stage.GENERATING else Stage.GENERATING)
