"""Files on a machine: fetched once, checked each time, never over the budget, and safe when processes meet."""

import multiprocessing
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing.context import SpawnProcess
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path

import numpy as np
import pytest
from prometheus_client import REGISTRY

from infra.assets.cache import SUFFIXES, AssetCache, content_of
from infra.assets.catalogue import MEDIA_TYPES
from infra.assets.shelf import Shelf
from infra.objects import BlobError, Objects, file_digest
from infra.settings import Settings
from schemas.records import AssetRef, Blob
from tests.assets.files import asset, stored

MB = 1 << 20


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(objects=(tmp_path / "objects").as_uri(), state=tmp_path / "state", min_free_bytes=0)


@pytest.fixture
def objects(settings: Settings) -> Objects:
    return Objects(settings.objects)


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """The folder of a job in hand."""
    folder = tmp_path / "job"
    folder.mkdir()
    return folder


class Store(Objects):
    """Counts what is fetched, and can be made to wait in the middle of it."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.fetched: list[str] = []
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.go_on.set()

    def chunks(self, blob: Blob) -> Iterator[bytes]:
        self.fetched.append(blob.digest)
        for chunk in super().chunks(blob):
            self.begun.set()
            assert self.go_on.wait(10)
            yield chunk


def reads(outcome: str) -> float:
    return REGISTRY.get_sample_value("longtake_asset_reads_total", {"outcome": outcome}) or 0.0


def damaged() -> float:
    return REGISTRY.get_sample_value("longtake_assets_damaged_total") or 0.0


def files(settings: Settings, kind: str = "owned") -> set[str]:
    return {path.name for path in (settings.state / "assets" / kind).iterdir()}


def parts(settings: Settings) -> list[Path]:
    return list((settings.state / "assets" / "parts").iterdir())


# --- what a job gets ----------------------------------------------------------------------------------------------------


def test_an_asset_is_fetched_once_and_counted(settings: Settings, job: Path) -> None:
    store = Store(settings.objects)
    theme, cache = stored(store, b"theme"), AssetCache(settings, store)
    before = {outcome: reads(outcome) for outcome in ("hit", "miss")}
    first, second = cache.path_of(theme, job), AssetCache(settings, store).path_of(theme, job)
    assert first.read_bytes() == second.read_bytes() == b"theme"
    assert (first.parent, first.suffix) == (job, ".wav")
    assert store.fetched == [theme.content.digest]
    assert {o: reads(o) - n for o, n in before.items()} == {"hit": 1, "miss": 1}
    assert parts(settings) == []


def test_what_a_job_has_stays_when_room_is_made(settings: Settings, objects: Objects, job: Path) -> None:
    cache = AssetCache(settings.model_copy(update={"asset_cache_bytes": 5}), objects)
    path = cache.path_of(stored(objects, b"first"), job)
    cache.path_of(stored(objects, b"other"), job)
    assert len(files(settings)) == 1
    assert path.read_bytes() == b"first"


def test_a_file_that_was_tampered_with_is_found_and_fetched_again(settings: Settings, job: Path) -> None:
    store = Store(settings.objects)
    theme, cache = stored(store, b"theme"), AssetCache(settings, store)
    cache.path_of(theme, job)
    kept = settings.state / "assets" / "owned" / content_of(theme)
    kept.chmod(0o644)
    kept.write_bytes(b"other")
    before = damaged()
    assert cache.path_of(theme, job).read_bytes() == kept.read_bytes() == b"theme"
    assert len(store.fetched) == 2
    assert damaged() == before + 1


def test_bytes_that_are_not_the_assets_are_refused_and_not_kept(
    settings: Settings, objects: Objects, job: Path
) -> None:
    theme = stored(objects, b"theme")
    cache = AssetCache(settings, objects)
    for other in (b"th3me", b"the", b"theme and more"):
        objects.put_bytes(objects.key_of(theme.content), other, "audio/wav")
        with pytest.raises(BlobError, match="not the bytes"):
            cache.path_of(theme, job)
    objects.delete([objects.key_of(theme.content)])
    with pytest.raises(BlobError, match="not there"):
        cache.path_of(theme, job)
    assert (files(settings), parts(settings), list(job.iterdir())) == (set(), [], [])


@pytest.mark.parametrize(
    "digest", ["sha256:../../../../etc/passwd", "xxh3:" + "0" * 32, "sha256:" + "0" * 63, "", "sha256:" + "\u0660" * 64]
)
def test_a_digest_with_a_path_in_it_is_refused(digest: str, settings: Settings, objects: Objects, job: Path) -> None:
    theme = asset()
    theme = replace(theme, content=replace(theme.content, digest=digest))
    with pytest.raises(BlobError, match="no sha256"):
        AssetCache(settings, objects).path_of(theme, job)


def test_every_media_type_has_an_ending() -> None:
    """Some programs go by it."""
    assert SUFFIXES.keys() == MEDIA_TYPES.keys()


def test_what_died_half_written_is_cleared(settings: Settings, objects: Objects) -> None:
    AssetCache(settings, objects)
    folder = settings.state / "assets" / "parts"
    for name, age_s in (("old", 7200), ("young", 0)):
        (folder / name).write_bytes(b"half")
        os.utime(folder / name, (time.time() - age_s,) * 2)
    AssetCache(settings, objects)
    assert [path.name for path in parts(settings)] == ["young"]


# --- the budget ---------------------------------------------------------------------------------------------------------


def test_what_was_used_last_stays(settings: Settings, objects: Objects, job: Path) -> None:
    cache = AssetCache(settings.model_copy(update={"asset_cache_bytes": 10}), objects)
    a, b, c = (stored(objects, data) for data in (b"aaaaa", b"bbbbb", b"ccccc"))
    for used in (a, b, a, c):
        cache.path_of(used, job)
    assert files(settings) == {content_of(a), content_of(c)}


def test_guests_go_before_what_is_owned_and_what_is_wanted_goes_last(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "shelf", budget_bytes=4)

    def put(kind: str, letter: str) -> str:
        part = shelf.part()
        part.write_bytes(letter.encode())
        shelf.put(part, letter * 64, kind=kind)
        return letter * 64

    owned, guest, wanted = put("owned", "a"), put("guests", "b"), put("guests", "c")
    more = [put("owned", letter) for letter in "def"]
    shelf.make_room({wanted})
    left = [content for content in (owned, guest, wanted, *more) if shelf.holds(content)]
    assert left == [wanted, *more], "the guest nobody wants, then what is owned and was used longest ago"


def test_what_is_larger_than_the_cache_is_fetched_for_the_job_alone(
    settings: Settings, objects: Objects, job: Path
) -> None:
    cache = AssetCache(settings.model_copy(update={"asset_cache_bytes": 4}), objects)
    theme = stored(objects, b"theme")
    assert not cache.fetch_ahead(theme)
    assert cache.path_of(theme, job).read_bytes() == b"theme"
    assert files(settings) == set()


def test_nothing_is_fetched_ahead_onto_a_disk_that_is_nearly_full(
    settings: Settings, objects: Objects, job: Path
) -> None:
    cache = AssetCache(settings.model_copy(update={"min_free_bytes": 1 << 60}), objects)
    theme = stored(objects, b"theme")
    assert not cache.fetch_ahead(theme)
    assert cache.path_of(theme, job).read_bytes() == b"theme", "work goes on as long as it can"


def test_a_machine_is_a_host_to_what_others_keep_and_moves_what_becomes_its_own(
    settings: Settings, objects: Objects, job: Path
) -> None:
    theme = stored(objects, b"theme")
    alone, elsewhere = {"me": ""}, {"me": "us", "other": "eu"}
    theme = replace(theme, region="eu")
    for nodes, kind in ((elsewhere, "guests"), (alone, "owned"), (elsewhere, "guests")):
        there = settings.model_copy(update={"asset_node": "me", "asset_nodes": nodes})
        AssetCache(there, objects).path_of(theme, job)
        assert files(settings, kind) == {content_of(theme)}
        assert len(files(settings, "owned") | files(settings, "guests")) == 1


# --- when several want the same -----------------------------------------------------------------------------------------


def _fetch(
    settings: Settings, assets: list[AssetRef], rounds: int, folder: Path, barrier: Barrier, results: "Queue[int]"
) -> None:
    """Asks for one after the other, in an order of its own, and for the first one at once with the others."""
    store = Store(settings.objects)
    cache, order = AssetCache(settings, store), np.random.default_rng(int(folder.name[-1]))
    barrier.wait(60)
    for ref in (assets[0], *(assets[number] for number in order.integers(len(assets), size=rounds))):
        path = cache.path_of(ref, folder)
        assert file_digest(path, "sha256") == ref.content.digest
        path.unlink()
    results.put(len(store.fetched))


def in_processes(settings: Settings, assets: list[AssetRef], rounds: int, folders: list[Path]) -> list[int]:
    """How many each has fetched."""
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(len(folders)), context.Queue()
    processes: list[SpawnProcess] = []
    for folder in folders:
        folder.mkdir()
        process = context.Process(target=_fetch, args=(settings, assets, rounds, folder, barrier, results))
        process.start()
        processes.append(process)
    for process in processes:
        process.join(90)
        assert process.exitcode == 0
    return sorted(results.get(timeout=5) for _ in processes)


def test_two_processes_that_want_the_same_asset_at_once_fetch_it_once(
    settings: Settings, objects: Objects, tmp_path: Path
) -> None:
    theme = stored(objects, os.urandom(8 * MB))
    assert in_processes(settings, [theme], 0, [tmp_path / "job-0", tmp_path / "job-1"]) == [0, 1]


def test_processes_that_push_each_others_files_out_get_the_right_bytes_all_the_same(
    settings: Settings, objects: Objects, tmp_path: Path
) -> None:
    """Twelve assets, and room for three."""
    settings = settings.model_copy(update={"asset_cache_bytes": 30_000})
    assets = [stored(objects, os.urandom(10_000), name=f"a{number}") for number in range(12)]
    fetched = in_processes(settings, assets, 150, [tmp_path / f"job-{number}" for number in range(3)])
    assert sum(fetched) > 12, "files went and came again"
    kept = settings.state / "assets" / "owned"
    assert sum(path.stat().st_size for path in kept.iterdir()) <= 30_000
    assert parts(settings) == []


def test_work_that_waits_goes_before_what_is_fetched_ahead(settings: Settings, job: Path) -> None:
    """The one fetched ahead is half there when another, larger one is needed: it goes on when that one is there."""
    store = Store(settings.objects)
    later, now = stored(store, bytes(3 * MB)), stored(store, bytes(24 * MB))
    cache = AssetCache(settings, store)
    store.go_on.clear()
    ahead = threading.Thread(target=cache.fetch_ahead, args=(later,))
    ahead.start()
    assert store.begun.wait(10)
    needed = threading.Thread(target=cache.path_of, args=(now, job))
    needed.start()
    while len(store.fetched) < 2:
        time.sleep(0.001)
    store.go_on.set()
    for thread in (needed, ahead):
        thread.join(10)
    folder = settings.state / "assets" / "owned"
    done = [(folder / content_of(ref)).stat().st_mtime_ns for ref in (now, later)]
    assert done == sorted(done)


def test_work_that_needs_what_is_being_fetched_ahead_waits_for_that(settings: Settings, job: Path) -> None:
    store = Store(settings.objects)
    theme, cache = stored(store, bytes(2 * MB)), AssetCache(settings, store)
    store.go_on.clear()
    ahead = threading.Thread(target=cache.fetch_ahead, args=(theme,))
    ahead.start()
    assert store.begun.wait(10)
    needed = threading.Thread(target=cache.path_of, args=(theme, job))
    needed.start()
    store.go_on.set()
    for thread in (ahead, needed):
        thread.join(10)
        assert not thread.is_alive()
    assert len(store.fetched) == 1
