"""Canaries in every secret: nothing that the commands print, the processes log or the topics hold has one of them."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from pydantic import SecretStr

from gpu_consumers.engines.engine import EngineError
from gpu_consumers.failed import failed
from gpu_consumers.memory.environment import engine_environment
from infra.bus.access import protocol_of
from infra.bus.dead_letters import dead_letters
from infra.bus.reader import Reader
from infra.cli.main import main
from infra.local.ports import free_port
from infra.local.services import Services, environment, filled, write_services
from infra.logs import OneLine
from infra.redact import HIDDEN, redacted
from infra.settings import Settings
from schemas.codec import encode
from schemas.records import FailureKind
from schemas.topics import TOPICS
from tests.cli import events
from tests.cli.conftest import Longtake
from tests.gpu_consumers.requests import segment_request
from tests.security.pki import Authority

SETTINGS = {name for name in Settings.model_fields if name.endswith("_password")}
CANARIES = {name: f"canary-{name}-7f3a91" for name in SETTINGS}
OUTSIDE = {
    "AWS_SECRET_ACCESS_KEY": "canary-aws-7f3a91",
    "AWS_SESSION_TOKEN": "canary-session-7f3a91",
    "AZURE_STORAGE_ACCOUNT_KEY": "canary-azure-7f3a91",
    "GEMINI_API_KEY": "canary-gemini-7f3a91",
}


@pytest.fixture
def canaries(monkeypatch: pytest.MonkeyPatch) -> dict[str, SecretStr]:
    """In the environment where the libraries look, and for the settings."""
    for name, value in OUTSIDE.items():
        monkeypatch.setenv(name, value)
    return {name: SecretStr(value) for name, value in CANARIES.items()}


def leaks(text: str) -> set[str]:
    """Canaries in the text."""
    return {value for value in (*CANARIES.values(), *OUTSIDE.values()) if value in text}


def test_every_secret_setting_is_hidden_wherever_settings_are_shown(canaries: dict[str, SecretStr]) -> None:
    settings = Settings(kafka_user="u", **canaries)
    assert len(SETTINGS) >= 4
    for shown in (repr(settings), str(settings), settings.model_dump_json(), f"{settings.model_dump()}"):
        assert not leaks(shown)
    assert all(Settings.model_fields[name].annotation is SecretStr for name in SETTINGS)


def test_commands_on_a_line_print_no_secret(
    bus_settings: Settings, clickhouse_settings: Settings, canaries: dict[str, SecretStr], longtake: Longtake
) -> None:
    events.say(bus_settings, events.job(), events.refused("other"))
    settings = bus_settings.model_copy(update=canaries | {"clickhouse": clickhouse_settings.clickhouse})
    settings.state.mkdir(exist_ok=True)
    printed = ""
    for command in (
        ("status",),
        ("status", "--json"),
        ("jobs", "--json"),
        ("show", "film"),
        ("doctor",),
        ("doctor", "--json"),
        ("topics",),
        ("sql", "SELECT 1"),
        ("report", "film"),
        ("dead-letters", "list"),
        ("link", "film"),
    ):
        ran = longtake(settings, *command)
        printed += ran.out + ran.err
    assert not leaks(printed)
    assert "AUTHENTICATION_FAILED" in printed or "Authentication failed" in printed
    with Reader.from_beginning(bus_settings, [topic.name for topic in TOPICS]) as reader:
        assert not leaks("".join(repr(message) for message in reader.to_end()))
    assert list(dead_letters(bus_settings)) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"LONGTAKE_CLICKHOUSE": f"http://u:{CANARIES['clickhouse_password']}@127.0.0.1:1/db"},
        {"LONGTAKE_OBJECTS": f"s3://key:{OUTSIDE['AWS_SECRET_ACCESS_KEY']}@bucket/x"},
        {"LONGTAKE_OBJECTS": f"https://a.example/x?sig={OUTSIDE['AZURE_STORAGE_ACCOUNT_KEY']}"},
        {"LONGTAKE_SLOTS": CANARIES["kafka_password"]},
        {"LONGTAKE_KAFKA_CERTIFICATE": "/nowhere.pem", "LONGTAKE_KAFKA_PASSWORD": CANARIES["kafka_password"]},
    ],
)
def test_a_wrong_setting_is_named_without_its_value(
    wrong: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in wrong.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "argv", ["longtake", "status"])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert not leaks(said)
    assert len(said.splitlines()) == 1


def test_a_worker_that_cannot_get_in_logs_no_secret(canaries: dict[str, SecretStr], tmp_path: Path) -> None:
    authority = Authority(tmp_path / "pki")
    identity = authority.identity("stitch")
    settings = Settings(
        kafka=f"127.0.0.1:{free_port()}",
        kafka_ca=authority.ca,
        kafka_certificate=identity.certificate,
        kafka_key=identity.key,
        kafka_user="stitch",
        clickhouse=f"http://u@127.0.0.1:{free_port()}/longtake",
        objects="s3://films/line",
        state=tmp_path / "state",
        watchdog_s=2.0,
        **canaries,
    )
    said = ""
    for role in ("stitch", "insights"):
        program = [sys.executable, "-m", "infra.cli.worker", role]
        try:
            ran = subprocess.run(program, env=environment(settings), capture_output=True, check=False, timeout=5)
            said += (ran.stdout + ran.stderr).decode()
        except subprocess.TimeoutExpired as late:
            said += ((late.stdout or b"") + (late.stderr or b"")).decode()
    assert "stitch" in said
    assert not leaks(said)
    assert "PRIVATE KEY" not in said


def test_tracebacks_and_reasons_have_no_secrets(
    canaries: dict[str, SecretStr], caplog: pytest.LogCaptureFixture
) -> None:
    del canaries
    secret = OUTSIDE["GEMINI_API_KEY"]
    url = "https://films.s3.amazonaws.com/a?X-Amz-Expires=60&X-Amz-Signature=abcdef012345"
    try:
        raise RuntimeError(f"GET https://api.example/v1?key={secret} failed; {url}")
    except RuntimeError:
        logging.getLogger("test").exception("engine %s", secret)
    (record,) = caplog.records
    line = OneLine("%(message)s").format(record)
    assert "Traceback" in line
    assert not leaks(line)
    assert "abcdef012345" not in line
    request = segment_request()
    error = EngineError(FailureKind.ENGINE, f"401 for key {secret}", retryable=False)
    assert HIDDEN in failed(request, error, engine_version="1", worker="w").reason
    assert not leaks(encode(failed(request, error, engine_version="1", worker="w")).decode(errors="replace"))


def test_an_error_that_ends_a_thread_is_logged_without_secrets() -> None:
    program = """
