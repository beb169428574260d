"""A record that cannot be worked at now, because a store is away: it goes to the end of its partition, and is not begun before its time.

What lies behind it goes on. Nothing is given up for hours: that others have to wait is no reason for a job to fail.
"""

from obstore.exceptions import BaseError

from infra.bus.errors import LaterError
from infra.bus.message import Message
from infra.bus.outputs import Output
from schemas.headers import RawHeaders

TRANSIENT = (LaterError, BaseError, OSError)
"""The store, the disk or the network is to blame, not the record."""
HELD = 50
"""Records of one partition that wait for their time in memory."""
_FIRST_S, _LONGEST_S = 1.0, 60.0
_DOUBLINGS = 6
"""More lead beyond the longest: a header may have any number."""
_GIVE_UP_US = 6 * 3600 * 1_000_000
_COUNT, _DUE, _SINCE = "retry.count", "retry.due_us", "retry.since_us"


def put_back(message: Message, now_us: int) -> Output:
    """The record once more: twice as long after each time, up to a minute."""
    count = _number(message, _COUNT)
    due_us = now_us + round(min(_LONGEST_S, _FIRST_S * 2 ** min(count, _DOUBLINGS)) * 1e6)
    since_us = _number(message, _SINCE) or now_us
    ours = ((_COUNT, count + 1), (_DUE, due_us), (_SINCE, since_us))
    kept = tuple((name, value) for name, value in message.headers if name not in (_COUNT, _DUE, _SINCE))
    return _again(message, (*kept, *((name, str(value).encode()) for name, value in ours)))


def put_behind(message: Message) -> Output:
    """The record as it is, behind others that need not wait."""
    return _again(message, message.headers)


def is_due(message: Message, now_us: int) -> bool:
    """Whether it may be begun. A clock that was far ahead when it was put back holds nothing up for long."""
    return not now_us < _number(message, _DUE) <= now_us + round(_LONGEST_S * 1e6)


def given_up(message: Message, now_us: int) -> bool:
    """Whether it was tried for long enough."""
    return 0 < _number(message, _SINCE) < now_us - _GIVE_UP_US


def _again(message: Message, headers: RawHeaders) -> Output:
    return Output(
        topic=message.topic, key=message.key, value=message.value, headers=headers, partition=message.partition
    )


def _number(message: Message, name: str) -> int:
    """0 if the header is not there or is no number."""
    value = next((value or b"" for key, value in message.headers if key == name), b"")
    return int(value) if value.isdigit() and len(value) < 20 else 0
