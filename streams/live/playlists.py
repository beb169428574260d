"""HLS playlists (RFC 8216) of what is on a job's shelf. Pure: the same shelf gives the same bytes."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from schemas.records import VideoFormat
from streams.live.fragments import Header
from streams.live.names import MAIN, Segment, init_name, playlist_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """A stream of the ladder: its header and its segments so far, in order."""

    strand: str
    header: Header
    segments: Sequence[Segment]


def media_playlist(
    strand: str, segments: Sequence[Segment], size: VideoFormat, most_frames: int, *, ended: bool
) -> str:
    """Grows at its end only. `most_frames` is what a segment has at most: the target duration must never change."""
    frame_s = Fraction(size.fps_den, size.fps_num)
    longest = max([most_frames, *(segment.frames for segment in segments)])
    lines = [
        "#EXTM3U",
        "#EXT-X-VERSION:7",
        f"#EXT-X-TARGETDURATION:{ceil(longest * frame_s)}",
        "#EXT-X-MEDIA-SEQUENCE:0",
        f"#EXT-X-PLAYLIST-TYPE:{'VOD' if ended else 'EVENT'}",
        "#EXT-X-INDEPENDENT-SEGMENTS",
        "#EXT-X-START:TIME-OFFSET=0",
        f'#EXT-X-MAP:URI="{init_name(strand)}"',
    ]
    for segment in segments:
        lines += [f"#EXTINF:{float(segment.frames * frame_s):.6f},", segment.name]
    return "\n".join([*lines, *(["#EXT-X-ENDLIST"] if ended else [])]) + "\n"


def master_playlist(rungs: Sequence[Rung], size: VideoFormat) -> str:
    """The ladder, the video itself first. Bit rates are those of the segments so far."""
    rate = size.fps_num / size.fps_den
    lines = ["#EXTM3U", "#EXT-X-VERSION:7", "#EXT-X-INDEPENDENT-SEGMENTS"]
    for rung in sorted(rungs, key=lambda rung: (rung.strand != MAIN, rung.strand)):
        seconds = [segment.frames / rate for segment in rung.segments]
        bits = [8 * segment.size_bytes for segment in rung.segments]
        peak = ceil(max(b / s for b, s in zip(bits, seconds, strict=True)))
        header = rung.header
        lines += [
            f"#EXT-X-STREAM-INF:BANDWIDTH={peak},AVERAGE-BANDWIDTH={ceil(sum(bits) / sum(seconds))},"
            f'CODECS="{header.codec_string}",RESOLUTION={header.width}x{header.height},FRAME-RATE={rate:.3f}',
            playlist_name(rung.strand),
        ]
    return "\n".join(lines) + "\n"
