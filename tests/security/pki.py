"""Certificates of an authority made for one test run: nothing of it is kept."""

from dataclasses import dataclass
from pathlib import Path

import trustme
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from infra.local.kafka_tls import ADMIN, BROKER, Secured


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Files in PEM: a certificate with its chain, and its key."""

    certificate: Path
    key: Path


class Authority:
    """Signs what a broker and its clients show each other, into a folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._ca = trustme.CA(organization_name="longtake tests")
        self.ca = folder / "ca.pem"
        self._ca.cert_pem.write_to_path(self.ca)

    def identity(self, name: str) -> Identity:
        """With the common name `name`."""
        found = Identity(certificate=self.folder / f"{name}.pem", key=self.folder / f"{name}.key")
        if not found.key.exists():
            issued = self._ca.issue_cert("127.0.0.1", common_name=name)
            chain = b"".join(blob.bytes() for blob in issued.cert_chain_pems)
            found.certificate.write_bytes(chain)
            key = load_pem_private_key(issued.private_key_pem.bytes(), None)
            found.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return found

    def secured(self) -> Secured:
        """What a broker needs to check everybody."""
        broker, admin = self.identity(BROKER), self.identity(ADMIN)
        keystore = self.folder / "broker-keystore.pem"
        keystore.write_bytes(broker.key.read_bytes() + broker.certificate.read_bytes())
        access = {
            "security.protocol": "SSL",
            "ssl.ca.location": str(self.ca),
            "ssl.certificate.location": str(admin.certificate),
            "ssl.key.location": str(admin.key),
        }
        return Secured(keystore=keystore, truststore=self.ca, admin=access)
