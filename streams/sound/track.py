"""The sounds of a request to one track: mixed twice, first to measure, then to be encoded. Nothing is kept of it but seconds.

Loudness goes to that of streams, -16 LUFS, as far as the true peak allows; what it came to is measured, and said.
"""

import wave
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path

import av
import numpy as np
from av.audio.stream import AudioStream
from av.container import OutputContainer

from infra.objects import BlobError
from schemas.records import AssetRef, Sound, Track
from streams.fetching import AssetFiles
from streams.joining import Packets
from streams.sound import RATE, Samples, SoundError
from streams.sound.files import decoded, looped
from streams.sound.limiter import limited
from streams.sound.loudness import Meter
from streams.sound.mix import Cue, mixed
from streams.sound.speech import WAV, spoken

TARGET_LUFS = -16.0
"""As the gates of QC want it."""
CEILING_DBTP = -2.0
"""One below the gate: encoding adds some."""
_MOST_LIMITED_DB = 6.0
"""Peaks are not lowered by more for the sake of loudness: a few clicks are no loud music."""
_MOST_GAIN_DB = 30.0
_BIT_RATE = 192_000
_CHUNK = 1024
"""Samples of an AAC frame."""


def cues_of(sounds: Iterable[Sound], samples: int, assets: AssetFiles, folder: Path) -> list[Cue]:
    """Where each is heard; files are put in `folder`. Raises: SoundError; as `assets` if the store is away."""
    return [_cue(sound, samples, assets, folder / f"speech-{n}.wav") for n, sound in enumerate(sounds)]


def samples_of(seconds: Fraction) -> int:
    """The nearest number."""
    return round(seconds * RATE)


def stretches_us(cues: Iterable[Cue]) -> tuple[int, ...]:
    """Start and end of each stretch in which something is meant to be heard, in microseconds, in order."""
    edges: list[int] = []
    for start, end in sorted((cue.start, cue.end) for cue in cues):
        if edges and start <= edges[-1]:
            edges[-1] = max(edges[-1], end)
        else:
            edges += [start, end]
    return tuple(edge * 1_000_000 // RATE for edge in edges)


@dataclass(frozen=True, slots=True, kw_only=True)
class SoundTrack:
    """A track of sound beside the pictures. Its loudness is known when all of it was encoded."""

    cues: Sequence[Cue]
    samples: int
    _meter: Meter = field(default_factory=Meter, init=False)

    @property
    def lufs(self) -> float:
        """Of what was encoded; 0 if it is too short or too quiet to be measured."""
        return self._meter.lufs() or 0.0

    @property
    def track(self) -> Track:
        """As events say it."""
        duration_us = self.samples * 1_000_000 // RATE
        return Track(kind="audio", codec="aac", duration_us=duration_us, samples=self.samples)

    def packets(self, output: OutputContainer) -> Packets:
        """Add the track to the file; its packets, in order. An edit list takes back the encoder's delay. Raises: SoundError."""
        stream = output.add_stream("aac", rate=RATE, layout="stereo")
        stream.bit_rate = _BIT_RATE
        return self._encoded(stream)

    def mastered(self) -> Iterator[Samples]:
        """The mix at its loudness. Raises: SoundError."""
        meter = Meter()
        for block in mixed(self.cues, self.samples):
            meter.push(block)
        gain = np.float32(10 ** (_gain_db(meter) / 20))
        for block in limited((gain * block for block in mixed(self.cues, self.samples)), 10 ** (CEILING_DBTP / 20)):
            self._meter.push(block)
            yield block

    def _encoded(self, stream: AudioStream) -> Packets:
        for index, chunk in enumerate(_chunks(self.mastered())):
            frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(chunk.T), format="fltp", layout="stereo")
            frame.sample_rate, frame.pts, frame.time_base = RATE, index * _CHUNK, Fraction(1, RATE)
            yield from stream.encode(frame)
        yield from stream.encode(None)


def _gain_db(meter: Meter) -> float:
    lufs = meter.lufs()
    room_db = CEILING_DBTP - meter.peak_dbtp()
    if lufs is None:  # too short to be measured: as it is
        return min(0.0, room_db)
    return min(TARGET_LUFS - lufs, room_db + _MOST_LIMITED_DB, _MOST_GAIN_DB)


def _chunks(blocks: Iterable[Samples]) -> Iterator[Samples]:
    """The same samples, so many at a time; the last are fewer."""
    held: Samples = np.zeros((0, 2), np.float32)
    for block in blocks:
        held = np.concatenate([held, block])
        whole = len(held) // _CHUNK * _CHUNK
        yield from held[:whole].reshape(-1, _CHUNK, 2)
        held = held[whole:]
    if len(held):
        yield held


def _cue(sound: Sound, samples: int, assets: AssetFiles, speech: Path) -> Cue:
    start = _us_samples(sound.start_us)
    if sound.asset is None:
        spoken(sound, speech)
        blocks, length = partial(decoded, speech, WAV), _wav_samples(speech)
    else:
        path, media_type = _path(sound.asset, assets, speech.parent), sound.asset.content.media_type
        blocks = partial(looped if sound.loop else decoded, path, media_type)
        length = samples if sound.loop else _us_samples(sound.asset.duration_us)
    return Cue(
        start=start,
        end=min(samples, start + length),
        gain=10 ** (sound.gain_db / 20),
        fade_in=_us_samples(sound.fade_in_us),
        fade_out=_us_samples(sound.fade_out_us),
        blocks=blocks,
    )


def _path(asset: AssetRef, assets: AssetFiles, folder: Path) -> Path:
    try:
        return assets.path_of(asset, folder)
    except BlobError as error:
        raise SoundError(str(error)) from error


def _us_samples(time_us: int) -> int:
    """The nearest sample."""
    return (time_us * RATE + 500_000) // 1_000_000


def _wav_samples(path: Path) -> int:
    """At 48 kHz, rounded up."""
    with wave.open(str(path)) as file:
        return -(-file.getnframes() * RATE // file.getframerate())
