"""The object store: latents, frames, pieces, videos and manifests, by URL (obstore: local folder, S3, GCS, Azure).

Blobs are written under attempt-unique keys and never changed; a reader checks the digest. Tensors are safetensors.
"""

import contextlib
import hashlib
import logging
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import numpy as np
import obstore
import obstore.store
import xxhash
from numpy.typing import NDArray
from obstore.exceptions import AlreadyExistsError
from safetensors.numpy import load, save

from schemas.records import Blob

SAFETENSORS = "application/x-safetensors"
Tensors = Mapping[str, NDArray[np.generic]]
_NAME = r"[A-Za-z0-9][A-Za-z0-9._=-]{0,249}"
_KEY = re.compile(rf"{_NAME}(/{_NAME}){{0,7}}")
"""Names for which every file system has room: a longer one in a pointer is no error of the store, which would be waited for."""
_CHUNK = 8 << 20
_PART = 1 << 20
_SEAL_BYTES = 16
_UPLOAD = re.compile(r"#\d+$")
"""How obstore names a file in a folder until all of it is there; such names are never listed."""
_CLOCK = "sweep/clock"
_BATCH = 1000
"""Objects deleted by one request, where the store can do that."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """An object as the store lists it. `modified_s` is when it was put, by the store's clock, since the epoch."""

    key: str
    size_bytes: int
    modified_s: float


class BlobError(Exception):
    """The object is missing, outside the store, or not the bytes it is said to be."""


