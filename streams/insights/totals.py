"""Sums over all jobs, per engine version and per minute, held in memory and derived from the rows of the table.

Nothing is counted up on an event: a job's share is taken out and put in again as a whole, so a repeated event adds nothing.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from schemas.records import EngineBaseline, LineThroughput, Stage
from schemas.topics import Event
from streams.insights.facts import JobFacts

MINUTE_US = 60_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineKey:
    """One version of one engine."""

    engine: str
    engine_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MinuteKey:
    """A minute by its first microsecond, UTC."""

    minute_us: int


Key = EngineKey | MinuteKey
Share = dict[Key, Counter[str]]


@dataclass(slots=True)
class Totals:
    """The sums of all rows. `replace` is the only change."""

    sums: Share = field(default_factory=dict[Key, Counter[str]])
    updated_us: dict[Key, int] = field(default_factory=dict[Key, int])

    def replace(self, old: JobFacts | None, new: JobFacts) -> list[Event]:
        """Put `new` in the place of `old` and return what changed, as events with the new sums."""
        before, after = (share(old) if old else {}), share(new)
        changed = [key for key in {**before, **after} if before.get(key) != after.get(key)]
        for key in changed:
            total = self.sums.setdefault(key, Counter())
            total.subtract(before.get(key, Counter()))
            total.update(after.get(key, Counter()))
            self.updated_us[key] = max(self.updated_us.get(key, 0), new.updated_us)
        return [_event(key, self.sums[key], self.updated_us[key]) for key in changed]


def totals_of(rows: Iterable[JobFacts]) -> Totals:
    """The sums of a whole table."""
    totals = Totals()
    for row in rows:
        totals.replace(None, row)
    return totals


def share(facts: JobFacts) -> Share:
    """What one job adds to the sums."""
    sums: Share = {}
    for t in facts.tries:
        engine = EngineKey(engine=t.engine, engine_version=t.engine_version)
        amounts = Counter(segments=int(t.succeeded), failures=int(not t.succeeded), frames=t.frames, busy_us=t.busy_us)
        sums.setdefault(engine, Counter()).update(amounts)
        if t.succeeded:
            sums.setdefault(_minute(t.finished_us), Counter()).update(frames=t.frames, segments=1)
    if facts.stage is Stage.FINISHED:
        sums.setdefault(_minute(facts.changed_us), Counter()).update(videos=1)
    return sums


def _minute(time_us: int) -> MinuteKey:
    return MinuteKey(minute_us=time_us // MINUTE_US * MINUTE_US)


def _event(key: Key, total: Counter[str], updated_us: int) -> Event:
    match key:
        case EngineKey():
            tries = total["segments"] + total["failures"]
            return EngineBaseline(
                engine=key.engine,
                engine_version=key.engine_version,
                segments=total["segments"],
                failures=total["failures"],
                failure_rate=total["failures"] / tries if tries else 0.0,
                frames=total["frames"],
                busy_us=total["busy_us"],
                fps=total["frames"] * 1e6 / total["busy_us"] if total["busy_us"] else 0.0,
                updated_us=updated_us,
            )
        case MinuteKey():
            return LineThroughput(
                minute_us=key.minute_us,
                frames=total["frames"],
                segments=total["segments"],
                videos=total["videos"],
                updated_us=updated_us,
            )
