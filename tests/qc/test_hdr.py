"""HDR10 is complete or its gate says what is missing: in files that an HEVC encoder made, with 10 bits."""

from dataclasses import replace
from pathlib import Path

import pytest

from qc_consumers.metrics.hdr import PQ, hdr_faults
from qc_consumers.metrics.packets import scan_packets
from tests.qc.hdr_film import FRAMES, GOP, Hdr, hdr_film

COMPLETE = Hdr()


def found(path: Path, hdr: Hdr, wanted: int | None = None) -> list[tuple[str, int, str]]:
    return [(fault.gate, fault.frame, fault.detail) for fault in hdr_faults(scan_packets(hdr_film(path, hdr)), wanted)]


@pytest.mark.parametrize("headers_again", [True, False])
def test_a_complete_file_has_nothing_missing(tmp_path: Path, headers_again: bool) -> None:
    hdr = replace(COMPLETE, headers_again=headers_again)
    assert found(tmp_path / "film.mp4", hdr) == []
    scan = scan_packets(tmp_path / "film.mp4")
    assert (scan.color, scan.pixel_format, len(scan.packets)) == ((9, 16, 9, 1), "yuv420p10le", FRAMES)
    assert {"hvcC", "colr", "mdcv", "clli"} <= scan.color_boxes
    message = next(packet.mastering for packet in scan.packets if packet.idr) or scan.config_mastering
    assert message is not None
    assert (message.most, message.least) == (10_000_000, 1)


WRONG = {
    "primaries": (replace(COMPLETE, primaries="bt709"), "hdr10", "colour primaries are 1, not 9"),
    "matrix": (replace(COMPLETE, matrix="bt709"), "hdr10", "colour matrix is 1, not 9"),
    "range": (replace(COMPLETE, color_range="full"), "hdr10", "the range is not limited"),
    "bits": (replace(COMPLETE, bits=8), "hdr10", "yuv420p has less than 10 bits"),
    "mdcv": (replace(COMPLETE, boxes=("clli",)), "hdr10_boxes", "no mdcv box"),
    "clli": (replace(COMPLETE, boxes=("mdcv",)), "hdr10_boxes", "no clli box"),
}


@pytest.mark.parametrize("name", WRONG)
def test_one_thing_that_is_wrong_is_named_and_nothing_else(tmp_path: Path, name: str) -> None:
    hdr, gate, words = WRONG[name]
    assert found(tmp_path / "film.mp4", hdr) == [(gate, -1, words)]


MISSING = {
    "display": (replace(COMPLETE, display=""), "a GOP without mastering display metadata"),
    "light": (replace(COMPLETE, light=""), "a GOP without content light level"),
    "dark": (
        replace(COMPLETE, display=COMPLETE.display.replace("L(10000000,1)", "L(1,10000000)")),
        "the mastering display is no brighter than it is dark",
    ),
    "levels": (replace(COMPLETE, light="400,1000"), "MaxFALL 1000 above MaxCLL 400"),
}


@pytest.mark.parametrize("name", MISSING)
def test_what_the_stream_does_not_say_is_named_for_every_gop(tmp_path: Path, name: str) -> None:
    hdr, words = MISSING[name]
    assert found(tmp_path / "film.mp4", hdr) == [("hdr10", first, words) for first in range(0, FRAMES, GOP)]


def test_another_transfer_is_a_fault_where_the_profile_wants_hdr10_and_none_where_it_does_not(tmp_path: Path) -> None:
    hlg = replace(COMPLETE, transfer="arib-std-b67")
    assert found(tmp_path / "a.mp4", hlg) == []
    assert found(tmp_path / "b.mp4", hlg, wanted=PQ) == [("hdr10", -1, "transfer is 18, not 16")]
