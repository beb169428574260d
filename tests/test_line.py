"""The whole line on real parts: every process, Kafka, ClickHouse, ffmpeg; prompts in, measured videos out."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import av
import jsonschema
import numpy as np
import pytest

from infra.bus import clients
from infra.bus.dead_letters import dead_letters
from infra.bus.reader import Reader, event_of
from infra.bus.writer import publish
from infra.local.services import environment, filled, read_services
from infra.local.stack import attached
from infra.local.supervisor import usual_workers
from infra.objects import Objects, file_digest
from infra.settings import Settings
from schemas import records as r
from schemas.headers import trace_id, trace_root, traceparent_of
from schemas.records import JobProgress, PromptRefused, PromptSubmitted, Stage, VideoFinished
from schemas.topics import Event
from tests.captions.reading import subrip
from tests.metrics.prometheus import until
from tests.sound.builders import chords, clicks, places, played, wav
from tests.traces.receiver import Received, Receiver, receiving

pytestmark = pytest.mark.timeout(300)

E = TypeVar("E", bound=Event)
ROOT = Path(__file__).parents[1]
FRAMES = 96
BOARD = """
title: Fox and whale
size: 160x96
engine_options: {drift_exposure: 0.04, drift_shift_px: "0.5,-0.25"}
shots:
  - {prompt: A fox runs over a snowy field at dawn, seconds: 2, camera: tracking shot}
  - {prompt: A whale swims underwater, seconds: 2, transition: dissolve}
"""
HEARD = """
title: Heard and read
size: 160x96
shots:
  - {prompt: A fox runs over a snowy field at dawn, seconds: 1, camera: tracking shot, transition: fade}
  - {prompt: A whale swims underwater, seconds: 1, transition: wipe}
title_card: {text: A fox, seconds: 0.5, colour: "#203060"}
end_card: {text: The end, seconds: 0.5}
music: {asset: bed, gain_db: -20, fade_out_s: 0.5}
effects: [{asset: click@1, at_s: 0.25}, {asset: click, at_s: 0.75}]
narration: [{at_s: 1.25, text: A fox and a whale.}]
subtitles: [{start_s: 1.25, end_s: 2.5, text: A fox and a whale.}]
"""
BAD: list[tuple[str, bytes, str, str]] = [
    ("not-json", b"\xff\xfe not a prompt", "value", "framing"),
    ("unknown-schema", b"\0\0\0\xff\xff body", "value", "schema_id"),
    ("wrong-type", b'{"job_id": "wrong-type", "text": "a fox", "width": "wide"}', "width", "type"),
    ("unknown-field", b'{"job_id": "unknown-field", "text": "a fox", "colour": "red"}', "colour", "unknown_field"),
    ("empty", b'{"job_id": "empty", "text": ""}', "text", "required"),
    ("long", b'{"job_id": "long", "text": "' + b"x" * 100_000 + b'"}', "text", "length"),
    ("nul", b'{"job_id": "nul", "text": "a fox\\u0000"}', "text", "control_characters"),
    ("backwards", b'{"job_id": "backwards", "text": "a fox", "duration_s": -4}', "duration_s", "range"),
    ("odd", b'{"job_id": "odd", "text": "a fox", "width": 641}', "width", "even"),
    ("still", b'{"job_id": "still", "text": "a fox", "fps": 0}', "fps", "range"),
    ("engine", b'{"job_id": "engine", "text": "a fox", "engine": "hollywood"}', "engine", "unknown_engine"),
    ("key", b'{"job_id": "other", "text": "a fox"}', "key", "job_id"),
    ("../../up", b'{"job_id": "../../up", "text": "a fox"}', "job_id", "characters"),
    ("file:///x", b'{"job_id": "file:///x", "text": "a fox"}', "job_id", "characters"),
]

TABLES = ("jobs", "segments", "pieces", "seams", "frames", "videos")
TRACES = "SELECT name, groupUniqArray(trace_id) FROM ("
TRACES += " UNION ALL ".join(f"SELECT '{table}' AS name, trace_id, job_id FROM {table}" for table in TABLES)  # noqa: S608 - our own names
TRACES += ") WHERE job_id = 'film' GROUP BY name ORDER BY name"


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    """Where the line's traces go."""
    with receiving() as receiver:
        yield receiver


