"""`python -m schemas.asyncapi` writes docs/asyncapi.yaml (AsyncAPI 3.0) from the topics, the Avro schemas and examples.json.

The examples are events of one real job. The director's own table is not part of the interface and not in the document.
"""

import base64
import json
from pathlib import Path
from typing import Any

import msgspec
import yaml

from schemas.codec import encode
from schemas.ids import HERE, versions
from schemas.records import CancelRequested, JobState, PromptRefused, PromptSubmitted
from schemas.topics import TOPICS, Event, Topic

DOCUMENT = Path(__file__).parent.parent / "docs" / "asyncapi.yaml"
_EXAMPLES = HERE / "examples.json"
_TAKEN_IN = {PromptSubmitted.topic, CancelRequested.topic}
_PUBLIC = tuple(topic for topic in TOPICS if topic.name != JobState.topic)
_AVRO = "application/vnd.apache.avro;version=1.9.0"
_HEADERS: dict[str, str] = {
    "traceparent": "W3C trace context; the trace id is the job's, from prompt to frame.",
    "ce_id": "Names the event: equal if it is ever sent again.",
    "ce_type": "`longtake.<Record>`.",
    "ce_source": "`longtake/<role>`.",
    "ce_specversion": "CloudEvents version, `1.0`.",
    "ce_time": "When it was sent: RFC 3339, UTC, microseconds.",
    "content-type": "`application/vnd.confluent.avro`.",
}
_DLQ = {
    f"dlq.{name}": text
    for name, text in {
        "topic": "Where the record was.",
        "partition": "Where the record was.",
        "offset": "Where the record was.",
        "group": "Who could not process it.",
        "field": "What of it is wrong.",
        "rule": "Which rule it breaks.",
        "message": "The reason for a person.",
        "time_us": "When it was put aside: microseconds since the epoch.",
    }.items()
}


def document() -> dict[str, Any]:
    """The whole document, with references as AsyncAPI wants them."""
    events = [event for topic in _PUBLIC for event in topic.events]
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Longtake",
            "version": "1.0.0",
            "description": "Prompt events in, finished and measured videos out. Written from `schemas/` by "
            "`python -m schemas.asyncapi`; do not edit. Read with `isolation.level=read_committed`.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/vnd.confluent.avro",
        "servers": {"line": {"host": "{bootstrap}", "protocol": "kafka", "variables": {"bootstrap": _BOOTSTRAP}}},
        "channels": {_short(topic): _channel(topic) for topic in _PUBLIC},
        "operations": {_verb(topic) + _camel(_short(topic)): _operation(topic) for topic in _PUBLIC},
        "components": {
            "messages": {event.__name__: _message(event) for event in events} | {"DeadLetter": _dead_letter()},
            "messageTraits": {"event": {"headers": _strings(_HEADERS)}},
            "schemas": {event.__name__: _schema(event) for event in events},
        },
    }


def page() -> str:
    """The document as YAML."""
    return yaml.safe_dump(document(), sort_keys=False, allow_unicode=True, width=120)


def examples() -> dict[str, Any]:
    """`key`, `headers` and `payload` (the record as JSON) by record."""
    return msgspec.json.decode(_EXAMPLES.read_bytes())


_BOOTSTRAP = {"default": "localhost:9092", "description": "Bootstrap servers."}


def _channel(topic: Topic) -> dict[str, Any]:
    names = [event.__name__ for event in topic.events] or ["DeadLetter"]
    policy = "compact" if topic.compacted else "delete"
    return {
        "address": topic.name,
        "description": "Keyed by job_id, partitioned by murmur2." if topic.events else "Records put aside, unchanged.",
        "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in names},
        "bindings": {"kafka": {"topicConfiguration": {"cleanup.policy": [policy]}, "bindingVersion": "0.5.0"}},
    }


def _operation(topic: Topic) -> dict[str, Any]:
    what = " and ".join(event.__name__ for event in topic.events) or "records that can never be processed"
    taken = topic.name in _TAKEN_IN
    return {
        "action": "receive" if taken else "send",
        "channel": {"$ref": f"#/channels/{_short(topic)}"},
        "summary": f"The line takes {what}." if taken else f"The line announces {what}.",
    }


def _message(event: type[Event]) -> dict[str, Any]:
    example = examples()[event.__name__]
    given = msgspec.convert(example["payload"], event)
    return {
        "name": f"longtake.{event.__name__}",
        "title": event.__name__,
        "summary": " ".join((event.__doc__ or "").split("\n\n")[0].split()),
        "traits": [{"$ref": "#/components/messageTraits/event"}],
        "payload": {"$ref": f"#/components/schemas/{event.__name__}"},
        "bindings": {
            "kafka": {
                "key": {"type": "string"},
                "schemaIdLocation": "payload",
                "schemaIdPayloadEncoding": "confluent",
                "bindingVersion": "0.5.0",
            }
        },
        "examples": [{"headers": example["headers"], "payload": msgspec.to_builtins(given)}],
        "x-example": {"key": example["key"], "value_base64": base64.b64encode(encode(given)).decode()},
    }


def _dead_letter() -> dict[str, Any]:
    refused = examples()[PromptRefused.__name__]["payload"]
    return {
        "name": "longtake.DeadLetter",
        "title": "DeadLetter",
        "summary": "A record's own key, value and headers, unchanged, with the reason in headers beside them.",
        "contentType": "application/octet-stream",
        "headers": _strings(_DLQ),
        "examples": [{"headers": {f"dlq.{name}": refused[name] for name in ("field", "rule", "message")}}],
    }


def _schema(event: type[Event]) -> dict[str, Any]:
    newest = [version for version in versions() if version.record == event.__name__][-1]
    return {"schemaFormat": _AVRO, "schema": json.loads(newest.path.read_text())}


def _strings(described: dict[str, str]) -> dict[str, Any]:
    return {"type": "object", "properties": {k: {"type": "string", "description": v} for k, v in described.items()}}


def _short(topic: Topic) -> str:
    return topic.name.removeprefix("longtake.").removesuffix(".v1")


def _verb(topic: Topic) -> str:
    return "receive" if topic.name in _TAKEN_IN else "send"


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.replace("-", ".").split("."))


def main() -> None:
    """Write the document."""
    DOCUMENT.write_text(page())


if __name__ == "__main__":
    main()
