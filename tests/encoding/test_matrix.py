"""A diagonal of the encoding matrix: every codec and every rate control once or more. `make matrix` runs all of it."""

import pytest

from benchmarks.matrix import Cell, cells, pictures_of, rendition_of, tried
from qc_consumers.profile import load_profiles
from schemas.records import Rendition

DIAGONAL = [
    ("h264", 8, "crf"),
    ("h264", 8, "cbr"),
    ("hevc", 8, "vbr"),
    ("hevc", 8, "cbr"),
    ("hevc", 10, "capped_crf"),
    ("av1", 8, "vbr"),
    ("av1", 8, "cbr"),
    ("av1", 10, "crf"),
]


@pytest.mark.parametrize(("codec", "bits", "rate_control"), DIAGONAL)
def test_a_cell_of_the_matrix_joins_and_passes_its_gates(codec: str, bits: int, rate_control: str) -> None:
    cell = Cell(width=320, height=180, codec=codec, bits=bits, rate_control=rate_control)
    outcome = tried(cell, pictures_of(320, 180), load_profiles())
    assert outcome.passed, outcome
    assert outcome.psnr_y > 30, outcome


def test_every_cell_is_planned_or_refused_with_the_reason() -> None:
    found = {cell: rendition_of(cell) for cell in cells()}
    refused = {cell: reason for cell, reason in found.items() if not isinstance(reason, Rendition)}
    assert all(refused.values())
    assert {(cell.codec, cell.bits) for cell in refused if cell.width < 7680} == {("h264", 10)}
    assert all(cell in refused for cell in found if cell.width == 7680)
