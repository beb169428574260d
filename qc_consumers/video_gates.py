"""The gates that only a whole video has: container, tracks, the borders of its pieces, sound against picture."""

from collections.abc import Iterator
from fractions import Fraction

from qc_consumers.gates import Facts
from qc_consumers.metrics.container import Container
from qc_consumers.profile import Evidence
from schemas.records import VideoAssembled

_BRANDS = {"isom", "iso2", "iso4", "iso5", "iso6", "mp41", "mp42", "avc1"}
_HANDLERS = {"video": "vide", "audio": "soun", "subtitles": "sbtl"}


def container_evidence(event: VideoAssembled, container: Container) -> Iterator[Evidence]:
    """Brand, order of the boxes, clocks and tracks."""
    if container.brand not in _BRANDS:
        yield _whole("brand", 1, f"major brand {container.brand!r}")
    if not container.faststart:
        yield _whole("faststart", 1, "the index lies behind the media data")
    found = sorted(track.handler for track in container.tracks)
    wanted = sorted(_HANDLERS.get(track.kind, track.kind) for track in event.tracks)
    if found != wanted:
        yield _whole("tracks", 1, f"tracks {found}, announced {wanted}")
    for track in container.tracks:
        ticks = Fraction(track.timescale * event.format.fps_den, event.format.fps_num)
        if track.handler == "vide" and ticks.denominator != 1:
            yield _whole("timescale", 1, f"timescale {track.timescale}: a frame is {float(ticks):.3f} ticks long")


def timeline_evidence(event: VideoAssembled, facts: Facts, container: Container) -> Iterator[Evidence]:
    """Start, duration, IDR pictures at the starts of pieces, the end of the sound against that of the picture."""
    shown = facts.scan.presented()
    start_s = float(shown[0].pts * facts.scan.time_base) if shown else 0.0
    yield _whole("start", abs(start_s), "seconds from 0 to the first frame")
    for first in event.piece_starts:
        if first < len(shown) and not shown[first].idr:
            yield Evidence(
                gate="piece_start", frame=first, value=1, detail="a piece does not begin with an IDR picture"
            )
    exact_s = float(event.frames / facts.claim.fps)
    durations = {track.handler: track.duration_us / 1e6 for track in container.tracks}
    error_s = abs(durations.get("vide", 0.0) - exact_s)
    yield _whole("duration", error_s, f"video track lasts {durations.get('vide')} s")
    if "soun" in durations:
        yield _whole(
            "av_sync", abs(durations["soun"] - exact_s), "end of the sound against end of the picture, in seconds"
        )


def _whole(gate: str, value: float, detail: str) -> Evidence:
    return Evidence(gate=gate, frame=-1, value=value, detail=detail)
