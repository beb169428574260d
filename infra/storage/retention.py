"""What may be removed from the object store: a pure function of an object, the log's marks and the settings."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from infra.assets.catalogue import CONTENT
from infra.objects import Stored
from infra.settings import Settings
from schemas.records import Stage

_ENDED = frozenset({Stage.FINISHED, Stage.FAILED, Stage.CANCELLED})
_JOB_KEY = re.compile(r"jobs/(?P<job>[^/]+)/(?P<folder>[^/]+)/(?P<name>[^/]+)")


class Kind(StrEnum):
    """What an object is, by its key."""

    LATENTS = "latents"
    FRAMES = "frames"
    PIECES = "pieces"
    REFERENCES = "references"
    VIDEOS = "videos"
    LIVE = "live"
    """Playlists and their segments: kept like the video, and named by nothing but their job."""
    MANIFESTS = "manifests"
    ASSETS = "assets"
    """Contents of assets: kept while the catalogue or any row names them."""
    OTHER = "other"
    """Not written by the line: never removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobMarks:
    """What the director's table says of a job: where it is, since when, which objects its row names."""

    stage: Stage
    changed_s: float
    keys: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """What the log refers to. Whatever was put before `since_s` (the store's clock) and announced by then is in it."""

    since_s: float
    in_flight: frozenset[str]
    """Objects named by records that are still to be read, or may be sent again."""
    jobs: Mapping[str, JobMarks]
    assets: frozenset[str] = frozenset()
    """Contents, by key, that the catalogue names or has named until shortly, or that a row names."""
    contents: frozenset[str] = frozenset()
    """All that the catalogue has ever named, by sha256."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """How long, in seconds. None: for ever."""

    unannounced_s: float
    """From put to the event that names it, at most."""
    failed_s: float
    """What a failed or cancelled job has, for a retry."""
    manifests_s: float
    finished_s: Mapping[Kind, float | None]
    """What is left of a finished job, by kind."""


def keep_of(settings: Settings) -> Keep:
    """The settings as rules."""
    return Keep(
        unannounced_s=settings.sweep_grace_s,
        failed_s=settings.keep_failed_s,
        manifests_s=settings.keep_manifests_s,
        finished_s={
            Kind.LATENTS: settings.keep_latents_s,
            Kind.FRAMES: settings.keep_frames_s,
            Kind.PIECES: settings.keep_pieces_s,
            Kind.REFERENCES: settings.keep_references_s,
            Kind.VIDEOS: settings.keep_videos_s,
            Kind.LIVE: settings.keep_videos_s,
        },
    )


def kind_of(key: str) -> Kind:
    """By its folder, and of segments by the end of its name."""
    if key.startswith("manifests/"):
        return Kind.MANIFESTS
    if key.startswith(CONTENT):
        return Kind.ASSETS
    match = _JOB_KEY.fullmatch(key)
    if match is None:
        return Kind.OTHER
    if match["folder"] == "segments":
        ending = match["name"].removesuffix(".safetensors").rpartition("-")[2]
        return Kind(ending) if ending in (Kind.LATENTS, Kind.FRAMES) else Kind.OTHER
    return (
        Kind(match["folder"])
        if match["folder"] in (Kind.PIECES, Kind.REFERENCES, Kind.VIDEOS, Kind.LIVE)
        else Kind.OTHER
    )


def job_of(key: str) -> str | None:
    """The job that an object belongs to."""
    match = _JOB_KEY.fullmatch(key)
    return match["job"] if match else None


def removable(stored: Stored, marks: Marks, keep: Keep) -> bool:
    """Whether nobody refers to the object, nobody can any more, and its time is over.

    Objects of jobs that the table does not know stay: every job has its row before its first object, so they are another
    cluster's, or the table is not the right one. For the same reason contents stay that the catalogue has never heard of.
    """
    kind, age_s = kind_of(stored.key), marks.since_s - stored.modified_s
    if kind is Kind.MANIFESTS:
        return age_s >= max(keep.manifests_s, keep.unannounced_s)
    if kind is Kind.ASSETS:
        known = stored.key.removeprefix(CONTENT).partition("/")[0] in marks.contents
        return (
            known
            and age_s >= keep.unannounced_s
            and stored.key not in marks.assets
            and stored.key not in marks.in_flight
        )
    job = marks.jobs.get(job_of(stored.key) or "")
    if kind is Kind.OTHER or job is None or stored.key in marks.in_flight:
        return False
    if job.stage is not Stage.FINISHED and age_s < keep.unannounced_s:
        return False
    if job.stage not in _ENDED:
        return kind is not Kind.LIVE and stored.key not in job.keys
    kept_s = keep.finished_s[kind] if job.stage is Stage.FINISHED else keep.failed_s
    named = kind is Kind.LIVE or stored.key in job.keys
    superseded = not named and (kind is Kind.VIDEOS or job.stage is not Stage.FINISHED)
    return superseded or (kept_s is not None and marks.since_s - job.changed_s >= kept_s)
