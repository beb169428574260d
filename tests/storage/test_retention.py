"""What a sweep may take, as rules: never what somebody refers to or may still announce, and in the end everything else."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.objects import Stored
from infra.settings import Settings
from infra.storage.retention import JobMarks, Keep, Kind, Marks, keep_of, kind_of, removable
from schemas.records import Stage

NOW_S = 1_000_000.0
KEEP = Keep(
    unannounced_s=100,
    failed_s=1000,
    manifests_s=500,
    finished_s={
        Kind.LATENTS: 200,
        Kind.FRAMES: 0,
        Kind.PIECES: 0,
        Kind.REFERENCES: 50,
        Kind.VIDEOS: None,
        Kind.LIVE: None,
    },
)
LATENTS = "jobs/boat/segments/0-1-ab-latents.safetensors"
FRAMES = "jobs/boat/segments/0-1-ab-frames.safetensors"
PIECE = "jobs/boat/pieces/0-1-ab.mp4"
REFERENCE = "jobs/boat/references/0-1-ab.mp4"
VIDEO = "jobs/boat/videos/1-ab.mp4"
OTHERS_VIDEO = "jobs/boat/videos/1-cd.mp4"
LIVE = "jobs/boat/live/main-00000-0-40.m4s"
MANIFEST = "manifests/0123"
ASSET = f"assets/content/{'0' * 64}/0123456789ab"
KEYS = (LATENTS, FRAMES, PIECE, REFERENCE, VIDEO, OTHERS_VIDEO, LIVE, MANIFEST, "sweep/clock", "jobs/boat/notes/x.txt")


def marks(stage: Stage | None, keys: Mapping[str, float] | set[str] = frozenset(), **fields: object) -> Marks:
    job = JobMarks(stage=stage, changed_s=float(fields.get("changed_s", 0.0)), keys=frozenset(keys)) if stage else None
    in_flight = frozenset(fields.get("in_flight", ()))  # pyright: ignore[reportArgumentType]
    return Marks(since_s=NOW_S, in_flight=in_flight, jobs={"boat": job} if job else {})


def gone(found: Marks, *, age_s: float = 10_000.0, keep: Keep = KEEP) -> set[str]:
    return {key for key in KEYS if removable(Stored(key=key, size_bytes=1, modified_s=NOW_S - age_s), found, keep)}


def test_a_running_job_loses_what_its_row_does_not_name() -> None:
    found = marks(Stage.GENERATING, {LATENTS, FRAMES})
    assert gone(found) == {PIECE, REFERENCE, VIDEO, OTHERS_VIDEO, MANIFEST}


def test_what_may_not_be_announced_yet_stays() -> None:
    assert gone(marks(Stage.GENERATING), age_s=99) == set()


def test_what_is_on_its_way_stays() -> None:
    found = marks(Stage.GENERATING, in_flight={LATENTS, FRAMES, PIECE, REFERENCE, VIDEO, OTHERS_VIDEO})
    assert gone(found) == {MANIFEST}


def test_a_finished_job_keeps_its_video_and_the_rest_for_its_time() -> None:
    """Its frames are the bulk: they go at once."""
    at_once = marks(Stage.FINISHED, {VIDEO}, changed_s=NOW_S)
    assert gone(at_once, age_s=10) == {FRAMES, PIECE, OTHERS_VIDEO}
    later = marks(Stage.FINISHED, {VIDEO}, changed_s=NOW_S - 60)
    assert gone(later, age_s=80) == {FRAMES, PIECE, OTHERS_VIDEO, REFERENCE}
    much_later = marks(Stage.FINISHED, {VIDEO}, changed_s=NOW_S - 5000)
    assert gone(much_later) == {LATENTS, FRAMES, PIECE, REFERENCE, OTHERS_VIDEO, MANIFEST}


def test_videos_go_if_a_policy_says_so() -> None:
    keep = replace(KEEP, finished_s={**KEEP.finished_s, Kind.VIDEOS: 400.0})
    assert VIDEO not in gone(marks(Stage.FINISHED, {VIDEO}, changed_s=NOW_S - 399), keep=keep)
    assert VIDEO in gone(marks(Stage.FINISHED, {VIDEO}, changed_s=NOW_S - 400), keep=keep)


@pytest.mark.parametrize("stage", [Stage.FAILED, Stage.CANCELLED])
def test_a_job_that_can_be_retried_keeps_what_it_has_for_a_while(stage: Stage) -> None:
    row = {LATENTS, FRAMES, PIECE}
    assert gone(marks(stage, row, changed_s=NOW_S - 999)) == {REFERENCE, VIDEO, OTHERS_VIDEO, MANIFEST}
    assert gone(marks(stage, row, changed_s=NOW_S - 1000)) >= row


def test_jobs_that_the_table_does_not_know_lose_nothing() -> None:
    """It may be the wrong table."""
    assert gone(marks(None)) == {MANIFEST}


@pytest.mark.parametrize(
    ("age_s", "known", "named", "on_its_way", "goes"),
    [
        (100, True, False, False, True),
        (99, True, False, False, False),
        (100, False, False, False, False),
        (100, True, True, False, False),
        (100, True, False, True, False),
    ],
)
def test_an_asset_goes_when_the_catalogue_knows_it_and_nobody_can_name_it(
    age_s: float, known: bool, named: bool, on_its_way: bool, goes: bool
) -> None:
    found = replace(
        marks(None, in_flight={ASSET} if on_its_way else set()),
        assets=frozenset({ASSET} if named else ()),
        contents=frozenset({"0" * 64} if known else ()),
    )
    assert removable(Stored(key=ASSET, size_bytes=1, modified_s=NOW_S - age_s), found, KEEP) is goes


def test_every_key_of_the_line_has_a_kind() -> None:
    assert {kind_of(key) for key in (*KEYS, ASSET)} == set(Kind)
    assert kind_of("assets/names/theme/1") is Kind.OTHER, "a version is never given to other bytes"
    for key in ("jobs/boat/segments/x.bin", "jobs/boat/pieces", "jobs/boat/pieces/a/b.mp4", "jobs/boat/sums/1", "x"):
        assert kind_of(key) is Kind.OTHER


def test_the_default_grace_is_longer_than_a_silent_engine_is_waited_for() -> None:
    keep, settings = keep_of(Settings()), Settings()
    assert keep.unannounced_s > 2 * settings.segment_timeout_s
    assert keep.failed_s >= 86_400
    assert keep.finished_s[Kind.VIDEOS] is None


seconds = st.floats(0, 10_000)
kept = st.builds(
    Keep,
    unannounced_s=seconds,
    failed_s=seconds,
    manifests_s=seconds,
    finished_s=st.fixed_dictionaries({Kind(k): st.none() | seconds for k in KEEP.finished_s}),
)


@given(
    key=st.sampled_from(KEYS),
    age_s=seconds,
    stage=st.none() | st.sampled_from(Stage),
    changed_s=st.floats(NOW_S - 10_000, NOW_S),
    named=st.booleans(),
    on_its_way=st.booleans(),
    keep=kept,
)
def test_nothing_that_somebody_needs_is_ever_removable(
    key: str, age_s: float, stage: Stage | None, changed_s: float, named: bool, on_its_way: bool, keep: Keep
) -> None:
    found = marks(stage, {key} if named else set(), changed_s=changed_s, in_flight={key} if on_its_way else set())
    if not removable(Stored(key=key, size_bytes=1, modified_s=NOW_S - age_s), found, keep):
        return
    kind = kind_of(key)
    assert kind is not Kind.OTHER
    named = named or kind is Kind.LIVE
    if kind is Kind.MANIFESTS:
        assert age_s >= max(keep.manifests_s, keep.unannounced_s) - 1e-6
        return
    assert stage is not None
    assert not on_its_way
    over_s = NOW_S - changed_s
    if stage is not Stage.FINISHED:
        assert age_s >= keep.unannounced_s - 1e-6
        assert not named or (stage in (Stage.FAILED, Stage.CANCELLED) and over_s >= keep.failed_s)
    elif named or kind is not Kind.VIDEOS:
        limit_s = keep.finished_s[kind]
        assert limit_s is not None
        assert over_s >= limit_s
