"""No encoder takes the machine from the other processes."""

import os
from pathlib import Path

import numpy as np
import pytest

from schemas.records import Rendition, VideoFormat
from streams.encoding.coding import coding_of
from streams.stitcher.encode import Encoder
from tests.encoding.builders import AV1, H264, HEVC


def policies() -> set[int]:
    return {os.sched_getscheduler(int(task.name)) for task in Path("/proc/self/task").iterdir()}


@pytest.mark.parametrize("rendition", [H264, HEVC, AV1], ids=lambda r: r.codec)
def test_no_thread_of_an_encoder_is_real_time(rendition: Rendition, tmp_path: Path) -> None:
    size = VideoFormat(width=256, height=144, fps_num=24, fps_den=1)
    picture = np.full((144 * 3 // 2, 256), 128, np.uint8)
    with Encoder(tmp_path / "video.mp4", size, coding_of(rendition), lambda: 0) as encoder:
        for _ in range(8):
            encoder.write(picture)
        assert policies() == {os.SCHED_OTHER}
        encoder.finish()
    assert policies() == {os.SCHED_OTHER}
