"""Small files that assets can be, and assets in a store."""

import hashlib
import wave
from pathlib import Path

import numpy as np
from PIL import Image

from infra.assets.catalogue import CONTENT
from infra.objects import Objects
from schemas.records import AssetChanged, AssetRef, Blob

SUBRIP = "1\n00:00:01,000 --> 00:00:02,500\nHello\n\n2\n00:00:03,000 --> 00:00:04,000\nWorld\n"
WEBVTT = "WEBVTT\n\n00:01.000 --> 00:02.500\nHello\n\n00:00:03.000 --> 00:00:04.000\nWorld\n"


def tone(path: Path, seconds: float = 0.5, hz: float = 440.0, rate: int = 16_000) -> Path:
    """A WAV with one sine."""
    samples = np.sin(2 * np.pi * hz * np.arange(round(seconds * rate)) / rate) * 16_000
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(samples.astype("<i2").tobytes())
    return path


def card(path: Path, width: int = 64, height: int = 36) -> Path:
    """A picture of one colour, in the format of its name."""
    Image.new("RGB", (width, height), (200, 40, 40)).save(path)
    return path


def blob(data: bytes, uri: str = "file:///store/assets/content/x/y") -> Blob:
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    return Blob(uri=uri, digest=digest, size_bytes=len(data), media_type="audio/wav")


def asset(data: bytes = b"theme", *, name: str = "theme", version: str = "1", region: str = "") -> AssetRef:
    """One whose content is in no store."""
    return AssetRef(name=name, version=version, region=region, content=blob(data), duration_us=1)


def stored(objects: Objects, data: bytes, *, name: str = "theme", version: str = "1") -> AssetRef:
    """One whose content is in the store."""
    key = f"{CONTENT}{hashlib.sha256(data).hexdigest()}/0123456789ab"
    put = objects.put_bytes(key, data, "audio/wav")
    return AssetRef(name=name, version=version, region="", content=blob(data, put.uri), duration_us=1)


def said(ref: AssetRef, *, added_us: int = 1, removed_us: int = 0) -> AssetChanged:
    return AssetChanged(asset=ref, added_us=added_us, removed_us=removed_us)
