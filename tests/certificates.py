"""Certificates that a test makes for itself: an authority, and what it signs for this machine."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Certificates:
    """Files in PEM form.

    Attributes:
        authority: What a client has to trust.
        cert: The server's certificate, for ``localhost`` and ``127.0.0.1``.
        key: Its key.
    """

    authority: str
    cert: str
    key: str

    @property
    def trusted(self) -> ssl.SSLContext:
        """What a client needs that trusts the authority, and nobody else."""
        return ssl.create_default_context(cafile=self.authority)


def make(folder: Path) -> Certificates:
    """Make an authority and a server's certificate in a folder."""
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority = _named("a test's authority")
    ca = _began(authority, authority, authority_key).add_extension(x509.BasicConstraints(True, None), critical=True)
    ca = ca.add_extension(
        x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key()), critical=False
    ).add_extension(_usage(signs_others=True), critical=True)
    cert = _began(_named("localhost"), authority, key).add_extension(
        x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
        critical=False,
    )
    cert = cert.add_extension(
        x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False
    )
    found = Certificates(*(str(folder / name) for name in ("authority.pem", "cert.pem", "key.pem")))
    for path, builder in ((found.authority, ca), (found.cert, cert)):
        signed = builder.sign(authority_key, hashes.SHA256())
        Path(path).write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    Path(found.key).write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return found


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _began(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
    )


def _usage(*, signs_others: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_others,
        crl_sign=signs_others,
        encipher_only=False,
        decipher_only=False,
    )
