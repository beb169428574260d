"""Every topic that names objects, longtake.assets.v1, longtake.jobs.state.v1 -> what the log still refers to.

The order matters. An object goes from the store (young) to an event (in flight) to a row of the table. They are looked at in
this order: the store's clock, then what each group has read, then the records it has not, then the table. So an object on its
way is seen where it is or where it goes to. An asset goes from the store to the catalogue and from there to rows: the same.
"""

import sys
import time
from collections.abc import Iterable, Iterator

from confluent_kafka.admin import AdminClient

from infra.assets.catalogue import CONTENT, Catalogue
from infra.assets.known import read_catalogue
from infra.bus import clients
from infra.bus.clients import Member
from infra.bus.errors import BusError
from infra.bus.groups import GroupOffsets
from infra.bus.message import Partition
from infra.bus.progress import EndsQuery
from infra.bus.reader import Reader
from infra.bus.rows import RowReader
from infra.bus.topics import partition_counts
from infra.bus.watchdog import Watchdog
from infra.objects import BlobError, Objects
from infra.settings import Settings
from infra.storage.retention import JobMarks, Marks
from schemas.blobs import blobs_in
from schemas.codec import decode
from schemas.errors import BadInputError
from schemas.records import (
    AssemblyRequested,
    JobState,
    PieceChecked,
    PieceRequested,
    PieceStitched,
    SegmentGenerated,
    SegmentRequested,
    Stage,
    VideoAssembled,
)
from schemas.topics import DEAD_LETTERS, Event

READERS = {
    SegmentRequested.topic: ("generate",),
    PieceRequested.topic: ("stitch",),
    AssemblyRequested.topic: ("assemble",),
    SegmentGenerated.topic: ("director",),
    PieceStitched.topic: ("director", "check-pieces"),
    VideoAssembled.topic: ("director", "check-videos"),
    PieceChecked.topic: ("publish",),
}
"""Who opens the objects, or puts them into a row, that a topic names."""
_OPTIONAL = frozenset({"publish"})
"""Where nobody serves these, nothing waits for them."""
_ANSWER_S = 30.0
_SETTLED_S = 2 * clients.TRANSACTION_TIMEOUT_MS / 1000
_POLL_S = 0.1


def read_marks(settings: Settings, objects: Objects) -> Marks:
    """What the log refers to now. Raises: BusError if it cannot be read to its end; then nothing may be removed."""
    since_s = objects.clock_s()
    client = clients.admin(settings)
    starts = _unread(settings, client)
    _settle(client, starts)
    in_flight = frozenset(_in_flight(settings, objects, starts))
    catalogue = read_catalogue(settings)
    jobs = dict(_jobs(settings, client, objects))
    return Marks(
        since_s=since_s,
        in_flight=in_flight,
        jobs=jobs,
        assets=_assets(catalogue, objects, since_s - settings.sweep_grace_s) | _assets_of(jobs.values()),
        contents=frozenset(event.asset.content.digest.removeprefix("sha256:") for event in catalogue.all()),
    )


def _unread(settings: Settings, client: AdminClient) -> dict[Partition, int]:
    """Where each partition's slowest reader is. A group that has committed nothing has everything to read. Dead letters may be replayed.

    Inside an open transaction a group is where it was before.
    """
    counts = partition_counts(client, [*READERS, DEAD_LETTERS])
    starts = {(DEAD_LETTERS, partition): 0 for partition in range(counts[DEAD_LETTERS])}
    there = {group.group_id for group in client.list_consumer_groups(request_timeout=_ANSWER_S).result().valid}
    with GroupOffsets(settings) as asked:
        for topic, roles in READERS.items():
            places = [(topic, partition) for partition in range(counts[topic])]
            groups = {Member(role=role, topics=()).group: role for role in roles}
            for group in (group for group, role in groups.items() if group in there or role not in _OPTIONAL):
                read = asked.of(group, places, _ANSWER_S) if group in there else {}
                for place in places:
                    starts[place] = min(starts.get(place, sys.maxsize), read.get(place, 0))
    return starts


def _settle(client: AdminClient, places: Iterable[Partition]) -> None:
    """Wait for the transactions that are open now. Raises: BusError if one hangs."""
    deadline = time.monotonic() + _SETTLED_S
    wanted = list(places)
    written = EndsQuery(client, wanted).result().written
    while wanted:
        stable = EndsQuery(client, wanted).result().stable
        wanted = [place for place in wanted if stable[place] < written[place]]
        if wanted and time.monotonic() > deadline:
            names = ", ".join(f"{topic}/{partition}" for topic, partition in sorted(wanted))
            raise BusError(f"hanging transaction: {names} cannot be read to the end")
        time.sleep(_POLL_S if wanted else 0)


def _in_flight(settings: Settings, objects: Objects, starts: dict[Partition, int]) -> Iterator[str]:
    with Reader(clients.lone_consumer(settings, "longtake.sweep"), starts) as reader:
        for message in reader.to_end():
            event = _decoded(message.value)  # a dead letter's value is the original's
            if event is None:
                continue
            yield from _keys(objects, event)
            if isinstance(event, SegmentRequested | PieceRequested | AssemblyRequested | PieceChecked):
                yield from _answer(objects, event.request_hash)


def _answer(objects: Objects, request_hash: str) -> Iterator[str]:
    """What an answer names that is in the store, but was perhaps not yet announced."""
    try:
        kept = objects.get_manifest(request_hash)
    except ValueError:  # a request_hash that nobody would keep an answer under
        return
    event = _decoded(kept)
    if event:
        yield from _keys(objects, event)


def _decoded(value: bytes | None) -> Event | None:
    """None: its reader will not be able to read it either."""
    try:
        return decode(value or b"")
    except BadInputError:
        return None


def _jobs(settings: Settings, client: AdminClient, objects: Objects) -> Iterator[tuple[str, JobMarks]]:
    reader = RowReader(settings, "longtake.sweep", Watchdog("sweep", settings.watchdog_s))
    try:
        counts = partition_counts(client, [JobState.topic])
        for rows in reader.read(set(range(counts[JobState.topic]))).values():
            for row in rows:
                if row.stage is Stage.CANCELLED and not row.plan:
                    continue  # nothing but a cancellation came, perhaps of another cluster's job
                keys = frozenset(_keys(objects, row))
                yield row.job_id, JobMarks(stage=row.stage, changed_s=row.changed_us / 1e6, keys=keys)
    finally:
        reader.close()


def _assets(catalogue: Catalogue, objects: Objects, removed_s: float) -> frozenset[str]:
    """What a job can name, or could until so recently that its row may still be on its way."""
    named = (event for event in catalogue.all() if not event.removed_us or event.removed_us / 1e6 > removed_s)
    return frozenset(key for event in named for key in _keys(objects, event))


def _assets_of(jobs: Iterable[JobMarks]) -> frozenset[str]:
    return frozenset(key for job in jobs for key in job.keys if key.startswith(CONTENT))


def _keys(objects: Objects, record: object) -> Iterator[str]:
    for blob in blobs_in(record):
        try:
            yield objects.key_of(blob)
        except BlobError:  # outside this store: not ours to remove either
            continue
