"""Which machines keep what: all agree, each has its share, and few contents move when one joins or leaves."""

from collections import Counter

import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from infra.assets.placement import REPLICAS, keepers, keeps
from schemas.records import AssetRef
from tests.assets.files import asset

ASSETS = [asset(b"%d" % n) for n in range(2000)]
nodes = st.lists(st.from_regex(r"[a-z0-9-]{1,12}", fullmatch=True), min_size=3, max_size=12, unique=True)


def first(ref: AssetRef, names: list[str]) -> str:
    return keepers(ref, dict.fromkeys(names, ""))[0]


def test_the_hash_is_xxhash64_of_content_region_version_and_node() -> None:
    ref = asset(b"theme", version="2", region="eu")
    best = max(("m1", "m2"), key=lambda n: xxhash.xxh64_intdigest(f"{ref.content.digest}\0eu\x002\0{n}".encode()))
    assert keepers(ref, {"m1": "eu", "m2": "eu"}, 1) == (best,)


@settings(max_examples=25, deadline=None)
@given(nodes)
def test_when_a_machine_leaves_only_what_it_kept_moves(names: list[str]) -> None:
    left, rest = names[0], names[1:]
    moved = [ref for ref in ASSETS[:500] if first(ref, names) != first(ref, rest)]
    assert all(first(ref, names) == left for ref in moved)
    assert sum(first(ref, names) == left for ref in ASSETS[:500]) == len(moved)


@settings(max_examples=25, deadline=None)
@given(nodes)
def test_a_machine_that_joins_gets_its_share_and_nothing_else_moves(names: list[str]) -> None:
    before, new = names[1:], names[0]
    moved = [ref for ref in ASSETS if first(ref, before) != first(ref, names)]
    assert all(first(ref, names) == new for ref in moved)
    share = 1 / len(names)
    deviation = (share * (1 - share) / len(ASSETS)) ** 0.5
    assert len(moved) / len(ASSETS) <= share + 5 * deviation


@settings(max_examples=25, deadline=None)
@given(nodes, st.randoms(use_true_random=False))
def test_everybody_comes_to_the_same_answer(names: list[str], random: st.DrawFn) -> None:
    shuffled = names.copy()
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    for ref in ASSETS[:50]:
        assert keepers(ref, dict.fromkeys(names, "")) == keepers(ref, dict.fromkeys(shuffled, ""))


def test_machines_have_equal_shares() -> None:
    names = [f"m{n}" for n in range(10)]
    counts = Counter(node for ref in ASSETS for node in keepers(ref, dict.fromkeys(names, "")))
    usual = len(ASSETS) * REPLICAS / len(names)
    assert all(abs(counts[name] - usual) < 0.2 * usual for name in names)


def test_an_asset_is_kept_in_its_region_and_elsewhere_if_nobody_is_there() -> None:
    regions = {"m1": "eu", "m2": "us", "m3": "eu"}
    assert set(keepers(asset(region="eu"), regions)) == {"m1", "m3"}
    assert keepers(asset(region="us"), regions) == ("m2",)
    assert len(keepers(asset(region="moon"), regions)) == REPLICAS
    assert {node for ref in ASSETS[:50] for node in keepers(ref, regions)} == set(regions)


def test_a_machine_that_knows_of_no_others_keeps_all() -> None:
    assert keeps(asset(), "me", {})
    assert not keeps(asset(region="eu"), "me", {"me": "us", "other": "eu"})
