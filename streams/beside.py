"""What goes into a finished video beside its pictures, or lies beside it: sound and subtitles."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from schemas.records import AssemblyRequested, Caption, Track
from streams.captions.files import lines_of, webvtt
from streams.captions.track import CaptionTrack
from streams.captions.wishes import FILE, TRACK
from streams.fetching import AssetFiles
from streams.joining import Beside
from streams.sound.track import SoundTrack, cues_of, samples_of, stretches_us


@dataclass(frozen=True, slots=True, kw_only=True)
class Extras:
    """None of it for most videos."""

    sound: SoundTrack | None
    captions: CaptionTrack | None
    webvtt: str
    """Empty: there is no file of subtitles."""

    @property
    def writers(self) -> list[Beside]:
        """Of the tracks, in order."""
        return [each.packets for each in (self.sound, self.captions) if each]

    @property
    def tracks(self) -> list[Track]:
        """As events say them."""
        return [each.track for each in (self.sound, self.captions) if each]

    @property
    def lufs(self) -> float:
        """Of the sound, once it is written; 0: there is none."""
        return self.sound.lufs if self.sound else 0.0

    @property
    def sounds_us(self) -> tuple[int, ...]:
        """When it is meant to be heard."""
        return stretches_us(self.sound.cues) if self.sound else ()


def extras_of(request: AssemblyRequested, length_s: Fraction, assets: AssetFiles, folder: Path) -> Extras:
    """As long as the pictures. Raises: SoundError or BlobError for what cannot be had."""
    sound = None
    if request.sounds:
        samples = samples_of(length_s)
        sound = SoundTrack(cues=cues_of(request.sounds, samples, assets, folder), samples=samples)
    if request.captions is None:
        return Extras(sound=sound, captions=None, webvtt="")
    lines = tuple(_within(lines_of(request.captions, assets, folder), round(length_s * 1_000_000)))
    shown = request.captions.shown
    return Extras(
        sound=sound,
        captions=CaptionTrack(lines=lines) if lines and shown == TRACK else None,
        webvtt=webvtt(lines) if shown == FILE else "",
    )


def _within(lines: Iterable[Caption], end_us: int) -> Iterator[Caption]:
    """A file of subtitles may be longer than the video."""
    for line in lines:
        if line.start_us < end_us:
            yield replace(line, end_us=min(line.end_us, end_us))
