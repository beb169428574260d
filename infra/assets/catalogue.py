"""What the names of assets mean: `theme`, `theme@2` or `sha256:...` to the one file that is meant. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from schemas.errors import BadInputError
from schemas.records import AssetChanged, AssetRef
from schemas.topics import Event

CONTENT = "assets/content/"
"""Keys of what assets hold begin so."""
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?")
_VERSION = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,38}[A-Za-z0-9])?")
_REGION = re.compile(r"[a-z0-9-]{0,40}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_SHOWN_CHARS = 120


class AssetKind(StrEnum):
    """What an asset can be used for."""

    SOUND = "sound"
    PICTURE = "picture"
    SUBTITLES = "subtitles"


MEDIA_TYPES = {
    "audio/wav": AssetKind.SOUND,
    "audio/flac": AssetKind.SOUND,
    "audio/mpeg": AssetKind.SOUND,
    "audio/ogg": AssetKind.SOUND,
    "audio/mp4": AssetKind.SOUND,
    "image/png": AssetKind.PICTURE,
    "image/jpeg": AssetKind.PICTURE,
    "image/webp": AssetKind.PICTURE,
    "text/vtt": AssetKind.SUBTITLES,
    "application/x-subrip": AssetKind.SUBTITLES,
}
"""All that an asset can be."""


@dataclass(slots=True)
class Catalogue:
    """The last state of every asset. One thread may `take` while others ask."""

    _versions: dict[str, dict[str, AssetChanged]] = field(default_factory=dict)

    def take(self, event: Event) -> None:
        """What an event says of a version of an asset; an older one says nothing new."""
        if isinstance(event, AssetChanged):
            versions = self._versions.setdefault(event.asset.name, {})
            known = versions.get(event.asset.version)
            if known is None or changed_us(known) <= changed_us(event):
                versions[event.asset.version] = event

    def all(self) -> Iterator[AssetChanged]:
        """Removed ones too, by name and version."""
        for _, versions in sorted(self._versions.copy().items()):
            yield from (event for _, event in sorted(versions.copy().items()))

    def versions(self, name: str) -> list[AssetChanged]:
        """Those of a name, the one added last first; removed ones too."""
        found = self._versions.get(name, {}).copy().values()
        return sorted(found, key=lambda e: (e.added_us, e.asset.version), reverse=True)

    def named(self, said: str) -> AssetRef | None:
        """The asset that is meant, unless there is none or it was removed."""
        if _DIGEST.fullmatch(said):
            found = (e for e in self.all() if e.asset.content.digest == said)
        else:
            name, _, version = said.partition("@")
            found = (e for e in self.versions(name) if version in ("", e.asset.version))
        return next((e.asset for e in found if not e.removed_us), None)

    def resolved(self, where: str, said: str, kind: AssetKind) -> AssetRef:
        """What field `where` of a prompt means by `said`. Raises: BadInputError naming the field and the rule it breaks."""
        if not is_asset(said):
            message = f"{said!r:.{_SHOWN_CHARS}} is not written name, name@version or sha256:HEX"
            raise BadInputError(field=where, rule="asset", message=message)
        asset = self.named(said)
        if asset is None:
            raise BadInputError(field=where, rule="unknown_asset", message=f"there is no asset {said}")
        found = MEDIA_TYPES.get(asset.content.media_type)
        if found is not kind:
            message = f"{said} is {asset.content.media_type}, where {kind.value} belongs"
            raise BadInputError(field=where, rule="asset_kind", message=message)
        return asset


def changed_us(event: AssetChanged) -> int:
    """When it was added or removed last."""
    return max(event.added_us, event.removed_us)


def is_asset(said: str) -> bool:
    """Whether it can name an asset."""
    name, at, version = said.partition("@")
    named = bool(_NAME.fullmatch(name)) and (not at or bool(_VERSION.fullmatch(version)))
    return named or bool(_DIGEST.fullmatch(said))


def check_names(name: str, version: str, region: str) -> None:
    """They are parts of keys in the store. Raises: BadInputError."""
    for where, said, rule in (("name", name, _NAME), ("version", version, _VERSION), ("region", region, _REGION)):
        if not rule.fullmatch(said) or ".." in said:
            message = f"{said!r:.{_SHOWN_CHARS}}: letters, digits, '.', '_' or '-', not at its ends; names and regions in small ones"
            raise BadInputError(field=where, rule="characters", message=message)
