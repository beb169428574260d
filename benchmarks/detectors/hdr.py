"""HDR10 films that lack something, and complete ones with other displays and light levels."""

import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from numpy.random import Generator

from benchmarks.detectors.case import Case, Result
from qc_consumers.check import Bench
from qc_consumers.metrics.hdr import PQ, hdr_faults
from qc_consumers.metrics.packets import scan_packets
from qc_consumers.profile import Evidence, load_profiles, profile_for
from tests.qc.hdr_film import Hdr, hdr_film

_GATES = frozenset({"hdr10", "hdr10_boxes"})
_PRIMARIES = "G(13250,34500)B(7500,3000)R(34000,16000)WP(15635,16450)"


def complete(rng: Generator) -> Hdr:
    """Displays of 400 to 4,000 cd/m2; the messages before every IDR picture or once."""
    most, least = int(rng.integers(400, 4001)) * 10_000, int(rng.integers(1, 501))
    cll = int(rng.integers(100, 4001))
    return Hdr(
        display=f"{_PRIMARIES}L({most},{least})",
        light=f"{cll},{int(rng.integers(50, cll + 1))}",
        headers_again=bool(rng.integers(2)),
    )


def without(rng: Generator) -> Hdr:
    """One thing is missing or cannot be."""
    good = complete(rng)
    wrong = [
        replace(good, primaries="bt709"),
        replace(good, matrix="bt709"),
        replace(good, color_range="full"),
        replace(good, bits=8),
        replace(good, transfer="arib-std-b67"),
        replace(good, display=""),
        replace(good, light=""),
        replace(good, display=f"{_PRIMARIES}L(1,10000000)"),
        replace(good, light="400,1000"),
    ]
    return wrong[int(rng.integers(len(wrong)))]


def without_box(rng: Generator) -> Hdr:
    """The container does not say what the stream says."""
    return replace(complete(rng), boxes=(("mdcv",), ("clli",), ())[int(rng.integers(3))])


def checked(hdr: Hdr) -> Result:
    """What the gates of the profile for HDR10 say."""
    profile = profile_for(load_profiles(), PQ)
    with tempfile.TemporaryDirectory() as name:
        scan = scan_packets(hdr_film(Path(name) / "film.mp4", hdr))
    faults = hdr_faults(scan, profile.transfer)
    evidence = [Evidence(gate=fault.gate, frame=fault.frame, value=1, detail=fault.detail) for fault in faults]
    return Result(findings=tuple(profile.judged(evidence)), looked=_GATES)


def cases() -> list[Case]:
    """All of them."""

    def run(make: Callable[[Generator], Hdr], rng: Generator, _: Bench) -> Result:
        return checked(make(rng))

    return [
        Case(name="hdr10", gate="hdr10", make=partial(run, without), clips=18),
        Case(name="hdr10_boxes", gate="hdr10_boxes", make=partial(run, without_box), clips=6),
        Case(name="hdr10_complete", gate="", make=partial(run, complete), clips=24),
    ]
