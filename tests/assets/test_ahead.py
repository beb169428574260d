"""What jobs will need is on the machine before they ask, the first needed first, and only where they are worked at."""

from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import murmur2

from infra.assets.ahead import Ahead, fetching_ahead, in_need, within
from infra.assets.cache import AssetCache, content_of
from infra.bus.clients import Member
from infra.bus.work import ThreadWork
from infra.bus.worker import run_worker
from infra.bus.writer import publish
from infra.objects import Objects
from infra.settings import Settings
from schemas.headers import trace_root
from schemas.records import AssemblyRequested, AssetRef, JobChanged, PieceRequested, Stage
from tests.assets.files import asset, stored
from tests.bus.line import eventually, in_thread
from tests.schemas.samples import sample

PARTITIONS = 4
EVERYWHERE = frozenset(("x", partition) for partition in range(PARTITIONS))


def job(job_id: str, *assets: AssetRef, stage: Stage = Stage.GENERATING, checked: int = 0, **more: int) -> JobChanged:
    event = sample(JobChanged)
    assert isinstance(event, JobChanged)
    usual = {"frames": 240, "segments": 10, "submitted_us": 1} | more
    return replace(event, job_id=job_id, assets=assets, stage=stage, pieces_checked=checked, **usual)


def here(settings: Settings) -> list[str]:
    """Contents on the machine, by when they came."""
    files = (settings.state / "assets").glob("*/*" + "?" * 62)
    return [path.name for path in sorted(files, key=lambda path: path.stat().st_mtime_ns)]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(objects=(tmp_path / "objects").as_uri(), state=tmp_path / "state", min_free_bytes=0)


def test_assets_come_in_the_order_of_need() -> None:
    a, b, c, d, e = (asset(b"%d" % n) for n in range(5))
    jobs = [
        job("waits", e, stage=Stage.QUEUED),
        job("long", c, frames=2400),
        job("nearly-done", b, a, checked=9),
        job("is-assembled", a, stage=Stage.ASSEMBLING),
        job("short", d),
        job("over", asset(b"x"), stage=Stage.FINISHED),
    ]
    assert list(in_need(jobs)) == [a, b, d, c, e]


def test_no_more_is_wanted_than_fits_in() -> None:
    large, *small = (asset(bytes(size), version=str(size)) for size in (30, 10, 11, 12, 4))
    assert list(within([large, *small], 25)) == [small[0], small[1], small[3]]


def test_only_the_jobs_of_held_partitions_are_fetched_for(settings: Settings) -> None:
    objects = Objects(settings.objects)
    ahead = Ahead(AssetCache(settings, objects), PARTITIONS)
    refs = {f"job-{n}": stored(objects, b"%d" % n) for n in range(8)}
    for job_id, ref in refs.items():
        ahead.take(job(job_id, ref))
    assert not ahead.fetch_next(), "no partition is held yet"
    ahead.hold(frozenset({(PieceRequested.topic, 1)}))
    while ahead.fetch_next():
        pass
    mine = {content_of(ref) for job_id, ref in refs.items() if murmur2(job_id.encode(), PARTITIONS) == 1}
    assert set(here(settings)) == mine
    assert 0 < len(mine) < len(refs)


def test_one_that_cannot_be_had_holds_no_other_up(settings: Settings) -> None:
    objects = Objects(settings.objects)
    lost, good = stored(objects, b"lost"), stored(objects, b"good")
    objects.delete([objects.key_of(lost.content)])
    ahead = Ahead(AssetCache(settings, objects), PARTITIONS)
    ahead.hold(EVERYWHERE)
    ahead.take(job("film", lost, good))
    assert [ahead.fetch_next(), ahead.fetch_next()] == [True, False]
    assert here(settings) == [content_of(good)]


def test_what_running_jobs_need_is_not_pushed_out(settings: Settings, tmp_path: Path) -> None:
    objects = Objects(settings.objects)
    cache = AssetCache(settings.model_copy(update={"asset_cache_bytes": 10}), objects)
    ahead = Ahead(cache, PARTITIONS)
    ahead.hold(EVERYWHERE)
    needed, others = stored(objects, b"aaaaa"), [stored(objects, letter * 5) for letter in (b"b", b"c", b"d")]
    ahead.take(job("film", needed))
    assert ahead.fetch_next()
    for other in others:
        cache.path_of(other, tmp_path)
    assert content_of(needed) in here(settings)
    ahead.take(job("film", needed, stage=Stage.FINISHED))
    ahead.fetch_next()
    for other in others:
        cache.path_of(other, tmp_path)
    assert content_of(needed) not in here(settings)


def test_a_worker_hears_of_jobs_and_has_their_assets_before_they_ask(bus_settings: Settings) -> None:
    objects = Objects(bus_settings.objects)
    early, late = stored(objects, b"early"), stored(objects, b"late")
    publish(bus_settings, [job("before", early)], trace_root("before"))
    member = Member(role="assemble", topics=(AssemblyRequested.topic,))
    cache = AssetCache(bus_settings, objects)
    with (
        fetching_ahead(bus_settings, cache) as ahead,
        in_thread(lambda stop: run_worker(bus_settings, member, ThreadWork(lambda _: (), 1), stop, ahead.hold)),
    ):
        eventually(lambda: here(bus_settings) == [content_of(early)], "what was said before the worker began")
        publish(bus_settings, [job("after", late, stage=Stage.QUEUED)], trace_root("after"))
        eventually(lambda: content_of(late) in here(bus_settings), "what is said now")
