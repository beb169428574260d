"""The local broker with what a cluster has: TLS with client certificates, SCRAM passwords, ACLs that refuse what they do not allow."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BROKER, ADMIN = "broker", "admin"
"""Common names in certificates: of the broker itself, and of who may do everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Secured:
    """Files in PEM, and how the local stack's own client shows that it is `ADMIN`."""

    keystore: Path
    """The broker's key in PKCS#8, then its certificate: common name `BROKER`, address 127.0.0.1."""
    truststore: Path
    """The authority that signs clients' certificates."""
    admin: Mapping[str, Any]
    """Settings of librdkafka."""


def secured_properties(secured: Secured, *, host: str, passwords: int, controller: int, certificates: int) -> str:
    """Behind the plain properties, of which it replaces some. `passwords`, `controller`, `certificates` are ports.

    Clients of either listener need a certificate. On `passwords` the SCRAM user counts as the principal, on `certificates`
    the certificate's common name.
    """
    listeners = f"PASSWORDS://{host}:{passwords},CERTIFICATES://{host}:{certificates},CONTROLLER://{host}:{controller}"
    return f"""\
listeners={listeners}
advertised.listeners={listeners}
listener.security.protocol.map=PASSWORDS:SASL_SSL,CERTIFICATES:SSL,CONTROLLER:SSL
inter.broker.listener.name=CERTIFICATES
ssl.keystore.type=PEM
ssl.keystore.location={secured.keystore}
ssl.truststore.type=PEM
ssl.truststore.location={secured.truststore}
ssl.enabled.protocols=TLSv1.3,TLSv1.2
ssl.client.auth=required
listener.name.passwords.ssl.client.auth=required
ssl.principal.mapping.rules=RULE:^CN=([^,]+).*$/$1/
sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.passwords.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
allow.everyone.if.no.acl.found=false
super.users=User:{BROKER};User:{ADMIN}
"""
