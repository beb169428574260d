"""What may be said to change, and what not."""

import pytest

from schemas.errors import BadInputError
from streams.releases.options import changes


def test_changes_are_read_from_words() -> None:
    said = ["engine=diffusers", "options.steps=6", "crf=23.5", "preset=slow"]
    assert changes("animatic", said) == ("diffusers", {"steps": "6"}, 23.5, "slow")


@pytest.mark.parametrize(
    "said",
    [
        ["engine=none"],
        ["options.no_such=6"],
        ["options.drift_color=9"],
        ["crf=0"],
        ["crf=nan"],
        ["preset=none"],
        ["x=1"],
    ],
)
def test_what_no_job_could_be_made_with_is_refused(said: list[str]) -> None:
    with pytest.raises(BadInputError):
        changes("animatic", said)


def test_no_change_is_no_release() -> None:
    for said in ([], ["crf"], ["crf="]):
        with pytest.raises(ValueError, match="KEY=VALUE"):
            changes("animatic", said)
