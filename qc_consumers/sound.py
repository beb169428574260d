"""The gates of the sound of a finished video. A video without sound has none of them."""

from collections.abc import Iterator
from pathlib import Path

from qc_consumers.metrics.audio import AudioError, measure_audio
from qc_consumers.metrics.container import Container
from qc_consumers.profile import Evidence, Profile

_SHORTEST_S = 3.0
"""The gate of EBU R 128 looks at blocks of 0.4 s; over less than a few of them loudness says nothing."""


def sound_evidence(video: Path, folder: Path, container: Container, profile: Profile) -> Iterator[Evidence]:
    """Loudness, peaks, silence, clipping, and where the sound begins."""
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
    for first_s, seconds in audio.silences:
        yield _whole("silence", seconds, f"silent from {first_s:.2f} s on")
    if audio.seconds >= _SHORTEST_S and audio.loudness_lufs is not None:
        target = profile.targets["loudness_lufs"]
        detail = f"{audio.loudness_lufs:.1f} LUFS, wanted {target:.1f}"
        yield _whole("loudness", abs(audio.loudness_lufs - target), detail)


def _whole(gate: str, value: float, detail: str) -> Evidence:
    return Evidence(gate=gate, frame=-1, value=value, detail=detail)
