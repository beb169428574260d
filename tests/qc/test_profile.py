"""Thresholds come from files that are checked when a worker starts."""

import shutil
from pathlib import Path

import pytest

from qc_consumers.profile import BUILT_IN, Evidence, Profile, ProfileError, load_profiles, profile_for
from schemas.records import Verdict


def written(folder: Path, name: str, text: str) -> Path:
    shutil.copytree(BUILT_IN, folder / "profiles")
    (folder / "profiles" / name).write_text(text)
    return folder / "profiles"


def verdicts(profile: Profile, gate: str, *values: float) -> list[Verdict | None]:
    judged = [list(profile.judged([Evidence(gate=gate, frame=-1, value=value, detail="")])) for value in values]
    return [findings[0].verdict if findings else None for findings in judged]


def test_the_standard_profile_has_the_limits_of_the_requirements() -> None:
    standard = load_profiles()[-1]
    limits = {"psnr_y": 38.0, "vmaf": 82.0, "av_sync": 0.042, "clean_run": 1000, "gop": 2.0, "pts_step": 0.0005}
    assert {gate: standard.limit(gate) for gate in limits} == limits
    assert standard.rules["av_sync"].warn == 0.021


def test_a_value_between_warning_and_limit_is_delivered_with_a_warning() -> None:
    standard = load_profiles()[-1]
    assert verdicts(standard, "av_sync", 0.021, 0.03, 0.042, 0.043) == [
        None,
        Verdict.PASS,
        Verdict.PASS,
        Verdict.REENCODE,
    ]
    assert verdicts(standard, "psnr_y", 38.0, 37.9) == [None, Verdict.REENCODE]


def test_videos_in_pq_have_a_profile_of_their_own_that_says_only_what_differs() -> None:
    profiles = load_profiles()
    assert (profile_for(profiles, 16).name, profile_for(profiles, 1).name) == ("hdr10", "standard")
    assert profile_for(profiles, 16).limit("vmaf") == 82.0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[gates]\nvmaf = { at_least = 82.0, action = 'shrug' }", "shrug"),
        ("[gates]\nvmaf = { action = 'warn' }", "at_most or at_least"),
        ("[gates]\nav_sync = { at_most = 0.042, warn = 0.05, action = 'warn' }", "beyond the limit"),
        ("[applies]\ntransfer = 18\n[gates]\nvmav = { at_least = 82.0, action = 'warn' }", "vmav"),
        ("[applies]\ncountry = 3", "transfer"),
        ("[applies]\ntransfer = 18\n[baselines]\nvmav = { below = 5, spread = 1, action = 'warn' }", "vmav"),
        ("[baselines]\nvmaf = { below = 0, spread = 1, action = 'warn' }", "below"),
        ("[gates", "standard|strict"),
        ("[gates]\nvmaf = { at_least = 90.0, action = 'warn' }", "applies"),
    ],
)
def test_a_profile_that_says_something_wrong_stops_the_worker(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ProfileError, match=words):
        load_profiles(written(tmp_path, "strict.toml", text))


def test_a_standard_profile_without_a_gate_stops_the_worker(tmp_path: Path) -> None:
    text = (BUILT_IN / "standard.toml").read_text().replace("black = ", "# ")
    with pytest.raises(ProfileError, match="black"):
        load_profiles(written(tmp_path, "standard.toml", text))
