"""Subtitles as a track of an MP4 (3GPP timed text, `mov_text`): players show or hide it."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import av
from av.container import OutputContainer
from av.subtitles.stream import SubtitleStream

from schemas.records import Caption, Track
from streams.joining import Packets

_TICKS = 1000
_HEADER = b"""[Script Info]
ScriptType: v4.00+
[V4+ Styles]
Format: Name, Fontname, Fontsize, PrimaryColour, SecondaryColour, OutlineColour, BackColour, Bold, Italic, Underline, \
StrikeOut, ScaleX, ScaleY, Spacing, Angle, BorderStyle, Outline, Shadow, Alignment, MarginL, MarginR, MarginV, Encoding
Style: Default,Arial,16,&Hffffff,&Hffffff,&H0,&H0,0,0,0,0,100,100,0,0,1,1,0,2,10,10,10,1
[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
"""
"""ASS, from which the encoder takes the style of the track."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptionTrack:
    """The lines in order, none before the end of the one in front of it."""

    lines: Sequence[Caption]

    @property
    def track(self) -> Track:
        """As events say it."""
        return Track(kind="subtitles", codec="mov_text", duration_us=self.lines[-1].end_us, samples=len(self.lines))

    def packets(self, output: OutputContainer) -> Packets:
        """Add the track to the file; its packets. Between them the muxer says that nothing is shown."""
        stream = output.add_stream("mov_text")
        stream.codec_context.subtitle_header = _HEADER
        stream.time_base = Fraction(1, _TICKS)
        return (self._packet(line, stream) for line in self.lines)

    def _packet(self, line: Caption, stream: SubtitleStream) -> "av.Packet[Any]":
        text = line.text.encode()
        packet: av.Packet[Any] = av.Packet(len(text).to_bytes(2) + text)
        start, end = (round(time_us * _TICKS / 1_000_000) for time_us in (line.start_us, line.end_us))
        packet.pts = packet.dts = start
        packet.duration, packet.time_base = end - start, Fraction(1, _TICKS)
        packet.stream = stream
        return packet
