"""docs/engines.md is what the code computes, and names what there is."""

import re

import pytest

from gpu_consumers.engines import engine as engines
from gpu_consumers.engines.causal_dit.models import MODELS
from gpu_consumers.engines.describe import PAGE, RATES, SECONDS, SIZES, extras_rows, memory_row, take_rows
from schemas import engines as limits
from schemas.records import FailureKind

TEXT = PAGE.read_text()


def test_the_tables_are_current() -> None:
    """One size in full; a change of the model or of its arithmetic moves every row. Else: python -m gpu_consumers.engines.describe."""
    assert memory_row((832, 480)) in TEXT
    assert "".join(take_rows((832, 480))) in TEXT
    assert extras_rows() in TEXT


@pytest.mark.parametrize("size", SIZES)
def test_every_size_has_its_rows(size: tuple[int, int]) -> None:
    rows = re.findall(rf"^\| {size[0]}x{size[1]} \|.*\|$", TEXT, re.MULTILINE)
    assert len(rows) == 1 + len(RATES) * len(SECONDS)


def test_the_page_names_every_engine_configuration_and_failure() -> None:
    for name in (*engines._BUILT_IN, *MODELS, *FailureKind, engines.GROUP, limits.GROUP):
        assert name in TEXT, name
    assert set(engines._BUILT_IN) == set(limits.ENGINES)
