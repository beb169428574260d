"""The track of sound of a finished video: every sound at its sample, as loud as streams are, spoken words where there are voices."""

import shutil
from dataclasses import replace
from itertools import count
from pathlib import Path

import av
import numpy as np
import pytest

from infra.assets.catalogue import Catalogue
from infra.objects import Objects
from qc_consumers.check import Bench
from qc_consumers.videos import check_video
from schemas.codec import sealed
from schemas.records import AssemblyFailed, Sound, VideoAssembled
from streams.assembler import Assemble
from streams.sound import RATE
from streams.sound.mix import Cue
from streams.sound.track import SoundTrack
from tests.qc.conftest import bench as _bench
from tests.sound.builders import chords, clicks, places, played, sound_asset
from tests.stitcher.clips import shot
from tests.stitcher.takes import assembly, stitch, stitcher, take

bench = _bench
FRAMES = 84
SECONDS = FRAMES / 24


@pytest.fixture
def objects(bench: Bench) -> Objects:
    return bench.objects


def assembled(objects: Objects, folder: Path, *sounds: Sound) -> VideoAssembled | AssemblyFailed:
    """A small video of two pieces with these sounds."""
    clips = take(objects, shot(0, 50, width=128, height=72), shot(42, 42, width=128, height=72))
    request = assembly(stitch(clips, stitcher(objects, folder / "stitch")))
    assert request.frames == FRAMES
    clock = count(1)
    return Assemble(objects, folder / "scratch", "assemble-0", lambda: next(clock))(
        sealed(replace(request, sounds=sounds))
    )


def test_a_video_with_music_and_effects_passes_the_gates_and_each_click_is_at_its_sample(
    objects: Objects, bench: Bench, tmp_path: Path
) -> None:
    known, times_s = Catalogue(), [0.25, 1.0, 1.0 + 13 / 24, 3.0]
    bed = sound_asset(objects, known, tmp_path, "bed", chords(1.5))
    click = sound_asset(objects, known, tmp_path, "click", clicks(0.01, [0.0]))
    music = Sound(start_us=0, gain_db=-12, asset=bed, loop=True, fade_out_us=500_000)
    effects = [Sound(start_us=round(time_s * 1e6), gain_db=0, asset=click) for time_s in times_s]
    event = assembled(objects, tmp_path, music, *effects)
    assert isinstance(event, VideoAssembled)
    assert [(track.kind, track.codec, track.samples) for track in event.tracks] == [
        ("video", "h264", FRAMES),
        ("audio", "aac", round(SECONDS * RATE)),
    ]
    samples = played(objects.get_file(event.video, tmp_path))
    assert len(samples) == round(SECONDS * RATE)
    assert places(samples, times_s) == [0] * 4
    findings = check_video(event, bench).measured.findings
    assert {f.gate for f in findings} & {"tracks", "av_sync", "loudness", "silence", "true_peak", "clipping"} == set()


def test_sound_does_not_drift_in_two_minutes(tmp_path: Path) -> None:
    times_s = [0.5, *(k * 7 + 1 / 3 for k in range(17)), 119.5]
    samples = clicks(120, times_s)
    cue = Cue(start=0, end=120 * RATE, gain=1, fade_in=0, fade_out=0, blocks=lambda: iter([samples]))
    with av.open(str(tmp_path / "sound.mp4"), "w") as output:
        for packet in SoundTrack(cues=[cue], samples=120 * RATE).packets(output):
            output.mux(packet)
    assert places(played(tmp_path / "sound.mp4"), times_s) == [0] * len(times_s)


def test_music_comes_to_the_loudness_of_streams_and_a_few_clicks_only_to_what_their_peaks_allow() -> None:
    cue = Cue(start=0, end=4 * RATE, gain=1, fade_in=0, fade_out=0, blocks=lambda: iter([chords(4, 0.02)]))
    music = SoundTrack(cues=[cue], samples=4 * RATE)
    list(music.mastered())
    assert music.lufs == pytest.approx(-16, abs=0.5)
    cue = replace(cue, blocks=lambda: iter([clicks(4, [0.5, 2.0])]))
    few = SoundTrack(cues=[cue], samples=4 * RATE)
    peak = max(float(np.abs(block).max()) for block in few.mastered())
    assert few.lufs < -20
    assert peak <= 10 ** (-2 / 20) + 1e-3


def test_silence_is_a_fault_only_where_something_is_meant_to_be_heard(
    objects: Objects, bench: Bench, tmp_path: Path
) -> None:
    known = Catalogue()
    hollow = np.concatenate([chords(0.5), np.zeros((round(2.5 * RATE), 2), np.float32), chords(0.5)])
    bed = sound_asset(objects, known, tmp_path, "hollow", hollow)
    click = sound_asset(objects, known, tmp_path, "click", clicks(0.01, [0.0]))
    silent = assembled(objects, tmp_path, Sound(start_us=0, gain_db=0, asset=bed))
    sparse = assembled(objects, tmp_path, *(Sound(start_us=t, gain_db=0, asset=click) for t in (0, 3_300_000)))
    assert isinstance(silent, VideoAssembled)
    assert isinstance(sparse, VideoAssembled)
    assert sparse.sounds_us == (0, 10_000, 3_300_000, 3_310_000)
    gates = [{f.gate for f in check_video(event, bench).measured.findings} for event in (silent, sparse)]
    assert ["silence" in found for found in gates] == [True, False]
    assert "loudness" not in gates[1]


def test_a_lost_asset_ends_the_assembly_with_its_name(objects: Objects, tmp_path: Path) -> None:
    bed = sound_asset(objects, Catalogue(), tmp_path, "bed", chords(0.5))
    objects.delete([objects.key_of(bed.content)])
    answer = assembled(objects, tmp_path, Sound(start_us=0, gain_db=0, asset=bed))
    assert isinstance(answer, AssemblyFailed)
    assert (answer.pieces, "not there" in answer.reason) == ((), True)


def test_words_are_spoken(objects: Objects, tmp_path: Path) -> None:
    assert shutil.which("espeak-ng"), "make test installs espeak-ng"
    words = Sound(start_us=1_000_000, gain_db=0, text="The fox; $(reboot) -w x.", voice="en", words_per_minute=160)
    event = assembled(objects, tmp_path, words)
    assert isinstance(event, VideoAssembled)
    samples = played(objects.get_file(event.video, tmp_path))
    assert np.abs(samples[: RATE - 2000]).max() < 0.01
    assert np.abs(samples[RATE:]).max() > 0.1


def test_without_a_voice_the_assembly_fails_and_says_what_to_install(
    objects: Objects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    answer = assembled(objects, tmp_path, Sound(start_us=0, gain_db=0, text="Hello", voice="en", words_per_minute=160))
    assert isinstance(answer, AssemblyFailed)
    assert "apt-get install espeak-ng" in answer.reason
