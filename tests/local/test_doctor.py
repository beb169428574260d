import struct
from pathlib import Path

import pytest
from confluent_kafka import Producer

from infra.local.check import Check
from infra.local.doctor import diagnose
from infra.local.kafka import LocalKafka
from infra.local.reach import hanging_check, kafka_checks, release_check
from infra.local.release import kafka_release, release_of
from infra.settings import Settings


def _named(checks: list[Check]) -> dict[str, Check]:
    return {check.name: check for check in checks}


def test_a_machine_that_passes_the_tests_has_what_is_needed(line_settings: Settings) -> None:
    checks = _named(diagnose(line_settings))
    assert [check for check in checks.values() if check.needed and not check.ok] == []
    assert checks["broker release"].found == "Kafka 4.2"
    assert checks["clickhouse"].found.startswith("26.7")
    assert {"java", "kafka", "libchdb", "ffmpeg", "pyav", "gpu", "torch", "attention"} <= set(checks)


def test_without_packages_and_stack_it_says_how_to_get_them(tmp_path: Path) -> None:
    checks = _named(diagnose(Settings(cache=tmp_path / "cache", state=tmp_path / "state")))
    assert not checks["kafka"].ok
    assert "infra.local.packages" in checks["libchdb"].remedy
    assert "longtake up" in checks["stack"].remedy
    assert "broker" not in checks


def test_services_that_are_away_are_reported_with_their_addresses(tmp_path: Path) -> None:
    away = Settings(kafka="127.0.0.1:1", clickhouse="http://user@127.0.0.1:1/longtake", state=tmp_path / "state")
    checks = _named(diagnose(away))
    assert not checks["broker"].ok
    assert "127.0.0.1:1" in checks["broker"].found
    assert not checks["clickhouse"].ok
    assert "127.0.0.1:1" in checks["clickhouse"].found


def test_a_transaction_that_stays_open_is_found(bus_settings: Settings) -> None:
    producer = Producer({"bootstrap.servers": bus_settings.kafka, "transactional.id": "hangs"})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("longtake.prompts.v1", b"value", partition=2)
    producer.flush()
    check = _named(kafka_checks(bus_settings))["transactions"]
    assert not check.ok
    assert "longtake.prompts.v1/2 at 0" in check.found
    producer.abort_transaction()
    assert _named(kafka_checks(bus_settings))["transactions"].ok


def test_a_transaction_that_goes_on_is_none_that_hangs() -> None:
    assert hanging_check({("topic", 0): 7}, {("topic", 0): 8}).ok


@pytest.mark.parametrize(
    ("level", "release"),
    [(21, "older than 4.0"), (22, "4.0"), (29, "4.2"), (30, "4.3"), (31, "4.4"), (33, "4.4"), (40, "4.5 or newer")],
)
def test_the_highest_metadata_version_names_the_release(level: int, release: str) -> None:
    assert release_of(b"..\x11metadata.version" + struct.pack(">hh", 7, level) + b"..") == release


def test_brokers_that_lose_transactions_are_named(kafka: LocalKafka) -> None:
    assert release_check(kafka_release(kafka.bootstrap)).ok
    for release in ("4.3", "4.4"):
        check = release_check(release)
        assert not check.ok
        assert "KAFKA-20734" in check.remedy
