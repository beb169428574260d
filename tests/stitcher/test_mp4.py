"""A file is a piece only if others can be joined to it."""

from fractions import Fraction
from pathlib import Path

import av
import pytest

from schemas.records import VideoFormat
from streams.mp4 import Clock, CodedVideoError, clock_of, examine
from tests.stitcher.clips import shot

CLOCK = Clock(timescale=24000, step=1000)


def encoded(path: Path, codec: str = "libx264", *, times: range = range(0, 30000, 1000), params: str = "") -> Path:
    """Frames of the clip at those ticks, as another encoder might have made them."""
    with av.open(str(path), "w", format="mp4", options={"video_track_timescale": "24000"}) as container:
        stream = container.add_stream(codec, rate=24, options={"x264-params": params} if params else {})
        stream.width, stream.height, stream.pix_fmt = 256, 144, "yuv420p"
        stream.codec_context.time_base = Fraction(1, 24000)
        for time, picture in zip(times, shot(0, len(times), width=256, height=144), strict=True):
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24").reformat(format="yuv420p")
            frame.pts, frame.time_base = time, Fraction(1, 24000)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def test_a_keyframe_of_an_open_group_is_no_idr(tmp_path: Path) -> None:
    path = encoded(tmp_path / "open.mp4", params="keyint=10:min-keyint=10:scenecut=0:open-gop=1:bframes=2")
    with av.open(str(path)) as container:
        assert sum(packet.is_keyframe for packet in container.demux(video=0) if packet.size) > 1
    assert examine(path, CLOCK).idr_frames == (0,)


@pytest.mark.parametrize("times", [range(1000, 10000, 1000), range(0, 20000, 2000)])
def test_frames_that_are_late_or_missing_are_noticed(tmp_path: Path, times: range) -> None:
    with pytest.raises(CodedVideoError, match="equal steps"):
        examine(encoded(tmp_path / "gap.mp4", times=times), CLOCK)


def test_another_clock_or_codec_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(CodedVideoError, match="clock"):
        examine(encoded(tmp_path / "clock.mp4"), Clock(timescale=30000, step=1000))
    with pytest.raises(CodedVideoError, match="not h264"):
        examine(encoded(tmp_path / "mpeg4.mp4", "mpeg4"), CLOCK)


@pytest.mark.parametrize(
    ("fps", "clock"), [((24, 1), (24000, 1000)), ((24000, 1001), (24000, 1001)), ((25, 2), (25000, 2000))]
)
def test_the_clock_has_a_whole_number_of_ticks_per_frame(fps: tuple[int, int], clock: tuple[int, int]) -> None:
    found = clock_of(VideoFormat(width=2, height=2, fps_num=fps[0], fps_den=fps[1]))
    assert (found.timescale, found.step) == clock
    assert found.step * found.tick_s == Fraction(fps[1], fps[0])
