"""Storyboard files, YAML or JSON -> PromptSubmitted.

    title: Harbour at dawn
    size: 640x360
    negative: [people]
    shots:
      - prompt: A fishing boat leaves the harbour at dawn
        seconds: 4
        camera: pan right
      - prompt: The boat sails into the fog
        transition: dissolve

Fields are those of PromptSubmitted and Shot; `title` stands for `text`, `size` for `width` and `height`.
"""

import re
from typing import Any, cast

import msgspec
import yaml
from yaml.composer import ComposerError

from schemas.codec import decode_prompt
from schemas.errors import BadInputError
from schemas.records import PromptSubmitted

MAX_BYTES = 1_000_000
_SIZE = re.compile(r"(\d{1,5})\s*[x×]\s*(\d{1,5})")  # noqa: RUF001 - people write the sign


class _Loader(yaml.SafeLoader):
    """Without aliases: a small file does not become a large one."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()
            raise ComposerError(None, None, "aliases are not supported", event.start_mark)
        return super().compose_node(parent, index)


def parse_storyboard(text: str, job_id: str) -> PromptSubmitted:
    """The prompt in a storyboard file. `job_id` is used if the file names none.

    Raises: BadInputError naming field and rule.
    """
    board = _mapping(text)
    if "job_id" not in board:
        board["job_id"] = job_id
    if "title" in board:
        if "text" in board:
            raise BadInputError(field="title", rule="exclusive", message="give either title or text")
        board["text"] = board.pop("title")
    if "size" in board:
        board["width"], board["height"] = _size(board)
    options = board.get("engine_options")
    if isinstance(options, dict):
        board["engine_options"] = {key: str(value) for key, value in cast(dict[str, object], options).items()}
    if not board.get("shots"):
        raise BadInputError(field="shots", rule="required", message="a storyboard has at least one shot")
    return cast(PromptSubmitted, decode_prompt(msgspec.json.encode(board)))


def _mapping(text: str) -> dict[str, Any]:
    if len(text) > MAX_BYTES:
        raise BadInputError(field="storyboard", rule="size", message=f"more than {MAX_BYTES} characters")
    try:
        if text.lstrip()[:1] == "{":
            raw: object = msgspec.json.decode(text)
        else:
            raw = yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader
    except (yaml.YAMLError, msgspec.DecodeError, RecursionError, ValueError) as error:
        message = " ".join(str(error).split()) or "nested too deep"
        raise BadInputError(field="storyboard", rule="syntax", message=message) from error
    if not isinstance(raw, dict) or not all(isinstance(key, str) for key in cast(dict[object, object], raw)):
        raise BadInputError(
            field="storyboard", rule="type", message="a storyboard is a mapping of field names to values"
        )
    return cast(dict[str, Any], raw)


def _size(board: dict[str, Any]) -> tuple[int, int]:
    if "width" in board or "height" in board:
        raise BadInputError(field="size", rule="exclusive", message="give either size or width and height")
    match = _SIZE.fullmatch(str(board.pop("size")).strip().lower())
    if not match:
        raise BadInputError(field="size", rule="format", message="a size is written 640x360")
    return int(match[1]), int(match[2])
