"""Assets on this machine: files that are what they are said to be."""

from pathlib import Path

from infra.objects import Objects
from infra.settings import Settings
from schemas.records import AssetRef


class AssetCache:
    """Serves the processes of one machine."""

    def __init__(self, settings: Settings, objects: Objects) -> None:
        del settings
        self._objects = objects

    def path_of(self, asset: AssetRef, folder: Path) -> Path:
        """A file with the asset's bytes, checked, for reading. It stays while `folder` does.

        Raises: BlobError if the store has not got it, or has other bytes.
        """
        return self._objects.get_file(asset.content, folder)
