"""Files of assets for work: through the cache of the machine, or straight from the store."""

from pathlib import Path
from typing import Protocol

from infra.objects import Objects
from schemas.records import AssetRef


class AssetFiles(Protocol):
    """`infra.assets.cache.AssetCache` is one."""

    def path_of(self, asset: AssetRef, folder: Path) -> Path:
        """A file with the asset's bytes, checked, as long as `folder` is there. Raises: BlobError if there is none."""
        ...


class StoredAssets:
    """Without a cache."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def path_of(self, asset: AssetRef, folder: Path) -> Path:
        return self._objects.get_file(asset.content, folder)
