"""What anybody may throw at the line: each target takes any bytes, and raises only if something that must hold does not."""

import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from gpu_consumers.engines.options import check_options
from infra.bus.letter import DeadLetter
from infra.bus.mended import MendError, from_text, to_text
from infra.bus.message import Message
from infra.objects import BlobError, Objects, job_key
from qc_consumers.metrics.quality import Pair, scoring_command
from schemas.codec import content_hash, decode, decode_prompt, encode, framing, to_json
from schemas.engines import ENGINES
from schemas.errors import BadInputError
from schemas.ids import Version, versions
from schemas.records import Blob, Encode, Instruction, Lint, PromptSubmitted, Shot
from schemas.topics import EVENTS, TOPICS, Event, key_of
from streams.intake import planned
from streams.prompts.instruct import instruct
from streams.prompts.storyboard import parse_storyboard
from streams.stitcher.encode import piece_options
from streams.validation import check_job_id
from tests.schemas.samples import sample

Target = Callable[[bytes], None]
STORE = Path(tempfile.gettempdir()) / "longtake-fuzz" / "objects"
_X264 = re.compile(r"keyint=\d+:min-keyint=\d+:scenecut=0:open-gop=0:bframes=2:stitchable=1")


def _newest(record: type[Event]) -> Version:
    return next(version for version in reversed(versions()) if version.record == record.__name__)


def read_record(data: bytes) -> None:
    """A record of any topic: refused, or an event that is the same after another trip."""
    body = framing(_newest(EVENTS[data[0] % len(EVENTS)])) + data[1:] if data else b""
    for read, value in ((decode, data), (decode_prompt, data), (decode, body)):
        try:
            event = read(value)
        except BadInputError:
            continue
        assert encode(decode(encode(event))) == encode(event)
        assert to_json(event)


def read_storyboard(data: bytes) -> None:
    """A storyboard file or prompt: refused with field and rule, or planned with every frame accounted for."""
    try:
        prompt = parse_storyboard(data.decode("utf-8", "surrogateescape"), "fuzz")
        plan = planned(prompt, _instruct)
    except BadInputError as error:
        assert error.field, error
        assert error.rule, error
        return
    assert content_hash(prompt)
    assert sum(shot.frames for shot in plan.shots) == plan.frames
    last = plan.segments[-1]
    assert last.start_frame + last.frames == plan.frames


def point_at_object(data: bytes) -> None:
    """A pointer and a job id: refused, or inside the store."""
    text = data.decode("utf-8", "surrogateescape")
    store = Objects(STORE.as_uri())
    for uri in (text, f"{store.url}/{text}", f"{store.url}{text}"):
        try:
            key = store.key_of(Blob(uri=uri, digest="xxh3:0", size_bytes=0, media_type=""))
        except BlobError:
            continue
        _check_inside(key)
    try:
        check_job_id(text)
    except BadInputError:
        return
    _check_inside(job_key(text, "segments", "0-1.safetensors"))


def build_filters(data: bytes) -> None:
    """Whatever numbers and words a request holds: the encoder's options and ffmpeg's graph have the same shape."""
    numbers = [int.from_bytes(data[at : at + 4], signed=True) for at in range(0, 24, 4)]
    text = data[24:].decode("utf-8", "replace")
    for encode_as in (Encode(preset=text), Encode(codec=text), Encode(crf=float(numbers[0]), gop_frames=numbers[1])):
        try:
            options = piece_options(encode_as)
        except BadInputError:
            continue
        assert _X264.fullmatch(options["x264-params"]), options
        assert set(options) == {"preset", "crf", "x264-params"}
    if "\0" in text or min(numbers[4:]) < 1:
        return
    folder = Path("/store") / (text or "piece")
    pair = Pair(
        piece=folder / "piece.mp4",
        reference=folder / "reference.mp4",
        width=numbers[2],
        height=numbers[3],
        fps=Fraction(numbers[4], numbers[5]),
        frames=1,
        head=numbers[0],
        tail=numbers[1],
    )
    _check_command(pair, scoring_command(pair, 1))


