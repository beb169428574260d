"""`python -m schemas.describe` writes docs/events.md from the topics and the records' own docstrings."""

import ast
import inspect
from collections.abc import Iterator
from dataclasses import is_dataclass
from enum import StrEnum
from pathlib import Path

from schemas import records
from schemas.ids import versions
from schemas.topics import TOPICS, Event, Topic

PAGE = Path(__file__).parent.parent / "docs" / "events.md"
_INTRO = """# Events

Written from `schemas/` by `python -m schemas.describe`; do not edit.

Every record's key is its `job_id` (UTF-8), partitioned by murmur2. Values are Avro in Confluent wire format (`0x00`, big-endian
schema id, body); the ids are in `schemas/ids.lock`, the schemas in `schemas/avro/`, subjects are `longtake.<Record>`.
`longtake.prompts.v1` also takes a `PromptSubmitted` as one JSON object. Read with `isolation.level=read_committed`.

| header | value |
|---|---|
| `traceparent` | W3C trace context; the trace id is the job's, from prompt to frame |
| `ce_id` | names the event: equal if it is ever sent again |
| `ce_type` | `longtake.<Record>` |
| `ce_source` | `longtake/<role>` |
| `ce_specversion`, `ce_time` | CloudEvents 1.0; UTC, microseconds |
| `content-type` | `application/vnd.confluent.avro` |

`longtake.dead-letters.v1` carries the refused record's own key, value and headers, unchanged, with `dlq.*` headers beside
them: `dlq.topic`, `dlq.partition`, `dlq.offset`, `dlq.group`, `dlq.field`, `dlq.rule`, `dlq.message`, `dlq.time_us`.
"""


def page() -> str:
    """The whole of docs/events.md."""
    tree = ast.parse(inspect.getsource(records))
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    parts = [_INTRO, *(part for topic in TOPICS for part in _topic(topic, classes)), "\n## Values inside records\n"]
    events = {event.__name__ for topic in TOPICS for event in topic.events}
    for name, node in classes.items():
        if name not in events and is_dataclass(getattr(records, name)):
            parts += [f"\n### {name}\n\n{_doc(node)}\n\n", *_fields(node)]
    parts.append("\n## Words\n")
    for name, node in classes.items():
        if issubclass(getattr(records, name), StrEnum):
            words = ", ".join(f"`{word}`" for word in getattr(records, name))
            parts.append(f"\n**{name}**: {words}. {_doc(node)}\n")
    return "".join(parts)


def _topic(topic: Topic, classes: dict[str, ast.ClassDef]) -> Iterator[str]:
    kept = "compacted: the last record of each key" if topic.compacted else "kept by time"
    yield f"\n## `{topic.name}`\n\n{kept}\n"
    for event in topic.events:
        yield f"\n### {event.__name__}\n\n{_doc(classes[event.__name__])} Schema ids: {_ids(event)}.\n\n"
        yield from _fields(classes[event.__name__])


def _ids(event: type[Event]) -> str:
    return ", ".join(f"{v.id} (v{v.version})" for v in versions() if v.record == event.__name__)


def _fields(node: ast.ClassDef) -> Iterator[str]:
    yield "| field | type | |\n|---|---|---|\n"
    for statement, following in zip(node.body, [*node.body[1:], None], strict=True):
        if not isinstance(statement, ast.AnnAssign) or ast.unparse(statement.annotation).startswith("ClassVar"):
            continue
        kind = ast.unparse(statement.annotation).replace("|", "\\|")
        default = f" = {ast.unparse(statement.value)}" if statement.value else ""
        note = ""
        if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
            note = " ".join(str(following.value.value).split()).replace("|", "\\|")
        yield f"| `{ast.unparse(statement.target)}` | `{kind}{default}` | {note} |\n"


def _doc(node: ast.ClassDef) -> str:
    return " ".join((ast.get_docstring(node) or "").split())


def main() -> None:
    """Write the page."""
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
