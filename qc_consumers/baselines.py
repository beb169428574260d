"""longtake.baselines.v1 -> what is usual of each population, for the QC workers. Outside every group, in a thread of its own."""

from collections.abc import Generator
from contextlib import contextmanager

from infra.bus.following import following as following_topic
from infra.settings import Settings
from schemas.records import QualityBaseline
from schemas.topics import Event


class Baselines:
    """The newest baseline of each population. May be late: a piece is then judged by the one before, or by fixed limits."""

    def __init__(self) -> None:
        self._known: dict[str, QualityBaseline] = {}

    def take(self, event: Event) -> None:
        """What an event says."""
        if isinstance(event, QualityBaseline):
            self._known[event.population] = event

    def of(self, population: str) -> QualityBaseline | None:
        """None while there is none."""
        return self._known.get(population)


@contextmanager
def following(settings: Settings) -> Generator[Baselines]:
    """Baselines that are kept up to date."""
    baselines = Baselines()
    with following_topic(settings, QualityBaseline.topic, baselines.take):
        yield baselines
