"""The ids of the lock in a registry that other programs ask."""

import base64
import json

import pytest
from pydantic import SecretStr
from typer.testing import CliRunner

from infra.cli.main import new_app
from infra.registry import Registry, RegistryError
from infra.settings import Settings
from schemas.ids import versions
from tests.schemas.registry_server import registry_server


def test_every_schema_lands_under_its_own_id_and_version() -> None:
    with registry_server() as server, Registry(server.url) as registry:
        done = registry.take_in(versions())
        assert (done.new, done.known) == (len(versions()), 0)
        for version in versions():
            held = server.schemas[f"longtake.{version.record}"][version.version]
            assert held == (version.id, json.loads(version.path.read_text()))
        assert set(server.modes.values()) == {"READWRITE"}


def test_importing_again_changes_nothing() -> None:
    with registry_server() as server, Registry(server.url) as registry:
        registry.take_in(versions()[:5])
        done = registry.take_in(versions())
        assert (done.new, done.known) == (len(versions()) - 5, 5)


def test_an_id_that_is_taken_by_somebody_else_is_named() -> None:
    with registry_server() as server, Registry(server.url) as registry:
        server.schemas["somebody.Else"] = {1: (versions()[0].id, {"type": "string"})}
        with pytest.raises(RegistryError, match=f"id {versions()[0].id} is not permitted"):
            registry.take_in(versions())
        assert set(server.modes.values()) == {"READWRITE"}, "a failed import must not leave the subject open"


def test_a_version_under_another_id_is_named() -> None:
    first = versions()[0]
    with registry_server() as server, Registry(server.url) as registry:
        server.schemas[f"longtake.{first.record}"] = {first.version: (77, {})}
        with pytest.raises(RegistryError, match=f"has id 77 there, not {first.id}"):
            registry.take_in(versions())


def test_a_registry_that_cannot_import_is_refused_and_not_believed() -> None:
    with (
        registry_server(imports=False) as server,
        Registry(server.url) as registry,
        pytest.raises(RegistryError, match="gave longtake"),
    ):
        registry.take_in(versions())


def test_the_command_imports_and_signs_in() -> None:
    with registry_server() as server:
        arguments = ["registry", "import", server.url, "--user", "longtake"]
        settings = Settings(registry_password=SecretStr("of the registry"))
        done = CliRunner().invoke(new_app(), arguments, obj=settings)
        assert done.exit_code == 0, done.output
        assert f"{len(versions())} schemas imported, 0 were there" in done.output
        (authorization,) = server.seen_authorization
        assert authorization == "Basic " + base64.b64encode(b"longtake:of the registry").decode()
        assert "of the registry" not in done.output


def test_a_registry_that_is_away_is_an_error_of_one_line() -> None:
    with Registry("http://127.0.0.1:9") as registry, pytest.raises(RegistryError, match="no registry answers"):
        registry.take_in(versions())
