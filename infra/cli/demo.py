"""`longtake demo`: the whole line on this machine, from a storyboard to a finished, measured video."""

import shutil
import signal
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import msgspec
import typer
from confluent_kafka import Consumer
from rich.table import Table

from infra.bus.writer import publish
from infra.cli.demo_summary import DemoSummary, Outcome, disagreements, summarize
from infra.cli.errors import CliError, Exit
from infra.cli.jobs import SEAM_COLUMNS, seam_rows
from infra.cli.measured import Timing, quality
from infra.cli.output import console, now_us, say, table
from infra.cli.reach import settings_of
from infra.cli.report import Report, gather, write_report
from infra.cli.watch import Patience, watch_job
from infra.clickhouse import connect
from infra.local.pidfile import running_pid
from infra.local.services import filled
from infra.local.stack import attached
from infra.objects import Objects
from infra.settings import Settings
from schemas.codec import content_hash, decode
from schemas.headers import trace_root
from schemas.records import VideoFinished
from streams.prompts.storyboard import parse_storyboard

STORYBOARD = Path(__file__).parents[2] / "examples" / "storyboards" / "three_lights.yaml"
FRAMES = 288
"""Twelve seconds at 24 fps."""
_FOLLOW_S = 60.0
_ANNOUNCED_S = 20.0
_DOUBLES_S = 1.5


def demo(
    ctx: typer.Context,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the results.")] = Path("out/demo"),
) -> None:
    """Run a 12 s storyboard through a line of its own, and check every number that comes out.

    Starts Kafka, ClickHouse and the workers, stops them again, and leaves video.mp4, report.png and summary.json.
    """
    begun = time.monotonic()
    output = output.absolute()
    settings = _own_line(settings_of(ctx), output / "state")
    with _ended_by_sigterm(), attached(settings) as services:
        say(f"the line is up after {time.monotonic() - begun:.1f} s: kafka {services.kafka}")
        settings = filled(settings, services)
        announced, times = _run(settings, f"demo-{now_us() // 1_000_000}")
        file = output / "video.mp4"
        shutil.copyfile(Objects(settings.objects).get_file(announced.video, output), file)
        report = gather(settings, announced.job_id)
        write_report(report, output / "report.png")
        measured = quality(connect(settings), announced.job_id)
        outcome = Outcome(
            announced=announced,
            finished_events=times,
            file=file,
            quality=measured,
            scores=report.scores,
            timing=report.timing,
            wall_s=time.monotonic() - begun,
        )
    summary = summarize(outcome)
    (output / "summary.json").write_bytes(msgspec.json.format(msgspec.json.encode(summary)))
    _tell(summary, report)
    remarks = [f"remark on the storyboard: {lint.message}" for lint in report.remarks]
    if wrong := remarks + disagreements(summary, announced, FRAMES):
        raise CliError(Exit.FAILED, f"the demo is not as it should be: {'; '.join(wrong)}")


def _own_line(settings: Settings, state: Path) -> Settings:
    """Settings of a new stack in `state`, whatever else runs or is configured. Raises: CliError if a demo runs there."""
    if pid := running_pid(state):
        raise CliError(Exit.FAILED, f"a demo is running in {state}, pid {pid}")
    if state.exists():
        shutil.rmtree(state)
    state.mkdir(parents=True)
    return settings.model_copy(update={"state": state, "kafka": "", "clickhouse": "", "objects": ""})


def _run(settings: Settings, job_id: str) -> tuple[VideoFinished, int]:
    """Submit, watch, and hear from the topic like any subscriber. The announcement and how often it came."""
    prompt = parse_storyboard(STORYBOARD.read_text(encoding="utf-8"), job_id)
    subscriber = Consumer(
        {
            "bootstrap.servers": settings.kafka,
            "group.id": "longtake-demo",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
        }
    )
    subscriber.subscribe([VideoFinished.topic])
    try:
        publish(settings, [prompt], trace_root(job_id))
        watch_job(settings, job_id, Patience(content_hash=content_hash(prompt), seconds=_FOLLOW_S))
        heard = _hear(subscriber, job_id)
    finally:
        subscriber.close()
    if not heard:
        raise CliError(Exit.FAILED, f"no VideoFinished within {_ANNOUNCED_S:.0f} s of the job's end")
    return heard[0], len(heard)


def _hear(subscriber: Consumer, job_id: str) -> list[VideoFinished]:
    """All announcements of the job: after the first one, a while is waited for doubles."""
    heard: list[VideoFinished] = []
    deadline = time.monotonic() + _ANNOUNCED_S
    while time.monotonic() < deadline:
        record = subscriber.poll(0.1)
        if record is None or record.error():
            continue
        event = decode(record.value() or b"")
        if isinstance(event, VideoFinished) and event.job_id == job_id:
            heard.append(event)
            deadline = min(deadline, time.monotonic() + _DOUBLES_S)
    return heard


def _tell(summary: DemoSummary, report: Report) -> None:
    say(f"\nvideo    {summary.video}")
    say(f"         {summary.frames} frames, {summary.duration_s:.3f} s, sha256 {summary.sha256}")
    say(
        f"quality  PSNR-Y {summary.psnr_y_mean:.2f} dB (worst frame {summary.psnr_y_min:.2f}), VMAF "
        f"{summary.vmaf_mean:.2f} (worst {summary.vmaf_min:.2f}), from {summary.frame_rows} rows in ClickHouse"
    )
    say(f"verdict  {summary.verdict.value}, announced {summary.finished_events} time\n")
    console().print(table("Seams", SEAM_COLUMNS, seam_rows(report.video)))
    console().print(_time_table(report.timing))
    say(
        f"\nthe engine worked for {summary.engine_busy_share:.0%} of the time; the whole demo took {summary.wall_s:.1f} s"
    )


def _time_table(timing: Timing) -> Table:
    rows = [
        (step.name, step.work_s, f"{step.spans_s[0][0]:.1f} - {max(end for _, end in step.spans_s):.1f} s")
        for step in timing.steps
    ]
    return table("\nWhere the time went", ("work", "seconds", "after submission"), rows)


@contextmanager
def _ended_by_sigterm() -> Generator[None]:
    """SIGTERM is like Ctrl-C: the stack is stopped on the way out."""

    def interrupt(_: int, __: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
