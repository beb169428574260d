"""A broker that lets nobody in without a certificate and a password, and everybody do what the files of ACLs say."""

import contextlib
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from infra import acls
from infra.bus import clients
from infra.bus.topics import create_topics
from infra.local.kafka import LocalKafka
from infra.local.kafka_tls import ADMIN
from infra.local.packages import kafka_jars
from infra.settings import Settings
from tests.security.pki import Authority

_KNOWN_S = 30.0


class SecuredBus:
    """The running broker, its authority, and a user for every role."""

    def __init__(self, broker: LocalKafka, authority: Authority, folder: Path) -> None:
        self.broker = broker
        self.authority = authority
        self._folder = folder
        self._passwords = {role: secrets.token_urlsafe(16) for role in acls.roles()}

    def by_certificate(self, name: str) -> Settings:
        """With a certificate and no password."""
        identity = self.authority.identity(name)
        return Settings(
            kafka=self.broker.certified,
            kafka_ca=self.authority.ca,
            kafka_certificate=identity.certificate,
            kafka_key=identity.key,
            objects=(self._folder / "objects").as_uri(),
            state=self._folder / "state",
        )

    def by_password(self, role: str) -> Settings:
        """With both, as the role's user."""
        update = {"kafka": self.broker.bootstrap, "kafka_user": role}
        given = self.by_certificate(role).model_dump() | update | {"kafka_password": self._passwords[role]}
        return Settings(**given)

    def make_users(self) -> None:
        """A SCRAM user for every role, with the role's ACLs."""
        client = clients.admin(self.by_certificate(ADMIN))
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        users = [UserScramCredentialUpsertion(u, info, p.encode()) for u, p in self._passwords.items()]
        for made in client.alter_user_scram_credentials(users).values():
            made.result()
        for role in acls.roles():
            acls.apply(client, acls.bindings(role, role))
        self._wait_until_known(acls.roles()[-1])

    def _wait_until_known(self, role: str) -> None:
        """The broker learns of a new user and its rights a moment after it has said yes."""
        client, deadline = clients.admin(self.by_password(role)), time.monotonic() + _KNOWN_S
        while True:
            with contextlib.suppress(KafkaException):
                if client.list_topics(timeout=2).topics:
                    return
            assert time.monotonic() < deadline, f"{role} does not get in"


@contextmanager
def secured_bus(folder: Path) -> Iterator[SecuredBus]:
    """Started, with the line's topics and all users."""
    authority = Authority(folder / "pki")
    broker = LocalKafka(
        jars=kafka_jars(Settings()), folder=folder / "kafka", log=folder / "kafka.log", secured=authority.secured()
    )
    broker.start()
    try:
        broker.ready()
        bus = SecuredBus(broker, authority, folder)
        create_topics(bus.by_certificate(ADMIN))
        bus.make_users()
        yield bus
    finally:
        broker.kill()
