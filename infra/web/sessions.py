"""Who has signed in at the console: a role and an end, signed with a secret of this process. Nothing is kept; a restart ends all."""

import hashlib
import hmac
import secrets
import time
from enum import IntEnum

COOKIE = "longtake_session"
SESSION_S = 12 * 3600


class Role(IntEnum):
    """What somebody may do."""

    NOBODY = 0
    VIEWER = 1
    OPERATOR = 2


class Sessions:
    """Makes and checks what the cookie holds: `ROLE.END.SIGNATURE`."""

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)

    def make(self, role: Role) -> str:
        """The cookie's value for somebody who has just signed in."""
        content = f"{int(role)}.{int(time.time()) + SESSION_S}"
        return f"{content}.{self._sign(content)}"

    def role(self, value: str) -> Role:
        """Of whoever sends this value; NOBODY if it was not made here or is over."""
        content, _, signature = value.rpartition(".")
        if not hmac.compare_digest(self._sign(content).encode(), signature.encode()):
            return Role.NOBODY
        role, _, until = content.partition(".")
        return Role(int(role)) if int(until) >= time.time() else Role.NOBODY

    def _sign(self, content: str) -> str:
        return hmac.new(self._secret, content.encode(), hashlib.sha256).hexdigest()