@pytest.fixture(scope="module")
def line(receiver: Receiver, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """A stack of its own with all workers."""
    settings = Settings(state=tmp_path_factory.mktemp("line") / "state", trace_endpoint=receiver.url)
    with attached(settings, usual_workers(settings)) as services:
        yield filled(settings, services)


def call(settings: Settings, *command: str | Path) -> subprocess.CompletedProcess[str]:
    """A program of its own, in an empty folder, with the line's addresses."""
    folder = settings.state.parent
    return subprocess.run(
        [sys.executable, *map(str, command)],
        env=os.environ | environment(settings),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )


def longtake(settings: Settings, *arguments: str | Path) -> str:
    ran = call(settings, "-m", "infra.cli.main", *arguments)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def asked(settings: Settings, query: str) -> list[Any]:
    """The rows of a query, each as a list of its values."""
    return [list(json.loads(row).values()) for row in longtake(settings, "sql", "--json", query).splitlines()]


def told(settings: Settings, kind: type[Event]) -> list[Event]:
    with Reader.from_beginning(settings, [kind.topic]) as reader:
        return [event_of(message) for message in reader.to_end()]


def test_a_storyboard_becomes_one_finished_video_of_which_every_frame_is_known(
    line: Settings, receiver: Receiver, tmp_path: Path
) -> None:
    board = tmp_path / "board.yaml"
    board.write_text(BOARD)
    longtake(line, "submit", "--storyboard", board, "--job-id", "film", "--follow")
    longtake(line, "submit", "--storyboard", board, "--job-id", "film", "--follow")  # the same again runs nothing

    (finished,) = told(line, VideoFinished)
    assert isinstance(finished, VideoFinished)
    assert (finished.job_id, finished.frames, finished.verdict.value) == ("film", FRAMES, "pass")
    _check_file(line, finished, tmp_path / "film.mp4")
    _check_rows(line)
    _check_progress(line)
    _check_readers(line, finished, tmp_path)
    _check_trace(receiver, finished)


def _check_file(line: Settings, finished: VideoFinished, file: Path) -> None:
    longtake(line, "fetch", "film", "-o", file)
    assert file_digest(file, "sha256") == finished.video.digest
    with av.open(str(file)) as container:
        pictures = list(container.decode(video=0))
    assert len(pictures) == FRAMES
    assert (pictures[0].width, pictures[0].height) == (160, 96)


def _check_rows(line: Settings) -> None:
    rows = asked(
        line, "SELECT frame, pts_us, vmaf IS NOT NULL, psnr_y FROM frames WHERE job_id = 'film' ORDER BY frame"
    )
    assert [row[0] for row in rows] == list(range(FRAMES))
    assert all(abs(pts - frame * 1e6 / 24) <= 1 and vmaf and psnr > 0 for frame, pts, vmaf, psnr in rows)
    with Reader.from_beginning(line, [PromptSubmitted.topic]) as reader:
        prompt = next(message for message in reader.to_end() if message.job_id == "film")
    trace = trace_id(traceparent_of(prompt.headers, otherwise=""))
    assert asked(line, TRACES) == [[table, [trace]] for table in sorted(TABLES)]


def _check_progress(line: Settings) -> None:
    with Reader.from_beginning(line, [JobProgress.topic]) as reader:
        for message in reader.for_seconds(20):
            event = event_of(message)
            if isinstance(event, JobProgress) and event.job_id == "film" and event.stage is Stage.FINISHED:
                break
        else:
            pytest.fail("insights never said that the job has finished")
    (job,) = json.loads(longtake(line, "jobs", "--json", "--stage", "finished"))
    assert (job["job_id"], job["segments_generated"]) == ("film", job["segments"])


def _check_trace(receiver: Receiver, finished: VideoFinished) -> None:
    """One tree from prompt to finished video, with every frame's time in it."""
    until(lambda: any(span.name == "job" for span in _trace(receiver)), 30)
    spans = _trace(receiver)
    ids = {span.id: span for span in spans}
    (job,) = (span for span in spans if span.name == "job")
    assert (job.parent, job.start_ns, job.end_ns) == ("", finished.submitted_us * 1000, finished.finished_us * 1000)
    assert len(ids) == len(spans)
    assert all(span.parent in ids for span in spans if span is not job)
    assert all(link in ids for span in spans for link in span.links)
    counts = Counter(span.name for span in spans)
    pieces = len(finished.seams)
    assert {counts[name] for name in ("segment", "denoise", "decode", "store")} == {pieces + finished.attempts}
    assert len({counts[name] for name in ("stitch", "encode", "check piece")}) == 1, "a piece can be encoded again"
    assert {span.attributes["longtake.piece"] for span in spans if span.name == "stitch"} == set(range(pieces))
    assert counts["assemble"] == counts["check video"] >= 1
    *_, assembly = (span for span in spans if span.name == "assemble")
    assert [ids[link].name for link in assembly.links] == [*["stitch"] * pieces, "decide"]
    frames = {frame: at_ns for span in spans for frame, at_ns in span.frames.items()}
    assert sorted(frames) == list(range(FRAMES))
    assert len({at_ns // 10_000 for at_ns in frames.values()}) > FRAMES / 2, "times are coarser than 10 us"
    services = {"line", "director", "generate", "stitch", "check-pieces", "assemble", "check-videos"}
    assert {span.service for span in spans} == services


def _trace(receiver: Receiver) -> list[Received]:
    return [span for span in receiver.spans if span.attributes["longtake.job_id"] == "film"]


def _check_readers(line: Settings, finished: VideoFinished, tmp_path: Path) -> None:
    """What other programs make of it: the report, the examples of a subscriber and an analyst."""
    longtake(line, "report", "film", "-o", tmp_path / "film.html")
    page = (tmp_path / "film.html").read_text()
    assert "Fox and whale" in page
    assert "data:image/png;base64,iVBOR" in page
    longtake(line, "report", "film", "-o", tmp_path / "film.json")
    report = json.loads((tmp_path / "film.json").read_text())
    jsonschema.validate(report, json.loads((ROOT / "docs" / "report.schema.json").read_text()))
    assert report["job"]["video"]["digest"] == finished.video.digest
    assert sum(piece["frames"] for piece in report["pieces"]) == FRAMES
    assert all(piece["population"].startswith("standard/animatic/") for piece in report["pieces"])
    subscriber = call(line, ROOT / "examples" / "subscriber.py", "1")
    assert subscriber.stdout.split()[0] == "film", subscriber.stderr
    assert finished.video.digest in subscriber.stdout
    analysis = call(line, ROOT / "examples" / "analysis.py")
    assert analysis.returncode == 0, analysis.stderr
    assert analysis.stdout.count("film") >= 3


@contextmanager
def stopped(line: Settings, name: str) -> Iterator[None]:
    """A process stands still."""
    services = read_services(line.state)
    assert services
    (pid,) = (process.pid for process in services.processes if process.name == name)
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_music_words_subtitles_and_cards_are_in_the_finished_video(line: Settings, tmp_path: Path) -> None:
    sounds = {"bed": chords(1.0), "click": clicks(0.01, [0.0])}
    for name, samples in sounds.items():
        longtake(line, "asset", "add", name, wav(tmp_path / f"{name}.wav", samples))
    board, file = tmp_path / "board.yaml", tmp_path / "heard.mp4"
    board.write_text(HEARD)
    longtake(line, "submit", "--storyboard", board, "--job-id", "heard", "--follow")
    (finished,) = (
        event for event in told(line, VideoFinished) if isinstance(event, VideoFinished) and event.job_id == "heard"
    )
    assert (finished.verdict.value, finished.frames) == ("pass", 72)
    assert [(track.kind, track.samples) for track in finished.tracks] == [
        ("video", 72),
        ("audio", 144_000),
        ("subtitles", 1),
    ]
    assert {warning.gate for warning in finished.warnings} & {
        "frozen",
        "black",
        "av_sync",
        "silence",
        "loudness",
    } == set()
    longtake(line, "fetch", "heard", "-o", file)
    with av.open(str(file)) as container:
        pictures = [frame.to_ndarray(format="gray") for frame in container.decode(video=0)]
    assert len(pictures) == 72
    assert all(abs(picture - pictures[0].astype(int)).max() < 16 for picture in pictures[:6])
    assert all(abs(picture - pictures[71].astype(int)).max() < 16 for picture in pictures[62:])
    samples = played(file)
    assert len(samples) == 144_000
    assert places(samples, [0.25, 0.75]) == [0, 0]
    words = np.abs(samples[72_000:96_000]).mean() / np.abs(samples[40_000:56_000]).mean()
    assert words > 2, "nobody speaks"
    assert "00:00:01,250 --> 00:00:02,500\nA fox and a whale." in subrip(file)
    rows = asked(line, "SELECT frame, psnr_y > 30, vmaf IS NOT NULL FROM frames WHERE job_id = 'heard' ORDER BY frame")
    assert rows == [[frame, 1, 1] for frame in range(72)]


@pytest.fixture
def insights_stopped(line: Settings) -> Iterator[None]:
    """The derived streams stand still: nothing depends on them."""
    with stopped(line, "insights-0"):
        yield


@pytest.mark.usefixtures("insights_stopped")
def test_bad_prompts_are_refused_by_field_and_rule_and_the_next_one_runs(line: Settings) -> None:
    producer = clients.plain_producer(line, "test")
    for key, value, _, _ in BAD:
        producer.produce(PromptSubmitted.topic, value, key.encode())
    good = {"job_id": "good", "text": "A fox runs", "width": 128, "height": 72, "duration_s": 1, "fps": 23.976}
    producer.produce(PromptSubmitted.topic, json.dumps(good).encode(), b"good")
    assert producer.flush(30) == 0
    longtake(line, "watch", "good", "--patience", "60")

    letters = {letter.original.job_id: letter for letter in dead_letters(line)}
    assert {key: (x.field, x.rule) for key, x in letters.items()} == {key: (f, rule) for key, _, f, rule in BAD}
    assert {key: x.original.value for key, x in letters.items()} == {key: value for key, value, _, _ in BAD}
    refused = {e.job_id: (e.field, e.rule) for e in told(line, PromptRefused) if isinstance(e, PromptRefused)}
    readable = {json.loads(value)["job_id"]: (f, rule) for _, value, f, rule in BAD if value.startswith(b"{")}
    assert refused == readable
    (fps,) = asked(line, "SELECT fps FROM jobs WHERE job_id = 'good'")
    assert fps == [pytest.approx(24000 / 1001)]


def test_what_is_damaged_in_the_store_while_a_job_runs_is_made_again_and_no_frame_is_wrong(
    line: Settings, tmp_path: Path
) -> None:
    objects = Objects(line.objects)
    with (
        Reader.from_now(line, [r.SegmentGenerated.topic, r.AssemblyRequested.topic]) as reader,
        stopped(line, "assemble-0"),
    ):
        with stopped(line, "stitch-0"):
            for job_id in ("sound", "harmed"):
                wish = PromptSubmitted(job_id=job_id, text="A fox runs", width=128, height=72, duration_s=2.0)
                publish(line, [wish], trace_root(job_id))
            frames = objects.local_path(objects.key_of(heard(reader, r.SegmentGenerated, "harmed").frames))
            flipped = bytearray(frames.read_bytes())
            flipped[len(flipped) // 2] ^= 1
            frames.write_bytes(flipped)
        piece = heard(reader, r.AssemblyRequested, "harmed").pieces[0].video
        path = objects.local_path(objects.key_of(piece))
        path.write_bytes(path.read_bytes()[: piece.size_bytes // 2])
    until(lambda: {"sound", "harmed"} <= {video.job_id for video in told(line, VideoFinished)}, 90)

    videos = {video.job_id: video for video in told(line, VideoFinished) if isinstance(video, VideoFinished)}
    harmed, sound = (film(objects, videos[job_id], tmp_path) for job_id in ("harmed", "sound"))
    (rejected,) = [e for e in told(line, r.SeamRejected) if isinstance(e, r.SeamRejected) and e.job_id == "harmed"]
    (unjoined,) = [event for event in told(line, r.AssemblyFailed) if isinstance(event, r.AssemblyFailed)]
    assert unjoined.job_id == "harmed"
    assert "digest is" in rejected.reason
    assert "digest is" in unjoined.reason
    assert unjoined.pieces == (0,)
    assert harmed == sound
    rows = asked(line, "SELECT count(), uniqExact(frame) FROM frames WHERE job_id = 'harmed'")
    assert rows == [[len(sound), len(sound)]]


def heard(reader: Reader, kind: type[E], job_id: str) -> E:
    """The next event of the kind that is of the job."""
    for message in reader.for_seconds(60):
        event = event_of(message)
        if isinstance(event, kind) and event.job_id == job_id:
            return event
    pytest.fail(f"no {kind.__name__} of {job_id} came")


def film(objects: Objects, video: VideoFinished, folder: Path) -> list[bytes]:
    """The pictures of a video."""
    with av.open(str(objects.get_file(video.video, folder))) as container:
        return [picture.to_ndarray().tobytes() for picture in container.decode(video=0)]


def test_nothing_is_written_outside_the_state_folder(line: Settings) -> None:
    assert [path.name for path in line.state.parent.iterdir()] == ["state"]
    objects = Path(line.objects.removeprefix("file://"))
    assert {path.name for path in (objects / "jobs").iterdir()} <= {"film", "good", "sound", "harmed", "heard"}
