"""The compose file is one, and holds the line."""

import re
from pathlib import Path
from typing import Any

import yaml

from infra.cli.worker import Role
from infra.settings import Settings
from tests.deploy.tools import DEPLOY, run_tool

FILE = DEPLOY / "compose.yaml"
VARIABLE = re.compile(r"\$\{(\w+)(?::\?[^}]*)?\}")


def services() -> dict[str, Any]:
    return yaml.safe_load(FILE.read_text())["services"]


def test_compose_takes_the_file(tmp_path: Path) -> None:
    example = dict(line.split("=") for line in (DEPLOY / "compose" / "example.env").read_text().splitlines())
    filled = VARIABLE.sub(lambda match: example[match[1]], FILE.read_text())
    (tmp_path / "compose.yaml").write_text(filled)
    done = run_tool("compose-check", tmp_path / "compose.yaml")
    assert done.returncode == 0, done.stderr
    assert set(yaml.safe_load(done.stdout)["services"]) == set(services())


def test_every_role_is_a_service_with_addresses_and_metrics() -> None:
    for role in Role:
        service = services()[role.value]
        assert service["command"] == ["worker", role.value]
        assert {name for name in service["environment"] if name.startswith("LONGTAKE_")} <= {
            f"LONGTAKE_{name.upper()}" for name in Settings.model_fields
        }
        assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])


def test_the_console_and_the_door_are_there_for_whoever_has_a_password() -> None:
    for name, port in (("console", 8300), ("door", 8301)):
        service = services()[name]
        assert service["command"] == [name]
        assert service["ports"] == [f"127.0.0.1:{port}:8300"]
        assert service["environment"]["LONGTAKE_DOOR_HOST"] == "0.0.0.0"  # noqa: S104 (inside a container)
        assert "/readyz" in service["healthcheck"]["test"][-1]
        assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])


def test_ports_are_published_on_loopback_only_and_no_password_is_in_the_file() -> None:
    published = [port for service in services().values() for port in service.get("ports", [])]
    assert published
    assert all(port.startswith("127.0.0.1:") for port in published)
    secrets = re.findall(r"(?:PASSWORD|SECRET\w*|_KEY)\w*: *(\S+)", FILE.read_text())
    assert len(secrets) >= 6
    assert all(secret.strip('"').startswith("${") for secret in secrets)


def test_prometheus_scrapes_every_role() -> None:
    (job,) = yaml.safe_load((DEPLOY / "compose" / "prometheus.yaml").read_text())["scrape_configs"]
    targets = job["static_configs"][0]["targets"]
    assert {target.partition(":")[0] for target in targets} >= {role.value for role in Role} | {"console", "door"}
