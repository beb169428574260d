"""longtake.assets.v1 -> the catalogue, for those who must know it. Outside every group."""

import threading
from contextlib import AbstractContextManager

from infra.assets.catalogue import Catalogue
from infra.bus.following import all_events, following
from infra.settings import Settings
from schemas.records import AssetChanged


def read_catalogue(settings: Settings) -> Catalogue:
    """As it is now. Raises: BusError."""
    catalogue = Catalogue()
    for event in all_events(settings, AssetChanged.topic):
        catalogue.take(event)
    return catalogue


def following_catalogue(settings: Settings, catalogue: Catalogue) -> AbstractContextManager[threading.Event]:
    """Keep the catalogue up to date, from a thread of its own; wait for the event before it is needed first."""
    return following(settings, AssetChanged.topic, catalogue.take)
