import shutil
import threading
from pathlib import Path

import pytest

from infra.local.packages import PackageError, fetched, kafka_jars, libchdb, take_pinned
from infra.settings import Settings


def test_what_is_fetched_once_is_used_from_then_on() -> None:
    jars = kafka_jars(Settings())
    assert len(list(jars.glob("*.jar"))) == 46
    assert (jars / "kafka_2.13-4.2.1.jar").is_file()
    assert libchdb(Settings()).stat().st_size > 500_000_000


def test_the_pinned_jars_are_taken_and_others_left(tmp_path: Path) -> None:
    found, out = _copied_jars(tmp_path)
    (found / "unknown.jar").write_bytes(b"")
    take_pinned(found.iterdir(), out)
    assert [path.name for path in found.iterdir()] == ["unknown.jar"]
    assert len(list(out.iterdir())) == 46


def test_a_jar_with_other_bytes_is_refused(tmp_path: Path) -> None:
    found, out = _copied_jars(tmp_path)
    with (found / "kafka-server-4.2.1.jar").open("ab") as jar:
        jar.write(b"\0")
    with pytest.raises(PackageError, match=r"kafka-server-4\.2\.1\.jar: not the pinned bytes"):
        take_pinned(found.iterdir(), out)


def test_a_jar_too_few_is_refused(tmp_path: Path) -> None:
    found, out = _copied_jars(tmp_path)
    (found / "slf4j-simple-1.7.36.jar").unlink()
    with pytest.raises(PackageError, match="slf4j-simple"):
        take_pinned(found.iterdir(), out)


def test_two_at_once_fetch_once(tmp_path: Path) -> None:
    fetches: list[Path] = []
    inside, go_on = threading.Event(), threading.Event()

    def slow(part: Path) -> None:
        fetches.append(part)
        inside.set()
        assert go_on.wait(10)
        (part / "out" / "file").write_text("whole")

    first, second = (threading.Thread(target=fetched, args=(tmp_path / "package", slow)) for _ in range(2))
    first.start()
    assert inside.wait(10)
    second.start()
    assert not (tmp_path / "package").exists()
    go_on.set()
    first.join()
    second.join()
    assert len(fetches) == 1
    assert (tmp_path / "package" / "file").read_text() == "whole"


def test_a_fetch_that_dies_leaves_nothing_that_looks_whole(tmp_path: Path) -> None:
    def dying(part: Path) -> None:
        (part / "out" / "half").write_text("")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetched(tmp_path / "package", dying)
    assert not (tmp_path / "package").exists()
    fetched(tmp_path / "package", lambda _: None)
    assert list((tmp_path / "package").iterdir()) == []


def _copied_jars(folder: Path) -> tuple[Path, Path]:
    out = folder / "out"
    out.mkdir()
    return Path(shutil.copytree(kafka_jars(Settings()), folder / "found")), out
