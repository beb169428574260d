"""`longtake doctor`: what is missing on this machine or wrong with the services, and how to get it."""

from infra.local.check import Check
from infra.local.machine import machine_checks
from infra.local.reach import clickhouse_check, kafka_checks, stack_check
from infra.local.services import filled, read_services
from infra.settings import Settings


def diagnose(settings: Settings) -> list[Check]:
    """All checks, the machine's first. An empty address is that of the running stack; without one it is not checked.

    Takes one to ten seconds.
    """
    services = read_services(settings.state)
    found = filled(settings, services) if services else settings
    checks = machine_checks(settings)
    if services or not (settings.kafka and settings.clickhouse):
        checks.append(stack_check(settings, services))
    if found.kafka:
        checks += kafka_checks(found)
    if found.clickhouse:
        checks.append(clickhouse_check(found))
    return checks
