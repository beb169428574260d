"""How a client shows the broker who it is, and sees that it is the broker: TLS, certificates, SASL/SCRAM. For librdkafka, Faust and sockets."""

import ssl
from collections.abc import Mapping
from typing import Any

from infra.settings import Settings

MECHANISM = "SCRAM-SHA-512"
PLAIN: Mapping[str, object] = {"kafka_ca": None, "kafka_certificate": None, "kafka_key": None, "kafka_user": ""}
"""Settings for the broker of the local stack, whatever is set for another one."""


def protocol_of(settings: Settings) -> str:
    """`PLAINTEXT`, `SSL` or `SASL_SSL`: a password never travels outside TLS."""
    if settings.kafka_user:
        return "SASL_SSL"
    return "SSL" if settings.kafka_ca or settings.kafka_certificate else "PLAINTEXT"


def client_access(settings: Settings) -> dict[str, Any]:
    """Settings of librdkafka. Broker names are checked against their certificates."""
    access: dict[str, Any] = {"security.protocol": protocol_of(settings)}
    if settings.kafka_ca:
        access["ssl.ca.location"] = str(settings.kafka_ca)
    if settings.kafka_certificate:
        access["ssl.certificate.location"] = str(settings.kafka_certificate)
        access["ssl.key.location"] = str(settings.kafka_key)
    if settings.kafka_user:
        access["sasl.mechanism"] = MECHANISM
        access["sasl.username"] = settings.kafka_user
        access["sasl.password"] = settings.kafka_password.get_secret_value()
    return access


def tls_context(settings: Settings) -> ssl.SSLContext | None:
    """The same for Python's sockets; None: no TLS. Raises: OSError if a file cannot be read or is no certificate."""
    if protocol_of(settings) == "PLAINTEXT":
        return None
    context = ssl.create_default_context(cafile=settings.kafka_ca)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if settings.kafka_certificate:
        context.load_cert_chain(settings.kafka_certificate, settings.kafka_key)
    return context
