"""longtake.*.requested.v1, segments.v1, pieces.v1, pieces.checked.v1, videos.v1, videos.checked.v1 -> what a trace needs of them.

An event is a few kilobytes; what is kept of it until its job ends is a few hundred bytes.
"""

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from infra.traces.span import Attribute, Key
from schemas import records as r
from schemas.topics import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request. `cause` names the decision behind it; `sources` are the URIs of what it joins."""

    key: Key
    at_us: int
    cause: str
    sources: tuple[str, ...] = ()


class Part(NamedTuple):
    """A step inside a piece of work."""

    name: str
    start_us: int
    end_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Frames:
    """When each frame of a piece was generated, decoded and encoded: [T] int64 each, or empty."""

    first: int
    generated_us: "array[int]"
    decoded_us: "array[int]"
    encoded_us: "array[int]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """An answer: work that ended, well or not. `place` names the record; `made` is the URI of what a later request joins."""

    key: Key
    place: str
    service: str
    worker: str
    end_us: int
    start_us: int = 0
    """0: not said; the work waited from its request, or its source, on."""
    source: Key | None = None
    made: str = ""
    parts: tuple[Part, ...] = ()
    frames: Frames | None = None
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    error: str = ""


Fact = Asked | Done


def asked_of(event: Event, cause: str) -> Asked | None:
    """What a request says; None for other events."""
    match event:
        case r.SegmentRequested():
            key = Key("segment", event.segment, event.attempt)
            sources: tuple[str, ...] = ()
        case r.PieceRequested():
            key = Key("stitch", event.piece, event.attempt)
            both = (event.previous_frames, event.segment_frames)
            sources = tuple(blob.uri for blob in both if blob)
        case r.AssemblyRequested():
            key = Key("assemble", 0, event.attempt)
            sources = tuple(piece.video.uri for piece in event.pieces)
        case _:
            return None
    return Asked(key=key, at_us=event.requested_us, cause=cause, sources=sources)


def done_of(event: Event, place: str) -> Done | None:
    """What an answer says; None for other events."""
    match event:
        case r.SegmentGenerated() | r.SegmentFailed():
            return _segment(event, place)
        case r.PieceStitched() | r.SeamRejected():
            return _piece(event, place)
        case r.PieceChecked() | r.VideoChecked():
            return _check(event, place)
        case r.VideoAssembled() | r.AssemblyFailed():
            return _assembly(event, place)
        case _:
            return None


def _segment(event: r.SegmentGenerated | r.SegmentFailed, place: str) -> Done:
    key, engine = Key("segment", event.segment, event.attempt), f"{event.engine} {event.engine_version}"
    said: dict[str, Attribute] = {"longtake.engine": engine}
    if isinstance(event, r.SegmentFailed):
        said |= {"longtake.failure": event.kind.value, "longtake.retryable": event.retryable}
        error = f"{event.kind.value}: {event.reason}"
        return Done(
            key=key,
            place=place,
            service="generate",
            worker=event.worker,
            end_us=event.failed_us,
            attributes=said,
            error=error,
        )
    start_us, end_us = event.started_us, event.finished_us
    decoded_us = end_us - event.store_us
    parts = (
        Part("denoise", start_us, start_us + event.denoise_us),
        # Latents are stored while or before frames are decoded: the end is where the rest of both is.
        Part("decode", decoded_us - event.decode_us, decoded_us),
        Part("store", decoded_us, end_us),
    )
    inside = tuple(Part(name, max(a, start_us), min(max(a, b, start_us), end_us)) for name, a, b in parts)
    said |= {"longtake.restored": event.restored, "longtake.start_frame": event.start_frame}
    return Done(
        key=key,
        place=place,
        service="generate",
        worker=event.worker,
        start_us=start_us,
        end_us=end_us,
        made=event.frames.uri,
        parts=inside,
        attributes=said,
    )


def _piece(event: r.PieceStitched | r.SeamRejected, place: str) -> Done:
    key = Key("stitch", event.piece, event.attempt)
    said: dict[str, Attribute] = {"longtake.seam": event.seam.kind.value, "longtake.seam_score": event.seam.score}
    if isinstance(event, r.SeamRejected):
        said |= {"longtake.outcome": "rejected", "longtake.reason": event.reason}
        return Done(
            key=key, place=place, service="stitch", worker=event.worker, end_us=event.rejected_us, attributes=said
        )
    times = (event.generated_us, event.decoded_us, event.encoded_us)
    generated, decoded, encoded = (array("q", each) for each in times)
    return Done(
        key=key,
        place=place,
        service="stitch",
        worker=event.worker,
        start_us=event.started_us,
        end_us=event.finished_us,
        made=event.video.uri,
        parts=(Part("encode", min(encoded), max(encoded)),) if encoded else (),
        frames=Frames(first=event.start_frame, generated_us=generated, decoded_us=decoded, encoded_us=encoded),
        attributes=said | {"longtake.start_frame": event.start_frame, "longtake.frames": event.frames},
    )


def _check(event: r.PieceChecked | r.VideoChecked, place: str) -> Done:
    said: dict[str, Attribute] = {
        "longtake.verdict": event.verdict.value,
        "longtake.gates": tuple(dict.fromkeys(finding.gate for finding in event.findings)),
    }
    if isinstance(event, r.PieceChecked):
        key, source = Key("check piece", event.piece, event.attempt), Key("stitch", event.piece, event.attempt)
        service = "check-pieces"
        said |= {"longtake.vmaf": event.scores.vmaf_mean, "longtake.psnr_y_db": event.scores.psnr_y_mean}
    else:
        key, source = Key("check video", 0, event.attempt), Key("assemble", 0, event.attempt)
        service = "check-videos"
    return Done(
        key=key,
        place=place,
        service=service,
        worker=event.worker,
        end_us=event.checked_us,
        source=source,
        attributes=said,
    )


def _assembly(event: r.VideoAssembled | r.AssemblyFailed, place: str) -> Done:
    key = Key("assemble", 0, event.attempt)
    if isinstance(event, r.AssemblyFailed):
        return Done(
            key=key,
            place=place,
            service="assemble",
            worker=event.worker,
            end_us=event.failed_us,
            error=event.reason,
        )
    return Done(
        key=key,
        place=place,
        service="assemble",
        worker=event.worker,
        start_us=event.started_us,
        end_us=event.finished_us,
        attributes={"longtake.frames": event.frames, "longtake.bytes": event.video.size_bytes},
    )
