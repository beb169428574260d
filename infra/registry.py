"""The ids of `schemas/ids.lock`, imported into a Confluent-compatible schema registry.

A subject is `longtake.<Record>` (RecordNameStrategy). A registry gives ids of its own unless a subject is in mode IMPORT:
https://docs.confluent.io/platform/current/schema-registry/installation/migrate.html.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, cast

import httpx

from schemas.ids import Version

MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
_TIMEOUT_S = 10.0


class RegistryError(Exception):
    """The registry does not answer, refuses, or has another schema under one of our ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """How many versions are in the registry now that were not, and how many had been there."""

    new: int
    known: int


class Registry:
    """Owns the connection. A context manager."""

    def __init__(self, url: str, user: str = "", password: str = "") -> None:
        auth = httpx.BasicAuth(user, password) if user else None
        self._client = httpx.Client(base_url=url, auth=auth, timeout=_TIMEOUT_S, headers={"Accept": MEDIA_TYPE})

    def take_in(self, versions: Iterable[Version]) -> Imported:
        """Import what is not there yet, in order. Doing it again changes nothing.

        Raises: RegistryError, with subject and id.
        """
        new = known = 0
        for version in versions:
            subject = f"longtake.{version.record}"
            held = self._held(subject, version.version)
            if held is None:
                self._import(subject, version)
                new += 1
            elif held != version.id:
                raise RegistryError(f"{subject} version {version.version} has id {held} there, not {version.id}")
            else:
                known += 1
        return Imported(new=new, known=known)

    def __enter__(self) -> "Registry":
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def _held(self, subject: str, version: int) -> int | None:
        answer = self._ask("GET", f"/subjects/{subject}/versions/{version}", None)
        return None if answer is None else int(answer["id"])

    def _import(self, subject: str, version: Version) -> None:
        body = {"schema": version.path.read_text(), "schemaType": "AVRO", "id": version.id, "version": version.version}
        self._ask("PUT", f"/mode/{subject}?force=true", {"mode": "IMPORT"})
        try:
            answer = self._ask("POST", f"/subjects/{subject}/versions", body)
        finally:
            self._ask("PUT", f"/mode/{subject}", {"mode": "READWRITE"})
        given = None if answer is None else answer["id"]
        if given != version.id:
            raise RegistryError(
                f"the registry gave {subject} version {version.version} the id {given}, not {version.id}"
            )

    def _ask(self, method: str, path: str, body: dict[str, Any] | None) -> dict[str, Any] | None:
        try:
            answer = self._client.request(method, path, json=body)
        except httpx.HTTPError as error:
            raise RegistryError(f"no registry answers at {self._client.base_url}: {error}") from error
        if method == "GET" and answer.status_code == HTTPStatus.NOT_FOUND:
            return None
        if answer.is_error:
            raise RegistryError(f"{method} {path}: {answer.status_code} {answer.text[:300]}")
        return cast("dict[str, Any]", answer.json())