class Objects:
    """One store at `url`. Safe to share between threads; open it anew in a child process."""

    def __init__(self, url: str) -> None:
        _check_url(url)
        self.url = url.rstrip("/")
        self._local = Path(unquote(urlsplit(url).path)) if url.startswith("file:") else None
        if self._local:
            self._local.mkdir(parents=True, exist_ok=True)
            self._store = obstore.store.LocalStore(self._local, automatic_cleanup=True)
        else:
            self._store = obstore.store.from_url(self.url)

    def put_bytes(self, key: str, data: bytes, media_type: str) -> Blob:
        """Store `data` under `key`. Atomic: readers see nothing or all of it."""
        obstore.put(self._store, _checked(key), data)
        digest = f"xxh3:{xxhash.xxh3_128_hexdigest(data)}"
        return Blob(uri=self._uri(key), digest=digest, size_bytes=len(data), media_type=media_type)

    def put_file(self, key: str, path: Path, media_type: str, *, algorithm: str = "xxh3") -> Blob:
        """Store the file under `key` without reading it into memory. `algorithm` is `xxh3` or `sha256`."""
        digest = file_digest(path, algorithm)
        obstore.put(self._store, _checked(key), path)
        return Blob(uri=self._uri(key), digest=digest, size_bytes=path.stat().st_size, media_type=media_type)

    def put_new(self, key: str, data: bytes) -> bool:
        """Store `data` unless there is an object of that key, which stays as it is. Returns whether it was stored."""
        try:
            obstore.put(self._store, _checked(key), data, mode="create", use_multipart=False)
        except AlreadyExistsError:
            return False
        return True

    def put_tensors(self, key: str, tensors: Tensors, main: str) -> Blob:
        """Store named arrays as safetensors; the blob's shape and dtype are those of `main`."""
        blob = self.put_bytes(key, save({name: np.ascontiguousarray(t) for name, t in tensors.items()}), SAFETENSORS)
        array = tensors[main]
        return Blob(
            uri=blob.uri,
            digest=blob.digest,
            size_bytes=blob.size_bytes,
            media_type=SAFETENSORS,
            shape=array.shape,
            dtype=str(array.dtype),
        )

    def get_bytes(self, blob: Blob) -> bytes:
        """The bytes of `blob`. Raises: BlobError if they are missing or not those of its digest."""
        data = self._read(self.key_of(blob))
        algorithm = blob.digest.partition(":")[0]
        found = hashlib.sha256(data).hexdigest() if algorithm == "sha256" else xxhash.xxh3_128_hexdigest(data)
        if f"{algorithm}:{found}" != blob.digest:
            raise BlobError(f"{blob.uri}: digest is {algorithm}:{found}, not {blob.digest}")
        return data

    def get_tensors(self, blob: Blob) -> dict[str, NDArray[np.generic]]:
        """The named arrays of `blob`. Raises: BlobError."""
        return load(self.get_bytes(blob))

    def get_file(self, blob: Blob, folder: Path) -> Path:
        """A local file with the bytes of `blob`, checked: the object itself if the store is a folder, else a copy in `folder`.

        Raises: BlobError.
        """
        key = self.key_of(blob)
        path = self._local / key if self._local else folder / key.replace("/", "_")
        if not self._local:
            path.write_bytes(self._read(key))
        if not path.is_file():
            raise BlobError(f"{blob.uri}: not there")
        found = file_digest(path, blob.digest.partition(":")[0])
        if found != blob.digest:
            raise BlobError(f"{blob.uri}: digest is {found}, not {blob.digest}")
        return path

    def holds(self, blob: Blob) -> bool:
        """Whether the object is there and as long as it is said to be. Its bytes are not read. Raises: BlobError."""
        try:
            return obstore.head(self._store, self.key_of(blob))["size"] == blob.size_bytes
        except FileNotFoundError:
            return False

    def link(self, blob: Blob, expires_s: int) -> str:
        """A URL with which anybody gets the blob's bytes until then, from S3, GCS or Azure.

        Raises: BlobError if it is outside this store, or this store is a folder.
        """
        key = self.key_of(blob)
        if isinstance(self._store, obstore.store.LocalStore | obstore.store.MemoryStore | obstore.store.HTTPStore):
            raise BlobError(f"{blob.uri}: only S3, GCS and Azure have links; this is {self.url.partition(':')[0]}")
        return obstore.sign(self._store, "GET", key, timedelta(seconds=expires_s))

    def put_manifest(self, request_hash: str, event: bytes) -> None:
        """Remember the encoded event that answers a request: done work is announced again, never done twice."""
        obstore.put(self._store, f"manifests/{_checked(request_hash)}", xxhash.xxh3_128_digest(event) + event)

    def get_manifest(self, request_hash: str) -> bytes | None:
        """The event that answered this request before. None: there is none, or it is damaged and the work is done again."""
        try:
            sealed = obstore.get(self._store, f"manifests/{_checked(request_hash)}").bytes().to_bytes()
        except FileNotFoundError:
            return None
        seal, event = sealed[:_SEAL_BYTES], sealed[_SEAL_BYTES:]
        if seal == xxhash.xxh3_128_digest(event):
            return event
        log.warning("the manifest of %s is damaged and passed over", request_hash)
        return None

    def chunks(self, blob: Blob) -> Iterator[bytes]:
        """The object's bytes as they come, not checked. Raises: BlobError if there is none."""
        try:
            yield from (
                bytes(chunk) for chunk in obstore.get(self._store, self.key_of(blob)).stream(min_chunk_size=_PART)
            )
        except FileNotFoundError as error:
            raise BlobError(f"{blob.uri}: not there") from error

    def read(self, key: str) -> bytes:
        """The bytes of an object without a digest, which only its key names. Raises: BlobError if there is none."""
        if not _KEY.fullmatch(key):
            raise BlobError(f"{self.url}/{key}: not there")
        return self._read(key)

    def listed(self, folder: str = "") -> Iterator[Stored]:
        """Every object there is in that folder, or at all. What is put meanwhile may be missing."""
        for chunk in obstore.list(self._store, folder or None, chunk_size=1000):
            for meta in chunk:
                modified_s = meta["last_modified"].timestamp()
                yield Stored(key=meta["path"], size_bytes=meta["size"], modified_s=modified_s)

    def delete(self, keys: Iterable[str]) -> None:
        """Remove objects; those that are gone already do not matter."""
        left = list(keys)
        size = 1 if self._local else _BATCH
        for start in range(0, len(left), size):
            with contextlib.suppress(FileNotFoundError):
                obstore.delete(self._store, left[start : start + size])

    def delete_broken_uploads(self, age_s: float) -> int:
        """Remove what killed writers have left in a folder, older than that, and return how many. Other stores do it themselves."""
        removed = 0
        for path in self._local.rglob("*#*") if self._local else ():
            with contextlib.suppress(FileNotFoundError):  # an upload that has just become its object
                if _UPLOAD.search(path.name) and time.time() - path.stat().st_mtime >= age_s:
                    path.unlink()
                    removed += 1
        return removed

    def clock_s(self) -> float:
        """The store's time since the epoch, which is not this machine's."""
        obstore.put(self._store, _CLOCK, b"")
        return obstore.head(self._store, _CLOCK)["last_modified"].timestamp()

    def local_path(self, key: str) -> Path:
        """The file of an object in a local store. Raises: BlobError if there is none."""
        path = self._local / _checked(key) if self._local and _KEY.fullmatch(key) else None
        if path is None or not path.is_file():
            raise BlobError(f"{self.url}/{key}: not there")
        return path

    def key_of(self, blob: Blob) -> str:
        """The blob's key. Raises: BlobError if its URI is outside this store."""
        key = unquote(blob.uri.removeprefix(self.url + "/"))
        if not blob.uri.startswith(self.url + "/") or not _KEY.fullmatch(key):
            raise BlobError(f"{blob.uri}: outside {self.url}")
        return key

    def _read(self, key: str) -> bytes:
        try:
            return obstore.get(self._store, key).bytes().to_bytes()
        except FileNotFoundError as error:
            raise BlobError(f"{self.url}/{key}: not there") from error

    def _uri(self, key: str) -> str:
        return f"{self.url}/{quote(key)}"


def job_key(job_id: str, kind: str, name: str) -> str:
    """`jobs/J/segments/3-1.safetensors`: the key of a job's object. `name` holds index and attempt."""
    return _checked(f"jobs/{job_id}/{kind}/{name}")


def file_digest(path: Path, algorithm: str) -> str:
    """`xxh3:...` or `sha256:...` of a file, read in chunks."""
    digest = hashlib.sha256() if algorithm == "sha256" else xxhash.xxh3_128()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return f"{algorithm}:{digest.hexdigest()}"


def _check_url(url: str) -> None:
    """URLs stand in events: credentials come from the environment."""
    parts = urlsplit(url)
    if parts.password or parts.query or parts.fragment:
        raise ValueError("LONGTAKE_OBJECTS is a plain URL: credentials belong in the environment, see docs/security.md")


def _checked(key: str) -> str:
    if not _KEY.fullmatch(key) or ".." in key:
        raise ValueError(f"not an object key: {key!r}")
    return key