import os, threading
from infra import logs
logs.set_up()
def fail(): raise RuntimeError("401 for " + os.environ["GEMINI_API_KEY"])
threading.Thread(target=fail, name="view").start()
"""
    ran = subprocess.run([sys.executable, "-c", program], env=os.environ | OUTSIDE, capture_output=True, check=True)
    said = ran.stderr.decode()
    assert "thread view was ended by an error | Traceback" in said
    assert HIDDEN in said
    assert not leaks(said)


def test_what_is_no_secret_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGTAKE_KAFKA_KEY", "/certificates/stitch.key")
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")
    for text in (
        "/certificates/stitch.key is missing",
        "false alarm",
        "key=harbour",
        "http://reader@host:8123/longtake",
    ):
        assert redacted(text) == text
    assert redacted("s3://key:word@bucket") == f"s3://key:{HIDDEN}@bucket"


@pytest.mark.parametrize("write", [str, repr, json.dumps, quote, quote_plus], ids=lambda write: write.__name__)
def test_a_secret_is_hidden_however_a_library_writes_it(
    write: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    canary = 'can"ary/é \\ +=7f3a91'
    monkeypatch.setenv("LONGTAKE_KAFKA_PASSWORD", canary)
    said = redacted(f"401 for {write(canary)} at https://u:p@ss@host/x?Signature={write(canary)}")
    assert HIDDEN in said
    assert "7f3a91" not in said
    assert "ss@" not in said


def test_a_secret_in_a_file_is_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("canary-file-7f3a91\n")
    monkeypatch.setenv("LONGTAKE_KAFKA_PASSWORD_FILE", str(file))
    assert Settings().kafka_password.get_secret_value() == "canary-file-7f3a91"
    assert redacted("it is canary-file-7f3a91") == f"it is {HIDDEN}"
    monkeypatch.setenv("LONGTAKE_KAFKA_PASSWORD_FILE", str(tmp_path / "none"))
    with pytest.raises(ValueError, match="LONGTAKE_KAFKA_PASSWORD_FILE cannot be read"):
        Settings()


def test_an_engine_process_is_not_given_what_opens_the_bus(canaries: dict[str, SecretStr]) -> None:
    given = engine_environment(environment(Settings(kafka="k:1", kafka_user="u", **canaries)), None)
    assert not {value for value in CANARIES.values() if value in given.values()}
    assert "LONGTAKE_KAFKA" not in given
    assert given["LONGTAKE_STATE"]


def test_only_its_owner_reads_the_file_with_the_stacks_passwords(tmp_path: Path) -> None:
    services = Services(
        pid=1,
        kafka="",
        clickhouse="",
        clickhouse_password=CANARIES["clickhouse_password"],
        objects="",
        processes=(),
    )
    write_services(tmp_path, services)
    assert (tmp_path / "services.json").stat().st_mode & 0o077 == 0
    assert not leaks(repr(services))


def test_the_local_broker_is_spoken_to_in_the_clear_whatever_is_set_for_another(tmp_path: Path) -> None:
    set_for_another = Settings(
        kafka_ca=tmp_path / "ca.pem", kafka_user="stitch", kafka_password=CANARIES["kafka_password"]
    )
    local = Services(pid=1, kafka="127.0.0.1:1", clickhouse="", clickhouse_password="", objects="", processes=())
    assert protocol_of(set_for_another.model_copy(update={"kafka": "kafka.example:9093"})) == "SASL_SSL"
    assert protocol_of(filled(set_for_another, local)) == "PLAINTEXT"
