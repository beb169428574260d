"""Which jobs a release changes, and how: a deterministic draw by job id, made once, when a job is accepted."""

from collections.abc import Iterable
from dataclasses import replace

import xxhash

from schemas.records import Encode, PromptSubmitted, ReleaseChanged
from streams.releases.gate import ACTIVE


def concerning(prompt: PromptSubmitted, releases: Iterable[ReleaseChanged]) -> ReleaseChanged | None:
    """The release that a prompt is drawn in: the oldest active one of its engine."""
    mine = [r for r in releases if r.stage in ACTIVE and r.engine == prompt.engine]
    return min(mine, key=lambda r: (r.started_us, r.name), default=None)


def is_candidate(job_id: str, release: ReleaseChanged) -> bool:
    """Whether the job is among the release's share."""
    return place_of(job_id, release.name) < release.share


def place_of(job_id: str, release: str) -> float:
    """Where the job lies in [0, 1): xxHash64 of both names. A wider share keeps the jobs of a smaller one; releases draw apart."""
    return (xxhash.xxh64_intdigest(f"{release}/{job_id}".encode()) >> 11) / 2.0**53


def arm_name(release: ReleaseChanged, *, candidate: bool) -> str:
    """`RELEASE.STEP/candidate` or `RELEASE.STEP/control`."""
    return f"{release.name}.{release.step}/{'candidate' if candidate else 'control'}"


def changed_prompt(prompt: PromptSubmitted, release: ReleaseChanged) -> PromptSubmitted:
    """The prompt as the candidate makes it."""
    options = prompt.engine_options | release.engine_options
    return replace(prompt, engine=release.new_engine or prompt.engine, engine_options=options)


def changed_encode(encode: Encode, release: ReleaseChanged) -> Encode:
    """As the candidate encodes it."""
    return replace(encode, crf=release.crf or encode.crf, preset=release.preset or encode.preset)
