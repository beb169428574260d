"""One try to deliver an alert, and how long to wait before the next."""

import time
from dataclasses import dataclass
from itertools import islice

import httpx
import msgspec

from infra.alerts.alert import Alert
from infra.alerts.hooks import Format, Hook
from infra.alerts.letter import body_of, headers_of

_TIMEOUT_S = 5.0
"""Of connecting, and between any two parts of an answer."""
_ANSWER_CHUNKS, _CHUNK_BYTES = 4, 4096
_AGAIN = frozenset({408, 425, 429})
_WECOM_AGAIN = frozenset({-1, 45009, 45033})
"""Busy; too many messages a minute; too many at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Waits double from `first_s` to `most_s`, each by chance shortened by up to a half. An alert older than `keep_s` is no news."""

    first_s: float = 1.0
    most_s: float = 60.0
    keep_s: float = 6 * 3600.0

    def wait_s(self, tries: int, chance: float) -> float:
        """After `tries` failures; `chance` is in [0, 1)."""
        return min(self.first_s * 2 ** min(tries - 1, 32), self.most_s) * (1 - chance / 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a try ended. Neither delivered nor to be tried again: the other side will never take it."""

    delivered: bool
    again: bool = False
    after_s: float = 0.0
    """The other side asks to be left alone for so long."""
    reason: str = ""


def attempt(client: httpx.Client, hook: Hook, alert: Alert) -> Outcome:
    """Send it once. Reasons name no address: that of a chat is a secret."""
    body = body_of(alert, hook.format)
    headers = dict(headers_of(alert, hook, body, int(time.time())))
    try:
        with client.stream(
            "POST", hook.url.get_secret_value(), content=body, headers=headers, timeout=_TIMEOUT_S
        ) as answer:
            said = b"".join(islice(answer.iter_bytes(_CHUNK_BYTES), _ANSWER_CHUNKS))
    except httpx.HTTPError as error:
        return Outcome(delivered=False, again=True, reason=type(error).__name__)
    if not answer.is_success:
        again = answer.status_code in _AGAIN or answer.is_server_error
        after_s = _seconds(answer.headers.get("retry-after", ""))
        return Outcome(delivered=False, again=again, after_s=after_s, reason=f"status {answer.status_code}")
    return _wecom(said) if hook.format is Format.WECOM else Outcome(delivered=True)


def _wecom(said: bytes) -> Outcome:
    """WeCom says 200 to everything, and what it thinks in the body."""
    try:
        code = msgspec.json.decode(said, type=dict[str, object]).get("errcode")
    except msgspec.DecodeError:
        return Outcome(delivered=False, again=True, reason="an answer that is not WeCom's")
    return Outcome(delivered=code == 0, again=code in _WECOM_AGAIN, reason="" if code == 0 else f"errcode {code}")


def _seconds(text: str) -> float:
    return float(text) if text.isascii() and text.isdecimal() else 0.0
