"""The gates of the sound of a finished video. A video without sound has none of them."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from qc_consumers.metrics.audio import AudioError, measure_audio
from qc_consumers.metrics.container import Container
from qc_consumers.profile import Evidence, Profile
from schemas.records import VideoAssembled

_SHORTEST_S = 3.0
"""The gate of EBU R 128 looks at blocks of 0.4 s; over less than a few of them loudness says nothing."""


def sound_evidence(
    event: VideoAssembled, video: Path, folder: Path, container: Container, profile: Profile
) -> Iterator[Evidence]:
    """Loudness, peaks, silence where something is meant to be heard, clipping, and where the sound begins."""
    if not any(track.handler == "soun" for track in container.tracks):
        return
    try:
        audio = measure_audio(video, folder, silence_s=profile.limit("silence"))
    except AudioError as error:
        yield Evidence(gate="audio_decode", frame=-1, value=1, detail=str(error))
        return
    yield _whole("av_sync", abs(audio.start_s), "start of the sound against start of the picture, in seconds")
    yield _whole("clipping", audio.clipped_share, "share of samples in runs at full scale")
    yield _whole("true_peak", audio.true_peak_dbtp, "dBTP")
    for first_s, seconds in _unmeant(audio.silences, event.sounds_us):
        yield _whole("silence", seconds, f"silent from {first_s:.2f} s on")
    if audio.seconds >= _SHORTEST_S and audio.loudness_lufs is not None:
        # A mix whose peaks are too high for the target is as loud as they allow; the event says how loud that is.
        target = min(profile.targets["loudness_lufs"], event.loudness_lufs or 0.0)
        detail = f"{audio.loudness_lufs:.1f} LUFS, wanted {target:.1f}"
        yield _whole("loudness", abs(audio.loudness_lufs - target), detail)


def _unmeant(silences: Sequence[tuple[float, float]], sounds_us: Sequence[int]) -> Iterator[tuple[float, float]]:
    """The parts of silences in which something is meant to be heard; without word of that, all of them."""
    if not sounds_us:
        yield from silences
    stretches = list(zip(sounds_us[::2], sounds_us[1::2], strict=False))
    for first_s, seconds in silences:
        for begin_us, end_us in stretches:
            begin_s, end_s = max(first_s, begin_us / 1e6), min(first_s + seconds, end_us / 1e6)
            if begin_s < end_s:
                yield begin_s, end_s - begin_s


def _whole(gate: str, value: float, detail: str) -> Evidence:
    return Evidence(gate=gate, frame=-1, value=value, detail=detail)
