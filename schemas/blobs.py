"""Which objects a record points at, wherever in it they are named."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import cast

from schemas.records import Blob


def blobs_in(value: object) -> Iterator[Blob]:
    """Every pointer in a record, at any depth."""
    if isinstance(value, Blob):
        yield value
    elif isinstance(value, tuple):
        for item in cast("tuple[object, ...]", value):
            yield from blobs_in(item)
    elif is_dataclass(value):
        for field in fields(value):
            yield from blobs_in(getattr(value, field.name))
