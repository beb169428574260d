"""Machines that cache assets, and the events of jobs in the order of simulated time: `Ahead` and `AssetCache` as they are, no broker."""

import hashlib
import heapq
import itertools
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from confluent_kafka import murmur2

from infra.assets.ahead import Ahead
from infra.assets.cache import AssetCache
from infra.assets.catalogue import CONTENT
from infra.objects import Objects
from infra.settings import Settings
from schemas.records import AssemblyRequested, AssetRef, Blob, JobChanged, Stage, VideoFormat

_MACHINES, _PARTITIONS, _AT_ONCE = 4, 16, 4
_SCALE = 256
_STORE_BYTES_S, _STORE_DELAY_S = 10e6, 0.05
_AWAY_EVERY_S, _AWAY_S = 300.0, 60.0
_STEPS = 8
"""Times a job says how far it is."""
_FPS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Film:
    """A job."""

    job_id: str
    arrives_s: float
    length_s: float
    assets: tuple[tuple[str, int], ...]
    """Names and bytes."""


@dataclass(slots=True, kw_only=True)
class Counts:
    """Assets that were asked for, and bytes (scaled) that came from the store."""

    asked: int = 0
    hits: int = 0
    """There when it was asked for."""
    store_bytes: int = 0
    wait_s: float = 0.0
    """Of all jobs together, one file after the other."""
    lru_hits: int = 0
    lru_bytes: int = 0
    lru_wait_s: float = 0.0


