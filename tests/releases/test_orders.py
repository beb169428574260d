"""What may be asked of releases."""

import math

import pytest

from schemas.errors import BadInputError
from schemas.records import ReleaseStage
from streams.releases.orders import Order, OrderError, begun, said_changes, stopped
from tests.releases.builders import release

NOW_US = 5_000_000


def order(**values: object) -> Order:
    return Order(**{"name": "softer", "change": ("crf=30",)} | values)  # type: ignore[arg-type]


def test_a_release_begins_at_its_share_with_what_it_changes() -> None:
    made = begun(order(share=0.05, change=("crf=30", "options.drift_color=0.1")), (), NOW_US)
    assert (made.stage, made.share, made.started_us) == (ReleaseStage.RUNNING, 0.05, NOW_US)
    assert said_changes(made) == "crf=30, options.drift_color=0.1"
    assert made.planned_jobs > 100


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "No Spaces"),
        ("engine", "none"),
        ("share", 0.6),
        ("share", math.nan),
        ("base_rate", -0.1),
        ("effect", 0),
        ("change", ("crf=99",)),
    ],
)
def test_a_wrong_order_is_refused_by_its_field(field: str, value: object) -> None:
    with pytest.raises(BadInputError) as refused:
        begun(order(**{field: value}), (), NOW_US)
    assert refused.value.field in (field, "crf")


def test_a_name_is_used_once_and_an_engine_has_one_release_at_a_time() -> None:
    over = stopped(release(name="softer", engine="animatic"), "enough", NOW_US)
    assert (over.stage, over.share, over.reason) == (ReleaseStage.STOPPED, 0, "enough")
    with pytest.raises(OrderError, match="there was a release softer"):
        begun(order(), (over,), NOW_US)
    with pytest.raises(OrderError, match="other is under way"):
        begun(order(), (release(name="other", engine="animatic"),), NOW_US)
    begun(order(), (stopped(release(name="other", engine="animatic"), "enough", NOW_US),), NOW_US)
    with pytest.raises(OrderError, match="nothing to do"):
        stopped(over, "again", NOW_US)
