"""Certificates for servers of tests, by an authority that only tests know."""

import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

NAME = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "An authority of tests")])


class Authority:
    """Signs for servers; `file` is its own certificate, by which it is trusted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "authority.pem"
        self._key = ec.generate_private_key(ec.SECP256R1())
        made = _begun(NAME, self._key, timedelta(days=1))
        usage = x509.KeyUsage(
            digital_signature=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=True,
            crl_sign=True,
            encipher_only=False,
            decipher_only=False,
        )
        for extension in (x509.BasicConstraints(ca=True, path_length=0), usage):
            made = made.add_extension(extension, critical=True)
        made = made.issuer_name(NAME).add_extension(self._key_id(), critical=False)
        signed = made.sign(self._key, hashes.SHA256())
        self.file.write_bytes(signed.public_bytes(serialization.Encoding.PEM))

    def server(self, *names: str, lasts: timedelta = timedelta(days=1)) -> ssl.SSLContext:
        """What a server of these names and addresses needs; one that has ended lasts no time."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
        made = _begun(subject, key, lasts).issuer_name(NAME)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        for extension in (
            x509.SubjectAlternativeName([_named(each) for each in names]),
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]),
            issuer,
        ):
            made = made.add_extension(extension, critical=False)
        signed = made.sign(self._key, hashes.SHA256())
        file = self.folder / f"{signed.serial_number}.pem"
        private = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        file.write_bytes(private + signed.public_bytes(serialization.Encoding.PEM))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context

    def _key_id(self) -> x509.SubjectKeyIdentifier:
        return x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())


def _begun(
    subject: x509.Name, key: ec.EllipticCurvePrivateKey, lasts: timedelta
) -> x509.CertificateBuilder:
    begins = datetime.now(UTC) - timedelta(days=2)
    made = x509.CertificateBuilder().subject_name(subject).public_key(key.public_key())
    made = made.serial_number(x509.random_serial_number()).not_valid_before(begins)
    return made.not_valid_after(begins + timedelta(days=2) + lasts)


def _named(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
