"""Kafka ACLs of every role: `infra/deploy/acls/ROLE.yaml`, and how they get to the broker.

    topics:            read, write, create, delete, alter, describe -> names; with `*` at the end, every name that begins so
    groups:            consumer groups to join; `{user}` is the user's name
    groups_seen:       consumer groups to look at
    transactional_ids: to write in transactions with
    cluster:           operations on the cluster itself

What is not allowed is refused: the broker runs `StandardAuthorizer` with `allow.everyone.if.no.acl.found=false`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, cast

import msgspec
import yaml
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,  # pyright: ignore[reportPrivateImportUsage] (public, but not in its __all__)
    AclBindingFilter,  # pyright: ignore[reportPrivateImportUsage]
    AclOperation,  # pyright: ignore[reportPrivateImportUsage]
    AclPermissionType,  # pyright: ignore[reportPrivateImportUsage]
    AdminClient,
    ResourcePatternType,  # pyright: ignore[reportPrivateImportUsage]
    ResourceType,  # pyright: ignore[reportPrivateImportUsage]
)

from infra.bus.errors import BusError

FOLDER = Path(__file__).parent / "deploy" / "acls"
_ANSWER_S = 10.0
_OPERATIONS = {
    "read": AclOperation.READ,
    "write": AclOperation.WRITE,
    "create": AclOperation.CREATE,
    "delete": AclOperation.DELETE,
    "alter": AclOperation.ALTER,
    "describe": AclOperation.DESCRIBE,
}
"""Read, write, delete and alter imply describe."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleAcls:
    """A role's file."""

    topics: dict[str, list[str]] = field(default_factory=dict)
    groups: list[str] = field(default_factory=list)
    groups_seen: list[str] = field(default_factory=list)
    transactional_ids: list[str] = field(default_factory=list)
    cluster: list[str] = field(default_factory=list)


def roles() -> tuple[str, ...]:
    """Every role that has a file."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.yaml")))


def read_role(role: str) -> RoleAcls:
    """Raises: ValueError if there is no such role; msgspec.ValidationError if its file says what it cannot mean."""
    if role not in roles():
        raise ValueError(f"no role {role!r}: there are {', '.join(roles())}")
    content: object = yaml.safe_load((FOLDER / f"{role}.yaml").read_text(encoding="utf-8"))
    return msgspec.convert(content, RoleAcls)


def bindings(role: str, user: str) -> list[AclBinding]:
    """What the broker is told, for the principal `User:USER`."""
    said = read_role(role)
    wanted = [
        *((ResourceType.TOPIC, name, _OPERATIONS[op]) for op, names in said.topics.items() for name in names),
        *((ResourceType.GROUP, name.replace("{user}", user), AclOperation.READ) for name in said.groups),
        *((ResourceType.GROUP, name, AclOperation.DESCRIBE) for name in said.groups_seen),
        *((ResourceType.TRANSACTIONAL_ID, name, AclOperation.WRITE) for name in said.transactional_ids),
        *((ResourceType.BROKER, "kafka-cluster", _OPERATIONS[op]) for op in said.cluster),
    ]
    return [_binding(kind, name, user, operation) for kind, name, operation in wanted]


def apply(client: AdminClient, wanted: Iterable[AclBinding]) -> None:
    """Create what is not there yet; creating one again changes nothing. Raises: BusError if the broker refuses."""
    for binding, made in client.create_acls(list(wanted), request_timeout=_ANSWER_S).items():
        try:
            made.result()
        except KafkaException as error:
            raise BusError(f"the ACL '{line(binding)}' cannot be made: {error.args[0].name()}") from error


def beyond(client: AdminClient, user: str, wanted: Iterable[AclBinding]) -> list[AclBinding]:
    """What the broker allows the user and none of the files does. Raises: BusError."""
    anything: Any = None
    principal = f"User:{user}"
    ours = AclBindingFilter(
        ResourceType.ANY,
        anything,
        ResourcePatternType.ANY,
        principal,
        anything,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    try:
        found: list[AclBinding] = client.describe_acls(ours, request_timeout=_ANSWER_S).result()
    except KafkaException as error:
        raise BusError(f"ACLs cannot be listed: {error.args[0].name()}") from error
    known = set(map(line, wanted))
    return [binding for binding in found if line(binding) not in known]


def line(binding: AclBinding) -> str:
    """For a person: `allow User:stitch write topic longtake.pieces.v1`."""
    name = binding.name + ("*" if binding.resource_pattern_type is ResourcePatternType.PREFIXED else "")
    kind = "cluster" if binding.restype is ResourceType.BROKER else _word(binding.restype)
    return f"{_word(binding.permission_type)} {binding.principal} {_word(binding.operation)} {kind} {name}"


def _word(value: object) -> str:
    return cast("Enum", value).name.lower()


def _binding(kind: ResourceType, name: str, user: str, operation: AclOperation) -> AclBinding:
    prefix = name.endswith("*")
    pattern = ResourcePatternType.PREFIXED if prefix else ResourcePatternType.LITERAL
    return AclBinding(kind, name.removesuffix("*"), pattern, f"User:{user}", "*", operation, AclPermissionType.ALLOW)
