"""What `longtake doctor` says about one thing."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """`needed` False: the line runs without it. `remedy` says how to get it, empty where nothing is amiss."""

    name: str
    ok: bool
    found: str
    remedy: str = ""
    needed: bool = True