def choose_options(data: bytes) -> None:
    """An engine's options, one `name=value` a line: refused, or no file they name is outside the folder of models."""
    text = data[1:].decode("utf-8", "replace")
    options = {name: value for name, equals, value in (line.partition("=") for line in text.split("\n")) if equals}
    engine = sorted(ENGINES)[data[0] % len(ENGINES)] if data else "animatic"
    try:
        check_options(engine, options)
    except BadInputError as error:
        assert error.field.startswith("engine_options"), error
        return
    files = [options[name] for name in ("model", "opening", "image", "control") if name in options and engine != "veo"]
    files += [part.partition(":")[0] for part in options["lora"].split(",")] if "lora" in options else []
    for file in files:
        assert (STORE / file).resolve().is_relative_to(STORE.resolve()), file


def mend_letter(data: bytes) -> None:
    """A dead letter that somebody has edited: refused, or a record of one of the line's topics."""
    try:
        output = from_text(data)
    except (MendError, BadInputError):
        return
    assert output.topic in {topic.name for topic in TOPICS}
    assert output.value is not None
    assert all(isinstance(name, str) for name, _ in output.headers)


def _check_command(pair: Pair, command: Sequence[str]) -> None:
    inputs = {command[at + 1] for at, word in enumerate(command) if word == "-i"}
    assert inputs == {str(pair.piece.absolute()), str(pair.reference.absolute())}
    plain = replace(pair, piece=Path("/a.mp4"), reference=Path("/b.mp4"), width=64, height=64, fps=Fraction(24))
    padded = bool(pair.head or pair.tail)
    assert _filters(command) == _filters(scoring_command(replace(plain, head=int(padded), tail=0), 1))


def _filters(command: Sequence[str]) -> list[str]:
    """The names of the graph's filters: what is in the graph, without the numbers."""
    graph = command[command.index("-filter_complex") + 1]
    return [re.sub(r"\[[^]]*\]", "", part).partition("=")[0] for part in graph.split(";")]


def _check_inside(key: str) -> None:
    path = (STORE / key).resolve()
    assert path.is_relative_to(STORE.resolve()), key
    assert path != STORE.resolve()
    assert str(path) == str(STORE.resolve() / key), key


def _instruct(shots: Sequence[Shot], negative: Sequence[str]) -> tuple[tuple[Instruction, ...], tuple[Lint, ...]]:
    read = [instruct(shot.prompt, shot.camera, shot=n, negative=negative) for n, shot in enumerate(shots)]
    return tuple(one for one, _ in read), tuple(lint for _, lints in read for lint in lints)


def _letter(event: Event, value: bytes | None = None) -> DeadLetter:
    original = Message(
        topic=event.topic,
        partition=0,
        offset=7,
        key=key_of(event).encode(),
        value=encode(event) if value is None else value,
        headers=(("traceparent", b"00-1-2-01"),),
        timestamp_us=0,
    )
    return DeadLetter(
        id="0-0", original=original, group="longtake.director", field="value", rule="avro", message="no", time_us=1
    )


def seeds(name: str) -> list[bytes]:
    """Inputs to start from: good ones."""
    events: list[Event] = [sample(event) for event in EVENTS]
    boards = [path.read_bytes() for path in (Path(__file__).parents[2] / "examples/storyboards").iterdir()]
    prompt = PromptSubmitted(job_id="harbour", text="A boat leaves the harbour")
    return {
        "record": [
            *(encode(event) for event in events),
            encode(prompt),
            to_json(prompt).replace(b'"type":"PromptSubmitted",', b""),
        ],
        "storyboard": boards,
        "objects": [b"jobs/harbour/pieces/0-1-abc.mp4", b"/jobs/%2e%2e/x", b"file:///etc/passwd", b"harbour-1"],
        "options": [
            b"\1config=self-forcing-1.3b\nlora=styles/ink.safetensors:0.8,b\ncontrol=a/b.mp4\ncontrol_weight=1.5",
            b"\2model=wan/1.3b\nimage=a.png\nsteps=30\nguidance=5.5",
            b"\0drift_exposure=0.1\nfault=nan",
            b"\3model=veo-3.1\npeople=none",
        ],
        "filters": [b"\0\0\0\x01" * 6 + b"veryfast", b"\0\0\0\x18" * 6 + b"it's[a];b,c:d=e"],
        "letter": [to_text(_letter(event)) for event in events] + [to_text(_letter(prompt, b"no record"))],
    }[name]


TARGETS: Mapping[str, Target] = {
    "record": read_record,
    "storyboard": read_storyboard,
    "objects": point_at_object,
    "filters": build_filters,
    "options": choose_options,
    "letter": mend_letter,
}
