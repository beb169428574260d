"""Who may do what at the door: nobody has to sign in on loopback; elsewhere a viewer may look and an operator may act.

Programs send `Authorization: Bearer PASSWORD`. People sign in at the console and get a cookie that no script reads and no other
site's page sends (`HttpOnly`, `SameSite=Strict`). Whatever the door is opened by, another site's page may not act (its `Origin`
is not ours), and on loopback no other name than this machine's own is answered (a name of another site could point here).
"""

import hmac
from ipaddress import ip_address
from urllib.parse import urlsplit

from fastapi import HTTPException, Request

from infra.settings import Settings
from infra.web.sessions import COOKIE, Role, Sessions

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


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
        self.sessions = Sessions()
        self.open = is_loopback(settings.door_host) and not any(self._passwords.values())
        """Whoever is on this machine is an operator."""
        if not (self.open or self._passwords[Role.OPERATOR]):
            raise AccessError("LONGTAKE_DOOR_OPERATOR_PASSWORD is needed: others than this machine can reach the door")

    def role(self, request: Request) -> Role:
        """Of whoever sent the request."""
        if self.open:
            return Role.OPERATOR
        kind, _, given = request.headers.get("Authorization", "").partition(" ")
        if kind:
            return self.role_of(given) if kind.lower() == "bearer" else Role.NOBODY
        return self.sessions.role(request.cookies.get(COOKIE, ""))

    def role_of(self, password: str) -> Role:
        """What a password is good for."""
        for role, right in self._passwords.items():
            if right and hmac.compare_digest(password.encode(), right.encode()):
                return role
        return Role.NOBODY

    def viewer(self, request: Request) -> None:
        """Raises: HTTPException unless they may look."""
        self._demand(request, Role.VIEWER)

    def operator(self, request: Request) -> None:
        """Raises: HTTPException unless they may act."""
        self._demand(request, Role.OPERATOR)

    def check_origin(self, request: Request) -> None:
        """Raises: HTTPException if another site's page is behind the request."""
        host = request.headers.get("Host", "")
        if self.open and not is_loopback(urlsplit(f"//{host}").hostname or ""):
            raise HTTPException(403, "on loopback the door answers to this machine's own names only")
        origin = request.headers.get("Origin")  # browsers send it with whatever acts
        if request.method not in _SAFE and origin is not None and urlsplit(origin).netloc != host:
            raise HTTPException(403, "another site's page may not act here")

    def _demand(self, request: Request, least: Role) -> None:
        self.check_origin(request)
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
