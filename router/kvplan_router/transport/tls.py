"""The server's certificate, read again when its files change.

In: certificate and key files, as a Secret's volume holds them. Out: gRPC server credentials. A pair that cannot be
read, or is half-written, leaves the last one in force. Source: 05-router §2.
"""

import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc


@dataclass
class ReloadingCertificate:
    """A certificate and its key that follow their files.

    Attributes:
        certificate: PEM file of the chain.
        key: PEM file of the private key.
    """

    certificate: Path
    key: Path
    _seen: tuple[bytes, bytes] = field(default=(b"", b""), repr=False)

    def credentials(self) -> grpc.ServerCredentials:
        """Credentials that ask for a newer certificate before every handshake.

        Raises:
            OSError: a file cannot be read.
            ssl.SSLError: the pair does not belong together.
        """
        self._seen = self._read()
        newer: Any = self._newer  # the published types forget that None means no change
        return grpc.dynamic_ssl_server_credentials(_configuration(self._seen), newer)

    def _read(self) -> tuple[bytes, bytes]:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(self.certificate, self.key)
        return self.key.read_bytes(), self.certificate.read_bytes()

    def _newer(self) -> grpc.ServerCertificateConfiguration | None:
        try:
            pair = self._read()
        except (OSError, ssl.SSLError):
            return None
        if pair == self._seen:
            return None
        self._seen = pair
        return _configuration(pair)


def _configuration(pair: tuple[bytes, bytes]) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration([pair])
