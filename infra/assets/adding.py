"""A file -> an object named by its content, and what is to be said of it on longtake.assets.v1.

    1. read all of it                     what it is, and its sha256
    2. claim `assets/names/NAME/VERSION`  put only where there is none: of two who add a version at once, one is first
    3. put `assets/content/SHA256/TRY`    under a key of its own, so that a sweep sees it as young
    4. AssetChanged                       from then on jobs can name it

A crash in between leaves a claim to the same bytes and an object that the sweep takes out: adding the file again is all it takes.
"""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from infra.assets.catalogue import CONTENT, Catalogue, changed_us, check_names
from infra.assets.media import read_media
from infra.objects import BlobError, Objects, file_digest
from schemas.errors import BadInputError
from schemas.records import AssetChanged, AssetRef, Blob

_NAMES = "assets/names/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """How an asset is to be called. An empty version: the next number, or the newest one if that has the same bytes."""

    name: str
    version: str = ""
    region: str = ""
    media_type: str = ""
    """What it must turn out to be; empty: anything an asset can be."""


def added(objects: Objects, catalogue: Catalogue, path: Path, wish: Wish, now_us: int) -> AssetChanged:
    """The asset, its content stored. One that is there already comes back as it was.

    Raises: MediaError if the file is nothing that can be used; BadInputError if the name cannot be given to it.
    """
    check_names(wish.name, wish.version or "1", wish.region)
    media = read_media(path)
    if wish.media_type not in ("", media.media_type):
        raise _refused("media_type", "media", f"{path.name} is {media.media_type}, not {wish.media_type}")
    digest = file_digest(path, "sha256")
    version = _claimed(objects, catalogue, wish, digest)
    known = next((e for e in catalogue.versions(wish.name) if e.asset.version == version), None)
    if known and not known.removed_us and _holds(objects, known.asset.content):
        return known
    asset = AssetRef(
        name=wish.name,
        version=version,
        region=wish.region,
        content=_stored(objects, catalogue, path, digest, media.media_type),
        duration_us=media.duration_us,
        width=media.width,
        height=media.height,
    )
    if known and not known.removed_us:  # its content was lost, and is there again
        return replace(known, asset=asset)
    return AssetChanged(asset=asset, added_us=max(now_us, changed_us(known) + 1 if known else 0))


def removed(catalogue: Catalogue, name: str, version: str, now_us: int) -> AssetChanged:
    """The version's end. Raises: BadInputError if there is none."""
    known = next((e for e in catalogue.versions(name) if e.asset.version == version and not e.removed_us), None)
    if known is None:
        raise _refused("name", "unknown_asset", f"there is no asset {name}@{version}")
    return replace(known, removed_us=max(now_us, known.added_us + 1))


def _claimed(objects: Objects, catalogue: Catalogue, wish: Wish, digest: str) -> str:
    """The version that is this content's. Raises: BadInputError if it is another's."""
    said = f"{digest} {wish.region}".strip().encode()
    for version in _versions(catalogue, wish, digest):
        key = f"{_NAMES}{wish.name}/{version}"
        if objects.put_new(key, said) or objects.read(key) == said:
            return version
    message = f"{wish.name}@{wish.version} has other bytes or another region: give these a version of their own"
    raise _refused("version", "immutable", message)


def _versions(catalogue: Catalogue, wish: Wish, digest: str) -> Iterator[str]:
    """Those to try, in order."""
    if wish.version:
        yield wish.version
        return
    known = catalogue.versions(wish.name)
    yield from (e.asset.version for e in known[:1] if e.asset.content.digest == digest)
    numbers = [int(e.asset.version) for e in known if e.asset.version.isdecimal()]
    yield from map(str, count(max(numbers, default=0) + 1))


def _stored(objects: Objects, catalogue: Catalogue, path: Path, digest: str, media_type: str) -> Blob:
    """The content, put once for all assets that have it. Raises: BadInputError if the file has changed since it was read."""
    shared = (e.asset.content for e in catalogue.all() if not e.removed_us and e.asset.content.digest == digest)
    for blob in shared:
        if _holds(objects, blob):
            return blob
    key = f"{CONTENT}{digest.partition(':')[2]}/{uuid.uuid4().hex[:12]}"
    blob = objects.put_file(key, path, media_type, algorithm="sha256")
    if blob.digest != digest:
        raise _refused("file", "changed", f"{path.name} was written to while it was read")
    return blob


def _holds(objects: Objects, blob: Blob) -> bool:
    try:
        return objects.holds(blob)
    except BlobError:  # of a store that was used before
        return False


def _refused(where: str, rule: str, message: str) -> BadInputError:
    return BadInputError(field=where, rule=rule, message=message)
