"""docs/asyncapi.yaml says what the topics carry, and its examples are bytes of the topics."""

import base64
from typing import Any

import msgspec
import pytest
import yaml

from schemas import asyncapi
from schemas.codec import decode, to_json
from schemas.records import JobState
from schemas.topics import EVENTS, TOPICS, Event

PUBLIC = [event for event in EVENTS if event is not JobState]


def test_the_document_is_written_from_the_schemas() -> None:
    assert asyncapi.DOCUMENT.read_text() == asyncapi.page(), "run: python -m schemas.asyncapi"


@pytest.mark.parametrize("record", PUBLIC, ids=lambda r: r.__name__)
def test_an_example_decodes_to_what_it_shows(record: type[Event]) -> None:
    message = yaml.safe_load(asyncapi.DOCUMENT.read_text())["components"]["messages"][record.__name__]
    event = decode(base64.b64decode(message["x-example"]["value_base64"]))
    assert type(event) is record
    (example,) = message["examples"]
    assert {"type": record.__name__, **example["payload"]} == msgspec.json.decode(to_json(event))
    assert example["headers"]["ce_type"] == message["name"]


def test_every_reference_leads_somewhere() -> None:
    document = yaml.safe_load(asyncapi.DOCUMENT.read_text())

    def references(part: Any) -> list[str]:
        if isinstance(part, dict):
            own = [part["$ref"]] if "$ref" in part else []
            return own + [found for inner in part.values() for found in references(inner)]
        return [found for inner in part for found in references(inner)] if isinstance(part, list) else []

    found = references(document)
    assert len(found) > 2 * len(PUBLIC)
    for reference in found:
        target = document
        for name in reference.removeprefix("#/").split("/"):
            target = target[name]


def test_every_topic_of_the_interface_is_a_channel() -> None:
    channels = yaml.safe_load(asyncapi.DOCUMENT.read_text())["channels"]
    assert {c["address"] for c in channels.values()} == {t.name for t in TOPICS} - {JobState.topic}
