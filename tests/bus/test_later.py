"""When a record that was put back is begun again."""

import pytest

from infra.bus.later import is_due, put_back
from infra.bus.message import Message

NOW_US = 1_800_000_000_000_000


def record(*headers: tuple[str, bytes]) -> Message:
    return Message(topic="t", partition=1, offset=2, key=b"boat", value=b"", headers=headers, timestamp_us=0)


@pytest.mark.parametrize(("count", "seconds"), [(b"", 1), (b"1", 2), (b"5", 32), (b"6", 60), (b"9" * 19, 60)])
def test_the_wait_doubles_up_to_a_minute_whatever_number_the_header_has(count: bytes, seconds: int) -> None:
    again = put_back(record(("retry.count", count), ("kept", b"x")), NOW_US)
    assert (again.partition, again.headers[0]) == (1, ("kept", b"x"))
    waiting = record(*((name, value or b"") for name, value in again.headers))
    assert not is_due(waiting, NOW_US + seconds * 1_000_000 - 1)
    assert is_due(waiting, NOW_US + seconds * 1_000_000)
