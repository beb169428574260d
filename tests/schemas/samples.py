"""One full example of every record, built from its field names and types: the same on every run."""

import types
import typing
from dataclasses import fields, is_dataclass
from enum import StrEnum
from typing import Any

from schemas.topics import Event


def sample(record: type[Event]) -> Event:
    """An event whose every field is filled."""
    return _of(record, 1)


def _of(kind: Any, number: int) -> Any:
    if is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        values = {f.name: _of(hints[f.name], number + i) for i, f in enumerate(fields(typing.cast(Any, kind)))}
        return typing.cast(Any, kind)(**values)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return next(iter(kind))
    arguments = typing.get_args(kind)
    origin = typing.get_origin(kind)
    if origin is tuple:
        return (_of(arguments[0], number), _of(arguments[0], number + 1))
    if origin is dict:
        return {"a": _of(arguments[1], number)}
    if origin is types.UnionType:
        return _of(arguments[0], number)
    return {str: f"text {number} é", int: 1_000_000 * number, float: number / 8, bool: number % 2 == 0}[kind]
