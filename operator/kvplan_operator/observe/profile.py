"""Connections to Prometheus as the operator's settings name them, and which one a fleet may use.

A fleet names a profile; address, token and authority belong to the operator. A raw URL in a fleet is used only when the
operator's allow-list has it, and never with credentials: otherwise whoever may write a fleet could send the operator's
token anywhere. Pure data.
"""

import re
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from kvplan_operator.api.fleet import ServingFleet
from kvplan_solver.errors import InvalidInput

MEBIBYTE = 1 << 20


class PrometheusConnection(BaseModel):
    """One Prometheus, as the operator's settings describe it.

    Attributes:
        url: base address, ``http`` or ``https``, with a path where the API has one; no credentials and no query.
        token_file: holds a bearer token; read again for every query, because such tokens are rotated.
        ca_file: authority that signed the server's certificate; None trusts the usual ones.
        timeout_seconds: longest wait for the connection, for the next byte, and for the whole answer.
        max_bytes: longest answer.
        max_series: most series of one answer.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str
    token_file: Path | None = None
    ca_file: Path | None = None
    timeout_seconds: float = Field(default=10.0, gt=0)
    max_bytes: int = Field(default=16 * MEBIBYTE, gt=0)
    max_series: int = Field(default=20_000, gt=0)

    @field_validator("url")
    @classmethod
    def _plain(cls, url: str) -> str:
        """The message repeats no address: it may carry credentials."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError("give an http:// or https:// address without a query")
        if "@" in parts.netloc:
            raise ValueError("put a token into token_file instead of credentials into the address")
        return url

    @property
    def base(self) -> str:
        """The address without a slash at its end."""
        return self.url.rstrip("/")


class NamedConnection(NamedTuple):
    """A connection with the word that messages and sources use for it: a profile's name, or the address itself."""

    name: str
    connection: PrometheusConnection


class PrometheusSettings(BaseModel):
    """Whom fleets may ask.

    Attributes:
        profiles: connections by name. ``KVPLAN_PROMETHEUS_URL``, ``_TOKEN_FILE`` and ``_CA_FILE`` make ``default``.
        allowed_urls: addresses that a fleet may give as ``spec.prometheus.url``, of Prometheus servers and routers;
            queried without credentials.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    profiles: dict[str, PrometheusConnection] = {}
    allowed_urls: tuple[str, ...] = ()

    def allows(self, url: str) -> bool:
        """Whether a fleet may name this address."""
        return url.rstrip("/") in {allowed.rstrip("/") for allowed in self.allowed_urls}

    def connection_of(self, fleet: ServingFleet) -> NamedConnection:
        """The connection a fleet may use.

        Raises:
            InvalidInput: an unknown profile, or an address that the operator does not allow.
        """
        subject, wanted = f"ServingFleet {fleet.metadata.name}", fleet.spec.prometheus
        if wanted.url is not None:
            if not self.allows(wanted.url):
                remedy = "name a profile, or add the address to the operator's allowed URLs"
                raise InvalidInput(subject, "spec.prometheus.url", wanted.url, remedy)
            return NamedConnection(wanted.url, connection_to(subject, "spec.prometheus.url", wanted.url))
        connection = self.profiles.get(wanted.profile or "")
        if connection is None:
            known = ", ".join(sorted(self.profiles)) or "none"
            raise InvalidInput(subject, "spec.prometheus.profile", wanted.profile, f"the operator has: {known}")
        return NamedConnection(wanted.profile or "", connection)


def connection_to(subject: str, field: str, url: str) -> PrometheusConnection:
    """A connection without credentials.

    Raises:
        InvalidInput: an address that is no http(s) URL, has a query, or carries credentials, which are not repeated.
    """
    try:
        return PrometheusConnection(url=url)
    except ValidationError as error:
        shown = without_credentials(url)
        raise InvalidInput(subject, field, shown, str(error.errors()[0]["ctx"]["error"])) from None


def without_credentials(text: str) -> str:
    """A text with an address in it, fit for messages."""
    return re.sub(r"//[^/?#]*@", "//***@", text)
