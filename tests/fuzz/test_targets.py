"""The fuzzers' targets under Hypothesis, for seconds; `make fuzz` is the same under atheris, for as long as one likes."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.targets import TARGETS, seeds

LETTER = b'{"topic": "longtake.control.v1", "key": "a", "headers": {}, %b}'


@st.composite
def near(draw: st.DrawFn, name: str) -> bytes:
    """A good input with bytes changed, cut off, or words of other inputs put in."""
    data = bytearray(draw(st.sampled_from(seeds(name))))
    for place, byte in draw(st.lists(st.tuples(st.integers(0, len(data) - 1), st.integers(0, 255)), max_size=4)):
        data[place] = byte
    at = draw(st.integers(0, len(data)))
    word = draw(
        st.sampled_from([b"", b"", b"..", b"/", b"%2e", b"\0", b"[a];b", b"'", b"\xff" * 5, b"\x80" * 9, b": {", b"- "])
    )
    cut = draw(st.sampled_from([0, 0, 1, 7]))
    return bytes(data[:at] + word + data[at + cut :])


@pytest.mark.parametrize("name", TARGETS)
def test_any_input_near_a_good_one_is_refused_or_right(name: str) -> None:
    @given(near(name) | st.binary(max_size=100))
    @settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    def holds(data: bytes) -> None:
        TARGETS[name](data)

    holds()


@pytest.mark.parametrize("name", TARGETS)
def test_what_the_fuzzers_start_from_is_good(name: str) -> None:
    for data in seeds(name):
        TARGETS[name](data)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("options", b"\0drift_exposure=0\x1d"),
        ("letter", b"[" * 100_000),
        ("letter", b'{"topic": [], "key": "a", "headers": {}, "value_base64": ""}'),
        ("letter", LETTER % b'"value_base64": "\xc3\xa9"'),
        ("letter", LETTER % b'"record": {"type": []}'),
        (
            "letter",
            LETTER % b'"record": {"type": "CancelRequested", "job_id": "a", "requested_us": 18446744073709551615}',
        ),
    ],
)
def test_what_was_found_stays_mended(name: str, data: bytes) -> None:
    TARGETS[name](data)