class _Store(Objects):
    """Notes what is fetched from it."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.fetched: list[Blob] = []
        self._refs: dict[str, AssetRef] = {}

    def chunks(self, blob: Blob) -> Iterator[bytes]:
        self.fetched.append(blob)
        return super().chunks(blob)

    def ref(self, name: str, size_bytes: int) -> AssetRef:
        """An asset of that size, scaled, put when it is named first."""
        if name not in self._refs:
            data = hashlib.shake_128(name.encode()).digest(max(1, size_bytes // _SCALE))
            blob = self.put_bytes(f"{CONTENT}{hashlib.sha256(data).hexdigest()}/0", data, "audio/wav")
            blob = replace(blob, digest=f"sha256:{hashlib.sha256(data).hexdigest()}")
            self._refs[name] = AssetRef(name=name, version="1", region="", content=blob)
        return self._refs[name]


class _Lru:
    """Plain: what was asked for last stays."""

    def __init__(self, budget_bytes: int) -> None:
        self._left_bytes = budget_bytes
        self._sizes: OrderedDict[str, int] = OrderedDict()

    def hit(self, ref: AssetRef) -> bool:
        digest, size_bytes = ref.content.digest, ref.content.size_bytes
        if digest in self._sizes:
            self._sizes.move_to_end(digest)
            return True
        self._sizes[digest] = size_bytes
        self._left_bytes -= size_bytes
        while self._left_bytes < 0:
            self._left_bytes += self._sizes.popitem(last=False)[1]
        return False


@dataclass(slots=True, kw_only=True)
class _Machine:
    store: _Store
    cache: AssetCache
    ahead: Ahead
    lru: _Lru
    free_s: float = 0.0
    """When its line to the store is free again."""
    there_s: dict[str, float] = field(default_factory=dict)
    """When what was fetched ahead has come, by digest."""
    running: int = 0
    waiting: list[Film] = field(default_factory=list)
    behind: bool = False
    """More is to be fetched when the line is free."""

    def fetch(self, now_s: float) -> None:
        """What is begun by then, one after the other."""
        while self.free_s <= now_s:
            self.behind = self.ahead.fetch_next()
            if not self.behind:
                return
            blob = self.store.fetched[-1]
            self.free_s += _fetch_s(blob)
            self.there_s[blob.digest] = self.free_s


class Line:
    """Owns a store, the machines and their caches, all empty."""

    def __init__(self, folder: Path, budget_bytes: int, nodes: Mapping[str, str]) -> None:
        """`nodes` as in the settings: who keeps what; empty: each keeps what it uses."""
        self._job = folder / "job"
        self._job.mkdir(parents=True)
        self._machines = [self._machine(folder, n, budget_bytes // _SCALE, nodes) for n in range(_MACHINES)]
        self._counts = Counts()
        self._queue: list[tuple[float, int, Callable[[float], None]]] = []
        self._number = itertools.count()
        self._away: int | None = None

    def run(self, films: Iterable[Film]) -> Counts:
        """All jobs, from the first to the last."""
        for film in films:
            self._at(film.arrives_s, lambda now_s, film=film: self._arrives(film, now_s))
            last_s = film.arrives_s
        for turn in range(int(last_s / _AWAY_EVERY_S)):
            self._at((turn + 1) * _AWAY_EVERY_S, lambda now_s, turn=turn: self._leaves(turn % _MACHINES, now_s))
        self._share(0.0)
        while self._queue:
            now_s, _, happens = heapq.heappop(self._queue)
            for machine in self._machines:
                if machine.behind:
                    machine.fetch(now_s)
            happens(now_s)
        self._counts.store_bytes = sum(blob.size_bytes for m in self._machines for blob in m.store.fetched)
        return self._counts

    def _arrives(self, film: Film, now_s: float) -> None:
        machine = self._machines[_home(film)]
        self._say(film, Stage.QUEUED, 0, now_s)
        if machine.running < _AT_ONCE:
            self._starts(film, now_s)
        else:
            machine.waiting.append(film)

    def _starts(self, film: Film, now_s: float) -> None:
        self._machines[_home(film)].running += 1
        for step in range(_STEPS):
            at_s = now_s + film.length_s * step / _STEPS
            self._at(at_s, lambda now_s, step=step: self._say(film, Stage.GENERATING, step, now_s))
        self._at(now_s + film.length_s, lambda now_s: self._is_assembled(film, now_s))

    def _is_assembled(self, film: Film, now_s: float) -> None:
        self._say(film, Stage.ASSEMBLING, _STEPS, now_s)
        machine = self._machines[self._holder(_home(film))]
        for name, size_bytes in film.assets:
            self._ask(machine, self._machines[0].store.ref(name, size_bytes), now_s)
        self._say(film, Stage.FINISHED, _STEPS, now_s)
        home = self._machines[_home(film)]
        home.running -= 1
        if home.waiting:
            self._starts(home.waiting.pop(0), now_s)

    def _ask(self, machine: _Machine, ref: AssetRef, now_s: float) -> None:
        before = len(machine.store.fetched)
        machine.cache.path_of(ref, self._job).unlink()
        comes_s = machine.there_s.pop(ref.content.digest, now_s)
        if len(machine.store.fetched) > before:
            comes_s = now_s + _fetch_s(ref.content)
        self._counts.asked += 1
        self._counts.hits += comes_s <= now_s
        self._counts.wait_s += max(0.0, comes_s - now_s)
        if machine.lru.hit(ref):
            self._counts.lru_hits += 1
        else:
            self._counts.lru_bytes += ref.content.size_bytes
            self._counts.lru_wait_s += _fetch_s(ref.content)

    def _say(self, film: Film, stage: Stage, checked: int, now_s: float) -> None:
        store = self._machines[0].store
        event = JobChanged(
            job_id=film.job_id,
            tenant="",
            content_hash="",
            stage=stage,
            reason="",
            title="",
            engine="",
            format=VideoFormat(width=640, height=360, fps_num=_FPS, fps_den=1),
            frames=round(film.length_s * _FPS),
            segments=_STEPS,
            segments_generated=checked,
            pieces_stitched=checked,
            pieces_checked=checked,
            attempts=0,
            lint=(),
            video=None,
            submitted_us=round(film.arrives_s * 1e6),
            changed_us=round(now_s * 1e6),
            assets=tuple(store.ref(name, size_bytes) for name, size_bytes in film.assets),
        )
        for machine in self._machines:
            machine.ahead.take(event)
        self._wake(self._machines[self._holder(_home(film))], now_s)

    def _leaves(self, machine: int, now_s: float) -> None:
        """For a while: its partitions are the next one's. Its files stay."""
        self._away = machine
        self._share(now_s)
        self._at(now_s + _AWAY_S, self._comes_back)

    def _comes_back(self, now_s: float) -> None:
        self._away = None
        self._share(now_s)

    def _share(self, now_s: float) -> None:
        for number, machine in enumerate(self._machines):
            places = (p for p in range(_PARTITIONS) if self._holder(p % _MACHINES) == number)
            machine.ahead.hold(frozenset((AssemblyRequested.topic, p) for p in places))
            self._wake(machine, now_s)

    def _holder(self, home: int) -> int:
        return (home + 1) % _MACHINES if home == self._away else home

    def _wake(self, machine: _Machine, now_s: float) -> None:
        machine.free_s = max(machine.free_s, now_s)
        machine.fetch(now_s)

    def _at(self, at_s: float, happens: Callable[[float], None]) -> None:
        heapq.heappush(self._queue, (at_s, next(self._number), happens))

    @staticmethod
    def _machine(folder: Path, number: int, budget_bytes: int, nodes: Mapping[str, str]) -> _Machine:
        settings = Settings(
            objects=(folder / "objects").as_uri(),
            state=folder / f"m{number}",
            asset_cache_bytes=budget_bytes,
            asset_node=f"m{number}",
            asset_nodes=dict(nodes),
            min_free_bytes=0,
        )
        store = _Store(settings.objects)
        cache = AssetCache(settings, store)
        return _Machine(store=store, cache=cache, ahead=Ahead(cache, _PARTITIONS), lru=_Lru(budget_bytes))


def _fetch_s(blob: Blob) -> float:
    return _STORE_DELAY_S + blob.size_bytes * _SCALE / _STORE_BYTES_S


def _home(film: Film) -> int:
    """The machine of its partition, when none is away."""
    return murmur2(film.job_id.encode(), _PARTITIONS) % _MACHINES
