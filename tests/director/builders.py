"""Prompts, instant workers and a line in memory, for tests of the director's decisions."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeVar

import xxhash

from infra.bus.decision import Decision
from infra.bus.message import Message
from schemas import records as r
from schemas.codec import encode
from schemas.topics import Event, key_of
from streams.decider import INPUTS, JobDecider
from streams.jobs import Rules

E = TypeVar("E", bound=Event)
START_US = 1_700_000_000_000_000
SECOND_US = 1_000_000


def instruct(shots: Sequence[r.Shot], negative: Sequence[str]) -> tuple[tuple[r.Instruction, ...], tuple[r.Lint, ...]]:
    """The plain text, as after a parse that took too long."""
    return tuple(r.Instruction(text=shot.prompt, parsed=False) for shot in shots), ()


def decider(**rules: Any) -> JobDecider:
    return JobDecider(rules=Rules(**rules), instruct=instruct)


def prompt(**fields: Any) -> r.PromptSubmitted:
    defaults: dict[str, Any] = {"job_id": "harbour", "text": "A boat leaves the harbour", "duration_s": 4.0}
    return r.PromptSubmitted(**(defaults | fields))


def message(event: Event, **fields: Any) -> Message:
    return raw_message(event.topic, encode(event), key=key_of(event).encode(), **fields)


def raw_message(topic: str, value: bytes | None, *, key: bytes | None = b"harbour", **fields: Any) -> Message:
    defaults: dict[str, Any] = {"partition": 0, "offset": 0, "headers": (), "timestamp_us": START_US}
    return Message(topic=topic, key=key, value=value, **(defaults | fields))


def blob(name: str, *parts: str) -> r.Blob:
    """A pointer to what was made from `parts`: equal parts give equal bytes."""
    digest = xxhash.xxh3_128_hexdigest("|".join(parts).encode())
    return r.Blob(uri=f"file:///objects/{name}/{digest}", digest=f"xxh3:{digest}", size_bytes=1, media_type="x/y")


def scores(**fields: Any) -> r.Scores:
    numbers = dict.fromkeys(r.Scores.__dataclass_fields__, 90.0) | {"frames": 32}
    return r.Scores(**(numbers | {"vmaf_model": "vmaf_v0.6.1", "libvmaf_version": "3"} | fields))


def finding(verdict: r.Verdict, *, frame: int = -1) -> r.Finding:
    return r.Finding(gate="vmaf_mean", verdict=verdict, frame=frame, value=71.5, limit=82.0)


def timeless(event: Event) -> dict[str, Any]:
    """The event without what depends on when it was."""
    times = ("submitted_us", "changed_us", "rescanned_us", "finished_us", "requested_us")
    return {name: value for name, value in asdict(event).items() if name not in times}


# --- workers: the same answer for the same request ---------------------------------------------------------------------


def generated(request: r.SegmentRequested, **fields: Any) -> r.SegmentGenerated:
    made_of = (str(request.segment), str(request.variation), *(latents.digest for latents in request.latent_ref))
    event = r.SegmentGenerated(
        job_id=request.job_id,
        segment=request.segment,
        attempt=request.attempt,
        request_hash=request.request_hash,
        start_frame=request.start_frame,
        engine=request.engine,
        engine_version="1",
        latents=blob("latents", *made_of),
        frames=blob("frames", *made_of),
        restored=False,
        started_us=START_US,
        finished_us=START_US,
        denoise_us=1,
        decode_us=1,
        store_us=1,
        worker="generate-0",
    )
    return replace(event, **fields)


def segment_failed(request: r.SegmentRequested, **fields: Any) -> r.SegmentFailed:
    event = r.SegmentFailed(
        job_id=request.job_id,
        segment=request.segment,
        attempt=request.attempt,
        request_hash=request.request_hash,
        kind=r.FailureKind.CRASHED,
        reason="exit code -9",
        retryable=True,
        engine=request.engine,
        engine_version="1",
        failed_us=START_US,
        worker="generate-0",
    )
    return replace(event, **fields)


def stitched(request: r.PieceRequested, **fields: Any) -> r.PieceStitched:
    continuous = request.seam is r.SeamKind.CONTINUOUS
    gain = (
        request.previous_correction.gain[0] + int(request.segment_frames.digest[-2:], 16) / 4096 if continuous else 1.0
    )
    made_of = (request.segment_frames.digest, str(gain), str(request.encode.crf))
    event = r.PieceStitched(
        job_id=request.job_id,
        piece=request.piece,
        attempt=request.attempt,
        request_hash=request.request_hash,
        format=request.format,
        start_frame=request.start_frame,
        frames=request.frames,
        video=blob("pieces", *made_of),
        reference=blob("references", *made_of),
        reference_head_context=0,
        reference_tail_context=0,
        decoder_config="xxh3:same",
        seam=r.Seam(kind=request.seam, overlap_frames=request.head_overlap),
        correction=r.Correction(gain=(gain,) * 3),
        encode=request.encode,
        generated_us=(START_US,) * request.frames,
        decoded_us=(START_US,) * request.frames,
        encoded_us=(START_US,) * request.frames,
        started_us=START_US,
        finished_us=START_US,
        worker="stitcher-0",
        renditions=tuple(
            r.RenditionPiece(
                name=each.name,
                codec=each.codec,
                width=each.width,
                height=each.height,
                video=blob(f"renditions/{each.name}", *made_of),
                decoder_config=f"xxh3:{each.name}",
            )
            for each in request.renditions
        ),
    )
    return replace(event, **fields)


def rejected(request: r.PieceRequested) -> r.SeamRejected:
    return r.SeamRejected(
        job_id=request.job_id,
        piece=request.piece,
        attempt=request.attempt,
        request_hash=request.request_hash,
        reason="offset 5 frames",
        seam=r.Seam(kind=request.seam, overlap_frames=request.head_overlap, score=0.0),
        rejected_us=START_US,
        worker="stitcher-0",
    )


def piece_checked(stitched: r.PieceStitched, verdict: r.Verdict = r.Verdict.PASS, **fields: Any) -> r.PieceChecked:
    event = r.PieceChecked(
        job_id=stitched.job_id,
        piece=stitched.piece,
        attempt=stitched.attempt,
        request_hash=stitched.request_hash,
        verdict=verdict,
        findings=() if verdict is r.Verdict.PASS else (finding(verdict, frame=stitched.start_frame),),
        scores=scores(frames=stitched.frames),
        checked_us=START_US,
        worker="pieces-0",
    )
    return replace(event, **fields)


def assembled(request: r.AssemblyRequested) -> r.VideoAssembled:
    return r.VideoAssembled(
        job_id=request.job_id,
        attempt=request.attempt,
        request_hash=request.request_hash,
        format=request.format,
        frames=request.frames,
        duration_us=round(request.frames * SECOND_US * request.format.fps_den / request.format.fps_num),
        video=blob("videos", *(piece.video.digest for piece in request.pieces)),
        tracks=(r.Track(kind="video", codec="h264", duration_us=1, samples=request.frames),),
        piece_starts=tuple(piece.start_frame for piece in request.pieces),
        gop_frames=24,
        started_us=START_US,
        finished_us=START_US,
        worker="assembler-0",
        renditions=tuple(
            r.RenditionVideo(
                name=each.name,
                codec="hvc1.2.4.L123.b0",
                width=each.width,
                height=each.height,
                video=blob(f"videos/{each.name}", each.decoder_config),
            )
            for each in request.pieces[0].renditions
        ),
    )


def video_checked(video: r.VideoAssembled, verdict: r.Verdict = r.Verdict.PASS, frame: int = -1) -> r.VideoChecked:
    return r.VideoChecked(
        job_id=video.job_id,
        attempt=video.attempt,
        request_hash=video.request_hash,
        verdict=verdict,
        findings=() if verdict is r.Verdict.PASS else (finding(verdict, frame=frame),),
        checked_us=START_US,
        worker="videos-0",
    )


def answers(event: Event) -> tuple[Event, ...]:
    """What a line without trouble makes of a director's or a worker's event."""
    match event:
        case r.SegmentRequested():
            return (generated(event),)
        case r.PieceRequested():
            return (stitched(event),)
        case r.PieceStitched():
            return (piece_checked(event),)
        case r.AssemblyRequested():
            return (assembled(event),)
        case r.VideoAssembled():
            return (video_checked(event),)
        case _:
            return ()


@dataclass
class Line:
    """A director and its row, with everything it said."""

    decider: JobDecider = field(default_factory=decider)
    row: r.JobState | None = None
    rows: list[r.JobState] = field(default_factory=list)
    """All that it was."""
    now_us: int = START_US
    said: list[Event] = field(default_factory=list)
    pending: list[Event] = field(default_factory=list)
    """Not yet sent."""

    def send(self, event: Event) -> tuple[Event, ...]:
        """What the director says to an event. A job does not wait: that it is queued goes without saying, but is in `said`."""
        events = self.take(self.decider.decide(message(event), self.row, self.now_us))
        if self.row and self.row.stage is r.Stage.QUEUED:
            return self.take(self.decider.start(self.row, self.now_us))
        return events

    def take(self, decision: Decision) -> tuple[Event, ...]:
        if decision.state:
            self.row = decision.state
            self.rows.append(decision.state)
        self.said += decision.events
        return decision.events

    def run(self, *events: Event) -> None:
        """Send the events and all that follows from them, in order."""
        self.pending += events
        while self.pending:
            self._turn()

    def until(self, kind: type[E], *events: Event, index: int = 0) -> E:
        """Run up to the first request of that kind for segment or piece `index`, and leave it unanswered."""
        self.pending += events
        while self.pending:
            for output in self._turn():
                if isinstance(output, kind) and index in (getattr(output, "segment", 0), getattr(output, "piece", 0)):
                    for answer in answers(output):
                        self.pending.remove(answer)
                    return output
        raise AssertionError(f"never said {kind.__name__} {index}")

    def _turn(self) -> tuple[Event, ...]:
        event = self.pending.pop(0)
        outputs = self.send(event) if event.topic in INPUTS else ()
        self.pending += [answer for cause in (event, *outputs) for answer in answers(cause)]
        return outputs

    def last(self, kind: type[E]) -> E:
        return self.all(kind)[-1]

    def all(self, kind: type[E]) -> list[E]:
        return [event for event in self.said if isinstance(event, kind)]

    @property
    def job(self) -> r.JobState:
        assert self.row is not None
        return self.row
