"""The gates that only a whole video has: container, tracks, the borders of its pieces, sound against picture."""

from collections.abc import Iterator
from fractions import Fraction

from qc_consumers.gates import Facts, Profile
from qc_consumers.metrics.container import Container
from schemas.records import Finding, Verdict, VideoAssembled

_BRANDS = {"isom", "iso2", "iso4", "iso5", "iso6", "mp41", "mp42", "avc1"}
_HANDLERS = {"video": "vide", "audio": "soun"}


def judge_container(event: VideoAssembled, container: Container) -> Iterator[Finding]:
    """Brand, order of the boxes, clocks and tracks."""
    if container.brand not in _BRANDS:
        yield _reassemble("brand", 0, 1, f"major brand {container.brand!r}")
    if not container.faststart:
        yield _reassemble("faststart", 0, 1, "the index lies behind the media data")
    found = sorted(track.handler for track in container.tracks)
    wanted = sorted(_HANDLERS.get(track.kind, track.kind) for track in event.tracks)
    if found != wanted:
        yield _reassemble("tracks", len(found), len(wanted), f"tracks {found}, announced {wanted}")
    for track in container.tracks:
        ticks = Fraction(track.timescale * event.format.fps_den, event.format.fps_num)
        if track.handler == "vide" and ticks.denominator != 1:
            yield _reassemble("timescale", track.timescale, 0, f"a frame is {float(ticks):.3f} ticks long")


def judge_timeline(event: VideoAssembled, facts: Facts, container: Container, profile: Profile) -> Iterator[Finding]:
    """Start, duration, IDR pictures at the starts of pieces, sound within the tolerance of the picture."""
    shown = facts.scan.presented()
    start_s = float(shown[0].pts * facts.scan.time_base) if shown else 0.0
    if abs(start_s) > profile.step_tolerance_s:
        yield _reassemble("start", start_s, profile.step_tolerance_s, "the first frame is not at 0 s")
    for first in event.piece_starts:
        if first < len(shown) and not shown[first].idr:
            yield Finding(
                gate="piece_start",
                verdict=Verdict.REENCODE,
                frame=first,
                value=0,
                limit=1,
                detail="a piece does not begin with an IDR picture",
            )
    exact_s = float(event.frames / facts.claim.fps)
    durations = {track.handler: track.duration_us / 1e6 for track in container.tracks}
    error_s = abs(durations.get("vide", 0.0) - exact_s)
    if error_s > profile.step_tolerance_s:
        yield _reassemble("duration", error_s, profile.step_tolerance_s, f"video track lasts {durations.get('vide')} s")
    if "soun" in durations:
        yield from _sync(durations["soun"] - exact_s, profile)


def _sync(error_s: float, profile: Profile) -> Iterator[Finding]:
    detail = "end of the sound against end of the picture, in seconds"
    if abs(error_s) > profile.sync_s:
        yield _reassemble("av_sync", error_s, profile.sync_s, detail)
    elif abs(error_s) > profile.sync_warning_s:
        yield Finding(
            gate="av_sync",
            verdict=Verdict.PASS,
            frame=-1,
            value=error_s,
            limit=profile.sync_warning_s,
            detail=detail,
        )


def _reassemble(gate: str, value: float, limit: float, detail: str) -> Finding:
    return Finding(gate=gate, verdict=Verdict.REENCODE, frame=-1, value=value, limit=limit, detail=detail)
