"""Assets on a real broker: added on the command line, known to those who follow, and swept when nobody can name them any more."""

import os
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from infra.assets.catalogue import AssetKind, Catalogue
from infra.assets.known import following_catalogue, read_catalogue
from infra.bus.writer import Writer, publish
from infra.cli.errors import Exit
from infra.objects import Objects
from infra.settings import Settings
from infra.storage.sweep import sweep
from schemas.errors import BadInputError
from schemas.headers import trace_root
from schemas.records import AssetRef, JobState, Stage
from schemas.topics import Event
from tests.assets.files import said, stored, tone
from tests.bus.line import eventually, in_thread
from tests.cli.conftest import Longtake, longtake
from tests.director.builders import START_US, decider, message, prompt

__all__ = ["longtake"]

GRACE_S = 1.0
DAY_S = 86_400.0
SETTLED = 10


@pytest.fixture
def settings(bus_settings: Settings) -> Settings:
    return bus_settings.model_copy(update={"sweep_grace_s": GRACE_S})


@pytest.fixture
def objects(settings: Settings) -> Objects:
    return Objects(settings.objects)


def made_with(job_id: str, ref: AssetRef, **changes: object) -> JobState:
    """A row of a job that runs."""
    row = decider().decide(message(prompt(job_id=job_id)), None, START_US).state
    assert row is not None
    assert row.plan is not None
    return replace(row, **{"plan": replace(row.plan, assets=(ref,)), "stage": Stage.GENERATING} | changes)


def say(settings: Settings, *events: Event) -> None:
    publish(settings, events, trace_root("assets"))


def old(objects: Objects, ref: AssetRef, age_s: float = DAY_S) -> AssetRef:
    """As if its content had been put that long ago."""
    then = time.time() - age_s
    os.utime(Path(objects.url.removeprefix("file://")) / objects.key_of(ref.content), (then, then))
    return ref


def test_an_asset_is_added_listed_shown_and_removed(bus_settings: Settings, longtake: Longtake, tmp_path: Path) -> None:
    low, high = tone(tmp_path / "low.wav", hz=110), tone(tmp_path / "high.wav", hz=880)
    with following_catalogue(bus_settings, catalogue := Catalogue()) as read:
        assert read.wait(30)
        with pytest.raises(BadInputError, match="unknown_asset"):
            catalogue.resolved("music", "theme", AssetKind.SOUND)
        first = longtake(bus_settings, "asset", "add", "theme", str(low), "--json")
        assert (first.code, first.json()["asset"]["version"]) == (0, "1")
        again = longtake(bus_settings, "asset", "add", "theme", str(low), "--json")
        assert again.json() == first.json()
        assert "theme@2: audio/wav 0.5 s, sha256:" in longtake(bus_settings, "asset", "add", "theme", str(high)).out
        eventually(lambda: catalogue.named("theme@2") is not None, "who follows hears of it")
        other = longtake(bus_settings, "asset", "add", "theme", str(high), "--version", "1")
        assert (other.code, "immutable" in other.err) == (Exit.REFUSED, True)
        assert longtake(bus_settings, "asset", "remove", "theme").code == Exit.USAGE
        assert longtake(bus_settings, "asset", "remove", "theme@2").code == 0
        eventually(lambda: catalogue.named("theme@2") is None, "who follows hears of it")
    assert [e["asset"]["version"] for e in longtake(bus_settings, "asset", "list", "--json").json()] == ["1"]
    assert len(longtake(bus_settings, "asset", "list", "--all", "--json").json()) == 2
    placed = bus_settings.model_copy(update={"asset_nodes": {"m1": "", "m2": ""}})
    shown = longtake(placed, "asset", "show", "theme").out
    assert shown.index("theme@2") < shown.index("theme@1")
    assert "kept by m" in shown
    assert longtake(bus_settings, "asset", "show", "nothing").code == Exit.NOT_FOUND
    assert longtake(bus_settings, "asset", "remove", "theme@2").code == Exit.NOT_FOUND


def test_a_content_stays_while_it_can_be_named_or_a_row_names_it(settings: Settings, objects: Objects) -> None:
    named, used, shortly, gone = (old(objects, stored(objects, b"%d" % n, name=f"a{n}")) for n in range(4))
    unheard_of = old(objects, stored(objects, b"another cluster's"))
    now_us = time.time_ns() // 1000
    day_us = round(DAY_S * 1e6)
    say(settings, said(named), said(used, removed_us=now_us - day_us), said(gone, removed_us=now_us - day_us))
    say(settings, said(shortly, removed_us=now_us + day_us), made_with("film", used, stage=Stage.FAILED))
    kept = (named, used, shortly, unheard_of)
    sweep(settings, objects)
    assert not objects.holds(gone.content)
    assert all(objects.holds(ref.content) for ref in kept)
    say(settings, replace(made_with("film", used, stage=Stage.FINISHED), plan=None))
    sweep(settings, objects)
    assert [objects.holds(ref.content) for ref in kept] == [True, False, True, True]


@pytest.mark.timeout(120)
def test_what_is_added_named_and_removed_while_the_sweep_runs_is_never_taken_from_a_job(
    settings: Settings, objects: Objects
) -> None:
    """Each is stored, announced, removed, and named by a job that was accepted before that; half of the jobs finish."""
    running: list[AssetRef] = []
    finished: list[AssetRef] = []
    missing: list[str] = []

    def sweep_on(stop: threading.Event) -> None:
        while not stop.is_set():
            sweep(settings, objects)
            missing.extend(ref.name for ref in running.copy() if not objects.holds(ref.content))

    with in_thread(sweep_on), Writer(settings) as writer:
        for number in range(SETTLED):
            ref = old(objects, stored(objects, b"%d" % number, name=f"a{number}"), 0.9 * GRACE_S)
            now_us = time.time_ns() // 1000
            row = made_with(f"job-{number}", ref)
            writer.publish([said(ref, added_us=now_us)], trace_root("assets"))
            writer.publish([said(ref, added_us=now_us, removed_us=now_us + 1)], trace_root("assets"))
            time.sleep(0.1 * GRACE_S)  # a director that heard of it late: the content is older than the grace now
            writer.publish([row], trace_root("assets"))
            if number % 2:
                running.append(ref)
            else:
                writer.publish([replace(row, stage=Stage.FINISHED, plan=None)], trace_root("assets"))
                finished.append(ref)
        eventually(lambda: not any(objects.holds(ref.content) for ref in finished), "what nobody needs is gone", 60)
    assert missing == []
    assert read_catalogue(settings).named("a1") is None
