"""Takes out of the object store what nobody needs any more."""

import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from prometheus_client import Gauge

from infra.objects import Objects, Stored
from infra.settings import Settings
from infra.storage.marks import read_marks
from infra.storage.retention import Kind, Marks, job_of, keep_of, kind_of, removable

OBJECTS = Gauge("longtake_store_objects", "Objects in the store after the last sweep, by what they are.", ("kind",))
BYTES = Gauge("longtake_store_bytes", "Their size.", ("kind",))
SWEPT = Gauge("longtake_store_swept_timestamp_seconds", "When the store was listed last, since the epoch.")
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a store holds, in objects and bytes by kind, and what of it may go."""

    removable: tuple[Stored, ...]
    objects: Counter[Kind] = field(default_factory=Counter)
    size_bytes: Counter[Kind] = field(default_factory=Counter)
    unknown_jobs: frozenset[str] = frozenset()
    """In the store, but not in the table: they are left alone."""

    @property
    def removable_bytes(self) -> int:
        """Of all that may go."""
        return sum(stored.size_bytes for stored in self.removable)


def look(settings: Settings, objects: Objects) -> Found:
    """What is there and what may be removed; nothing is. Raises: BusError if the log cannot be read to its end."""
    marks, keep = read_marks(settings, objects), keep_of(settings)
    objects_of, bytes_of, unknown, going = Counter[Kind](), Counter[Kind](), set[str](), list[Stored]()
    for stored in _listed(objects, marks):
        kind, job = kind_of(stored.key), job_of(stored.key)
        objects_of[kind] += 1
        bytes_of[kind] += stored.size_bytes
        if job is not None and job not in marks.jobs:
            unknown.add(job)
        if removable(stored, marks, keep):
            going.append(stored)
    if unknown:
        log.warning(
            "%d jobs in the store are not in the table; their objects stay: is it the right cluster?", len(unknown)
        )
    return Found(removable=tuple(going), objects=objects_of, size_bytes=bytes_of, unknown_jobs=frozenset(unknown))


def sweep(settings: Settings, objects: Objects) -> Found:
    """Remove what may go. Raises: BusError if the log cannot be read to its end: then nothing is removed."""
    found = look(settings, objects)
    objects.delete(stored.key for stored in found.removable)
    _count(found)
    leftovers = objects.delete_broken_uploads(settings.sweep_grace_s)
    log.info(
        "swept: %d of %d objects, %.1f MB; %d uploads that a crash cut short",
        *(len(found.removable), found.objects.total(), found.removable_bytes / 1e6, leftovers),
    )
    return found


def _count(found: Found) -> None:
    gone = Counter(kind_of(stored.key) for stored in found.removable)
    gone_bytes = Counter[Kind]()
    for stored in found.removable:
        gone_bytes[kind_of(stored.key)] += stored.size_bytes
    for kind in Kind:
        OBJECTS.labels(kind.value).set(found.objects[kind] - gone[kind])
        BYTES.labels(kind.value).set(found.size_bytes[kind] - gone_bytes[kind])
    SWEPT.set_to_current_time()


def _listed(objects: Objects, marks: Marks) -> Iterator[Stored]:
    """What was there when the marks were read: what came later is too young to be looked at."""
    return (stored for stored in objects.listed() if stored.modified_s <= marks.since_s)
