"""Sounds in samples, as files and as assets of a store."""

import wave
from collections.abc import Iterable
from pathlib import Path

import av
import numpy as np

from infra.assets.adding import Wish, added
from infra.assets.catalogue import Catalogue
from infra.objects import Objects
from schemas.records import AssetRef
from streams.sound import RATE, Samples


def clicks(seconds: float, times_s: Iterable[float], level: float = 0.5) -> Samples:
    """Silence with single samples."""
    out = np.zeros((round(seconds * RATE), 2), np.float32)
    for time_s in times_s:
        out[round(time_s * RATE)] = level
    return out


def chords(seconds: float, level: float = 0.1, seed: int = 1) -> Samples:
    """Tones that come and go, as music does."""
    rng, time = np.random.default_rng(seed), np.arange(round(seconds * RATE)) / RATE
    out = rng.normal(0, 0.02, (len(time), 2))
    for start in np.arange(0, seconds, 0.5):
        rest = np.clip(time - start, 0, None)
        out += (np.sin(2 * np.pi * rng.choice([220, 330, 440, 659]) * rest) * np.exp(-3 * rest) * (rest > 0))[:, None]
    return (level * out).astype(np.float32)


def wav(path: Path, samples: Samples, rate: int = RATE) -> Path:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(np.rint(np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())
    return path


def sound_asset(objects: Objects, catalogue: Catalogue, folder: Path, name: str, samples: Samples) -> AssetRef:
    """Added as people add one."""
    return file_asset(objects, catalogue, wav(folder / f"{name}.wav", samples), name)


def file_asset(objects: Objects, catalogue: Catalogue, path: Path, name: str) -> AssetRef:
    event = added(objects, catalogue, path, Wish(name=name), 1)
    catalogue.take(event)
    return event.asset


def played(path: Path) -> Samples:
    """As players play it: from the edit list's beginning, to its end."""
    with av.open(str(path)) as container:
        stream = container.streams.audio[0]
        samples = np.concatenate([frame.to_ndarray() for frame in container.decode(stream)], axis=1).T
        return samples[: stream.duration]


def places(samples: Samples, times_s: list[float]) -> list[int]:
    """By how many samples the loudest one near each time is off."""
    near = RATE // 20
    found: list[int] = []
    for time_s in times_s:
        at = round(time_s * RATE)
        first = max(0, at - near)
        found.append(first + int(np.abs(samples[first : at + near, 0]).argmax()) - at)
    return found
