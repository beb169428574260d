"""Names of assets mean one file, and a prompt that means none is refused with the field and the rule."""

import pytest

from infra.assets.catalogue import AssetKind, Catalogue, is_asset
from schemas.errors import BadInputError
from schemas.records import AssetChanged
from streams.assets import MAX_ASSETS, in_order
from tests.assets.files import asset, said

ONE = asset(b"one", version="1")
TWO = asset(b"two", version="2")


def catalogue(*events: AssetChanged) -> Catalogue:
    found = Catalogue()
    for event in events:
        found.take(event)
    return found


def test_a_name_alone_means_the_version_that_was_added_last() -> None:
    known = catalogue(said(TWO, added_us=1), said(ONE, added_us=2))
    assert known.resolved("music", "theme", AssetKind.SOUND) == ONE
    assert known.resolved("music", "theme@2", AssetKind.SOUND) == TWO


def test_the_content_itself_is_a_name() -> None:
    known = catalogue(said(ONE), said(TWO))
    assert known.resolved("music", TWO.content.digest, AssetKind.SOUND) == TWO


def test_what_was_removed_cannot_be_named_and_the_one_before_is_meant_again() -> None:
    known = catalogue(said(ONE, added_us=1), said(TWO, added_us=2, removed_us=3))
    assert known.named("theme") == ONE
    for name in ("theme@2", TWO.content.digest):
        assert known.named(name) is None


def test_an_older_word_does_not_take_back_a_newer_one() -> None:
    """A reader that lost its broker reads the topic from its beginning again."""
    known = catalogue(said(ONE, added_us=1, removed_us=2), said(ONE, added_us=1))
    assert known.named("theme@1") is None


@pytest.mark.parametrize(
    ("name", "kind", "rule"),
    [
        ("theme@3", AssetKind.SOUND, "unknown_asset"),
        ("other", AssetKind.SOUND, "unknown_asset"),
        ("sha256:" + "0" * 64, AssetKind.SOUND, "unknown_asset"),
        ("theme", AssetKind.PICTURE, "asset_kind"),
        ("../theme", AssetKind.SOUND, "asset"),
        ("theme@", AssetKind.SOUND, "asset"),
        ("Theme", AssetKind.SOUND, "asset"),
        ("", AssetKind.SOUND, "asset"),
    ],
)
def test_a_name_that_means_nothing_here_is_refused(name: str, kind: AssetKind, rule: str) -> None:
    with pytest.raises(BadInputError) as refused:
        catalogue(said(ONE)).resolved("cues[1].asset", name, kind)
    assert (refused.value.field, refused.value.rule) == ("cues[1].asset", rule)


@pytest.mark.parametrize("name", ["a", "evening-theme", "logo.v2@2026-11_b", "sha256:" + "0f" * 32])
def test_these_are_names(name: str) -> None:
    assert is_asset(name)


def test_assets_of_a_job_come_once_in_the_order_of_use() -> None:
    assert in_order([(48, ONE), (0, TWO), (96, TWO)]) == (TWO, ONE)
    many = [(n, asset(b"x", version=str(n))) for n in range(MAX_ASSETS + 1)]
    with pytest.raises(BadInputError, match="at most"):
        in_order(many)
