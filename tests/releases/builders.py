"""A release, and counts of jobs on both of its sides."""

from typing import Any

from schemas.records import ReleaseChanged, ReleaseStage
from streams.releases.gate import Counts, Step


def release(**fields: Any) -> ReleaseChanged:
    defaults: dict[str, Any] = {
        "name": "sharper",
        "engine": "animatic",
        "new_engine": "",
        "engine_options": {},
        "crf": 0.0,
        "preset": "",
        "share": 0.01,
        "step": 0,
        "stage": ReleaseStage.RUNNING,
        "reason": "started",
        "base_rate": 0.05,
        "effect": 0.05,
        "planned_jobs": 500,
        "clear_looks": 0,
        "looked_jobs": 0,
        "looks": (),
        "started_us": 1,
        "changed_us": 1,
    }
    return ReleaseChanged(**(defaults | fields))


def side(ended: int, **bad: int) -> Counts:
    return Counts(ended=ended, finished=ended - bad.get("failed", 0), played=ended - bad.get("failed", 0), **bad)


def step(candidate: Counts, control: Counts) -> Step:
    return Step(candidate=candidate, control=control)
