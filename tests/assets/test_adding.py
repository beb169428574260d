"""A version of a name means the same bytes for ever, in a folder and in S3, whoever comes at the same time."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from moto.server import ThreadedMotoServer

from infra.assets.adding import Wish, added, removed
from infra.assets.cache import AssetCache
from infra.assets.catalogue import CONTENT, Catalogue
from infra.objects import Objects
from infra.settings import Settings
from schemas.errors import BadInputError
from schemas.records import AssetChanged
from tests.assets.files import tone


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(params=["folder", "s3"])
def objects(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Objects:
    if request.param == "folder":
        return Objects((tmp_path / "objects").as_uri())
    endpoint = request.getfixturevalue("endpoint")
    for name, value in {
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "eu-central-1",
        "AWS_ENDPOINT": endpoint,
        "AWS_ALLOW_HTTP": "true",
    }.items():
        monkeypatch.setenv(name, value)
    bucket = f"b{abs(hash(tmp_path)):x}"
    assert requests.put(f"{endpoint}/{bucket}", timeout=10).ok
    return Objects(f"s3://{bucket}/line")


@pytest.fixture
def low(tmp_path: Path) -> Path:
    return tone(tmp_path / "low.wav", hz=110)


@pytest.fixture
def high(tmp_path: Path) -> Path:
    return tone(tmp_path / "high.wav", hz=880)


class Line:
    """A catalogue that hears of what is added."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        self.catalogue = Catalogue()
        self.now_us = 0

    def add(self, path: Path, **wish: str) -> AssetChanged:
        self.now_us += 1
        event = added(self.objects, self.catalogue, path, Wish(name="theme", **wish), self.now_us)
        self.catalogue.take(event)
        return event

    def remove(self, version: str) -> None:
        self.now_us += 1
        self.catalogue.take(removed(self.catalogue, "theme", version, self.now_us))

    def contents(self) -> list[str]:
        return [stored.key for stored in self.objects.listed() if stored.key.startswith(CONTENT)]


@pytest.fixture
def line(objects: Objects) -> Line:
    return Line(objects)


def test_a_file_comes_out_as_it_went_in(line: Line, low: Path, tmp_path: Path) -> None:
    asset = line.add(low, region="eu").asset
    assert (asset.version, asset.region, asset.content.media_type) == ("1", "eu", "audio/wav")
    assert line.objects.key_of(asset.content).startswith(CONTENT + asset.content.digest.removeprefix("sha256:"))
    job = tmp_path / "job"
    job.mkdir()
    cache = AssetCache(Settings(state=tmp_path / "state"), line.objects)
    assert cache.path_of(asset, job).read_bytes() == low.read_bytes()
    assert cache.path_of(asset, job).read_bytes() == low.read_bytes()


def test_the_same_again_changes_nothing(line: Line, low: Path) -> None:
    assert line.add(low) == line.add(low) == line.add(low, version="1")
    assert len(line.contents()) == 1


def test_other_bytes_are_another_version(line: Line, low: Path, high: Path) -> None:
    assert [line.add(path).asset.version for path in (low, high)] == ["1", "2"]
    with pytest.raises(BadInputError, match="immutable"):
        line.add(high, version="1")
    with pytest.raises(BadInputError, match="immutable"):
        line.add(low, version="1", region="eu")


def test_the_same_bytes_under_two_names_lie_there_once(line: Line, low: Path) -> None:
    first, second = line.add(low, version="a"), line.add(low, version="b")
    assert first.asset.content == second.asset.content
    assert len(line.contents()) == 1


def test_a_version_that_was_removed_is_never_other_bytes(line: Line, low: Path, high: Path) -> None:
    first = line.add(low, version="1")
    line.remove("1")
    with pytest.raises(BadInputError, match="immutable"):
        line.add(high, version="1")
    again = line.add(low, version="1")
    assert line.catalogue.named("theme") == again.asset
    assert again.asset.content.digest == first.asset.content.digest
    assert again.asset.content.uri != first.asset.content.uri, "a sweep may be about to take the old one out"
    with pytest.raises(BadInputError, match="no asset theme@2"):
        line.remove("2")


def test_a_lost_content_is_put_again(line: Line, low: Path, high: Path) -> None:
    lost = line.add(low)
    line.add(high)
    line.objects.delete([line.objects.key_of(lost.asset.content)])
    healed = line.add(low, version="1")
    assert line.objects.holds(healed.asset.content)
    assert line.catalogue.named("theme@1") == healed.asset
    named = line.catalogue.named("theme")
    assert named is not None
    assert named.version == "2", "it is as old as it was"


def test_a_crash_before_it_was_said_is_repaired_by_adding_again(line: Line, low: Path, high: Path) -> None:
    added(line.objects, Catalogue(), low, Wish(name="theme"), 1)
    assert line.add(low).asset.version == "1"
    assert line.add(high).asset.version == "2"


def test_of_two_who_add_a_version_at_once_one_is_refused(line: Line, low: Path, high: Path) -> None:
    barrier = threading.Barrier(2)
    outcomes: list[str] = []

    def add(path: Path) -> None:
        barrier.wait(10)
        try:
            outcomes.append(added(line.objects, Catalogue(), path, Wish(name="theme", version="1"), 1).asset.version)
        except BadInputError as error:
            outcomes.append(error.rule)

    threads = [threading.Thread(target=add, args=(path,)) for path in (low, high)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(outcomes) == ["1", "immutable"]


def test_without_a_version_both_get_one(line: Line, low: Path, high: Path) -> None:
    versions = {added(line.objects, Catalogue(), path, Wish(name="theme"), 1).asset.version for path in (low, high)}
    assert versions == {"1", "2"}


@pytest.mark.parametrize(
    ("wish", "rule"),
    [
        ({"name": "Theme"}, "characters"),
        ({"name": "../theme"}, "characters"),
        ({"name": "a..b"}, "characters"),
        ({"name": "theme@2"}, "characters"),
        ({"name": "theme", "version": "1/2"}, "characters"),
        ({"name": "theme", "region": "EU west"}, "characters"),
        ({"name": "theme", "media_type": "audio/flac"}, "media"),
    ],
)
def test_a_wish_that_cannot_be_is_refused(wish: dict[str, str], rule: str, low: Path, tmp_path: Path) -> None:
    objects = Objects((tmp_path / "objects").as_uri())
    with pytest.raises(BadInputError) as refused:
        added(objects, Catalogue(), low, Wish(**wish), 1)
    assert refused.value.rule == rule
    assert list(objects.listed()) == []
