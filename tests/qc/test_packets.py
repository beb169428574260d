"""What packets say without being decoded agrees with what the decoder says."""

from pathlib import Path

import av
import pytest
from av.video.frame import PictureType

from qc_consumers.metrics.packets import PacketScan, UnreadableError, scan_packets
from tests.qc.clips import bunny, encoded, ffmpeg

X265 = "keyint=24:min-keyint=24:scenecut=0:open-gop={}:bframes=2:log-level=none:pools=1"


def kinds_of_decoder(path: Path) -> list[str]:
    with av.open(str(path)) as container:
        return [PictureType(frame.pict_type).name for frame in container.decode(video=0)]


def hevc(tmp_path: Path, open_gop: int) -> PacketScan:
    source = encoded(tmp_path / "h264.mp4", bunny()[:60])
    ffmpeg("-i", source, "-c:v", "libx265", "-x265-params", X265.format(open_gop), tmp_path / "hevc.mp4")
    return scan_packets(tmp_path / "hevc.mp4")


def test_h264_picture_types_are_those_of_the_decoder(tmp_path: Path) -> None:
    path = encoded(tmp_path / "clip.mp4", bunny()[:60])
    shown = scan_packets(path).presented()
    assert [packet.kind for packet in shown] == kinds_of_decoder(path)
    assert [frame for frame, packet in enumerate(shown) if packet.idr] == [0, 24, 48]


def test_hevc_picture_types_are_those_of_the_decoder(tmp_path: Path) -> None:
    shown = hevc(tmp_path, 0).presented()
    assert [packet.kind for packet in shown] == kinds_of_decoder(tmp_path / "hevc.mp4")
    assert [frame for frame, packet in enumerate(shown) if packet.idr] == [0, 24, 48]


def test_an_open_gop_of_hevc_has_keyframes_that_are_no_idr(tmp_path: Path) -> None:
    shown = hevc(tmp_path, 1).presented()
    assert [frame for frame, packet in enumerate(shown) if packet.idr] == [0]
    assert len([packet for packet in shown if packet.keyframe]) == 3


def test_gops_and_steps_are_counted_in_frames_that_are_shown(tmp_path: Path) -> None:
    scan = scan_packets(encoded(tmp_path / "clip.mp4", bunny()[:60]))
    assert scan.gops() == [(0, 24), (24, 24), (48, 12)]
    assert not any(scan.step_errors_s(24))  # pyright: ignore[reportArgumentType] (a whole number is a fraction)


def test_a_packet_whose_units_do_not_fill_it_is_broken(tmp_path: Path) -> None:
    path = encoded(tmp_path / "clip.mp4", bunny()[:24])
    data = path.read_bytes()
    begin = data.index(b"mdat") + 4
    (tmp_path / "bad.mp4").write_bytes(data[:begin] + b"\x7f" + data[begin + 1 :])
    assert scan_packets(path).broken == 0
    assert scan_packets(tmp_path / "bad.mp4").broken == 1


@pytest.mark.parametrize("data", [b"", b"\0" * 100, b"ftyp" * 50])
def test_what_is_no_video_is_unreadable(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "clip.mp4").write_bytes(data)
    with pytest.raises(UnreadableError):
        scan_packets(tmp_path / "clip.mp4")


def test_a_file_with_sound_only_is_unreadable(tmp_path: Path) -> None:
    ffmpeg("-f", "lavfi", "-i", "sine=duration=1", tmp_path / "sound.mp4")
    with pytest.raises(UnreadableError, match="no video"):
        scan_packets(tmp_path / "sound.mp4")
