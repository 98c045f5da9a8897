"""A certificate authority of the bed's own: server and client certificates, and the service-account key.

Inputs: a directory of the run. Outputs: PEM files in it, readable by their owner alone; they live as long as the run.
"""

import datetime as dt
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFETIME = dt.timedelta(days=7)
_CLOCK_SKEW = dt.timedelta(minutes=5)
_SERVER_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")


class Authority:
    """Signs certificates for one cluster."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(mode=0o700)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kvplan bed")])
        self.certificate = directory / "ca.crt"
        self.certificate.write_bytes(_pem(self._sign(self._name, self._key.public_key(), _authority_extensions())))

    def service_account_key(self) -> Path:
        """Write the key that signs service-account tokens and return its file."""
        return self._write("service-account.key", _key_pem(ec.generate_private_key(ec.SECP256R1())))

    def server(self, component: str, *addresses: str) -> Path:
        """Write a server certificate with its key for 127.0.0.1 and further addresses; return the one file of both."""
        names: list[x509.GeneralName] = [x509.DNSName(name) for name in _SERVER_NAMES]
        names += [x509.IPAddress(ipaddress.ip_address(address)) for address in ("127.0.0.1", *addresses)]
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
        return self._issue(component, [], [x509.SubjectAlternativeName(names), usage])

    def client(self, user: str, *groups: str) -> Path:
        """Write a client certificate with its key for a user in these groups; return the one file of both."""
        return self._issue(user, list(groups), [x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])])

    def _issue(self, name: str, groups: list[str], extensions: list[x509.ExtensionType]) -> Path:
        key = ec.generate_private_key(ec.SECP256R1())
        parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        subject = x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = self._sign(subject, key.public_key(), extensions)
        return self._write(f"{name.replace(':', '-')}.pem", _pem(certificate) + _key_pem(key))

    def _sign(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, extensions: list[x509.ExtensionType]
    ) -> x509.Certificate:
        now = dt.datetime.now(dt.UTC)
        builder = x509.CertificateBuilder(
            issuer_name=self._name,
            subject_name=subject,
            public_key=key,
            serial_number=x509.random_serial_number(),
            not_valid_before=now - _CLOCK_SKEW,
            not_valid_after=now + _LIFETIME,
        )
        for extension in extensions:
            builder = builder.add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
        return builder.sign(self._key, hashes.SHA256())

    def _write(self, name: str, content: bytes) -> Path:
        file = self.directory / name
        file.touch(mode=0o600)
        file.write_bytes(content)
        return file


def _authority_extensions() -> list[x509.ExtensionType]:
    return [x509.BasicConstraints(ca=True, path_length=0)]


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    # The API server reads an EC service-account key in this layout alone.
    encoding, layout = serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL
    return key.private_bytes(encoding, layout, serialization.NoEncryption())
