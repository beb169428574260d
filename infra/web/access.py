"""Who may do what at the door: nobody has to sign in on loopback; elsewhere a viewer may look and an operator may act.

Programs send `Authorization: Bearer PASSWORD`. What acts takes JSON only, which no other site's form can send, and no cookie
is taken for it: there is nothing to forge.
"""

import hmac
from enum import IntEnum
from ipaddress import ip_address

from fastapi import HTTPException, Request

from infra.settings import Settings


class Role(IntEnum):
    """What somebody may do."""

    NOBODY = 0
    VIEWER = 1
    OPERATOR = 2


class AccessError(Exception):
    """The door must not be opened like this."""


class Access:
    """Checks requests."""

    def __init__(self, settings: Settings) -> None:
        """Raises: AccessError if others than this machine could come in without a password."""
        self._passwords = {
            Role.OPERATOR: settings.door_operator_password.get_secret_value(),
            Role.VIEWER: settings.door_viewer_password.get_secret_value(),
        }
        self._open = is_loopback(settings.door_host) and not any(self._passwords.values())
        if not (self._open or self._passwords[Role.OPERATOR]):
            raise AccessError("LONGTAKE_DOOR_OPERATOR_PASSWORD is needed: others than this machine can reach the door")

    def role(self, request: Request) -> Role:
        """Of whoever sent the request."""
        if self._open:
            return Role.OPERATOR
        kind, _, given = request.headers.get("Authorization", "").partition(" ")
        for role, password in self._passwords.items():
            if kind.lower() == "bearer" and password and hmac.compare_digest(given.encode(), password.encode()):
                return role
        return Role.NOBODY

    def viewer(self, request: Request) -> None:
        """Raises: HTTPException unless they may look."""
        self._demand(request, Role.VIEWER)

    def operator(self, request: Request) -> None:
        """Raises: HTTPException unless they may act."""
        self._demand(request, Role.OPERATOR)

    def _demand(self, request: Request, least: Role) -> None:
        role = self.role(request)
        if role == Role.NOBODY:
            raise HTTPException(401, "sign in: Authorization: Bearer PASSWORD", {"WWW-Authenticate": "Bearer"})
        if role < least:
            raise HTTPException(403, "this needs the operator's password")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
