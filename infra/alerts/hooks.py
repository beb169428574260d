"""Who is told, from `LONGTAKE_WEBHOOKS` or the file of `LONGTAKE_WEBHOOKS_FILE`: a JSON list, read and checked once.

    [{"name": "ops", "url": "https://example.com/hook", "format": "json", "secret": "whsec_...", "on": ["failed"]},
     {"name": "chat", "url": "https://hooks.slack.com/services/...", "format": "slack"}]

Addresses of chats are secrets like passwords: whoever knows one can write there.
"""

import base64
import binascii
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import ip_address
from typing import Annotated
from urllib.parse import urlsplit

import msgspec
from pydantic import SecretStr

from infra.alerts.alert import Kind
from infra.settings import Settings

_PREFIX = "whsec_"
_SHORTEST_BYTES = 16


class HookError(ValueError):
    """A configuration that says something wrong: correct it. Its text has no secrets."""


class Format(StrEnum):
    """What the other side understands."""

    JSON = "json"
    SLACK = "slack"
    WECOM = "wecom"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """One address."""

    name: str
    """In logs, metrics and the name of its consumer group."""
    url: SecretStr
    format: Format
    key: SecretStr
    """What deliveries are signed with, base64; empty: they are not."""
    on: frozenset[Kind]

    @property
    def host(self) -> str:
        """What may be said of the address."""
        return urlsplit(self.url.get_secret_value()).hostname or ""


class _Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9-]{1,32}$")]
    url: str
    format: Format = Format.JSON
    secret: str = ""
    on: tuple[Kind, ...] = (Kind.REJECTED, Kind.FAILED, Kind.DEAD_LETTER)


def hooks_of(settings: Settings) -> tuple[Hook, ...]:
    """All of them; none if nothing is configured. Raises: HookError."""
    text = settings.webhooks.get_secret_value()
    if not text.strip():
        return ()
    try:
        entries = msgspec.json.decode(text, type=tuple[_Entry, ...])
    except msgspec.DecodeError as error:
        raise HookError(f"LONGTAKE_WEBHOOKS: {error}") from None  # the cause may quote it
    names = [entry.name for entry in entries]
    if len(set(names)) != len(names):
        raise HookError("LONGTAKE_WEBHOOKS: two have the same name")
    return tuple(map(_hook, entries))


def _hook(entry: _Entry) -> Hook:
    _check_address(entry)
    if entry.format is Format.JSON and not entry.secret:
        raise HookError(f"webhook {entry.name}: a json one needs a secret to sign with")
    key = SecretStr(base64.b64encode(_key(entry)).decode())
    return Hook(name=entry.name, url=SecretStr(entry.url), format=entry.format, key=key, on=frozenset(entry.on))


def _check_address(entry: _Entry) -> None:
    try:
        parts = urlsplit(entry.url)
        host = parts.hostname or ""
    except ValueError:
        raise HookError(f"webhook {entry.name}: its url is none") from None
    if parts.scheme not in ("http", "https") or not host or parts.username or parts.password:
        raise HookError(f"webhook {entry.name}: its url is https://host/..., without a user")
    if parts.scheme == "http" and not _is_loopback(host):
        raise HookError(f"webhook {entry.name}: only https, except on this machine")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _key(entry: _Entry) -> bytes:
    """As Standard Webhooks writes secrets: base64 behind `whsec_`; any other text as it is."""
    try:
        encoded = entry.secret.removeprefix(_PREFIX)
        key = base64.b64decode(encoded, validate=True) if encoded != entry.secret else entry.secret.encode()
    except binascii.Error:
        raise HookError(f"webhook {entry.name}: its secret is not base64 behind {_PREFIX}") from None
    if entry.secret and len(key) < _SHORTEST_BYTES:
        raise HookError(f"webhook {entry.name}: its secret has less than {_SHORTEST_BYTES} bytes")
    return key
