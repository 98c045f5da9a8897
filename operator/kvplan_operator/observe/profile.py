"""Connections to Prometheus as the operator's settings name them, and which one a fleet may use.

A fleet names a profile; address, token and authority belong to the operator. A raw URL in a fleet is used only when the
operator's allow-list has it, and never with credentials: otherwise whoever may write a fleet could send the operator's
token anywhere. Pure data.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from kvplan_operator.api.fleet import ServingFleet
from kvplan_solver.errors import InvalidInput

MEBIBYTE = 1 << 20


@dataclass(frozen=True)
class PrometheusProfile:
    """One connection.

    Attributes:
        name: as fleets name it.
        url: base address, ``http`` or ``https``, with a path where the API has one.
        token_file: holds a bearer token; read again for every query, because such tokens are rotated.
        ca_file: authority that signed the server's certificate; None trusts the usual ones.
        timeout_seconds: longest wait for the connection, for the next byte, and for the whole answer.
        max_bytes: longest answer.
        max_series: most series of one answer.
        concurrency: queries at once.

    Raises:
        InvalidInput: an address that is no http(s) URL or carries credentials, or a limit below 1.
    """

    name: str
    url: str
    token_file: Path | None = None
    ca_file: Path | None = None
    timeout_seconds: float = 10.0
    max_bytes: int = 32 * MEBIBYTE
    max_series: int = 50_000
    concurrency: int = 8

    def __post_init__(self) -> None:
        subject, parts = f"Prometheus profile {self.name}", urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise InvalidInput(subject, "url", self.url, "give an http:// or https:// address without a query")
        if "@" in parts.netloc:
            raise InvalidInput(subject, "url", "with credentials", "put a token into token_file instead")
        for limit in ("timeout_seconds", "max_bytes", "max_series", "concurrency"):
            if not getattr(self, limit) > 0:
                raise InvalidInput(subject, limit, getattr(self, limit), "use more than 0")

    @property
    def base(self) -> str:
        """The address without a slash at its end."""
        return self.url.rstrip("/")


@dataclass(frozen=True)
class PrometheusSettings:
    """All connections.

    Attributes:
        profiles: by name.
        allowed_urls: addresses that a fleet may name itself, Prometheus servers and routers; none by default.
    """

    profiles: Mapping[str, PrometheusProfile]
    allowed_urls: Collection[str] = ()

    def allows(self, url: str) -> bool:
        """Whether a fleet may name this address."""
        return url.rstrip("/") in {allowed.rstrip("/") for allowed in self.allowed_urls}

    def profile_of(self, fleet: ServingFleet) -> PrometheusProfile:
        """The connection a fleet may use.

        Raises:
            InvalidInput: an unknown profile, or an address that the operator does not allow.
        """
        subject, wanted = f"ServingFleet {fleet.metadata.name}", fleet.spec.prometheus
        if wanted.url is not None:
            if not self.allows(wanted.url):
                remedy = "name a profile, or add the address to the operator's allowed URLs"
                raise InvalidInput(subject, "spec.prometheus.url", wanted.url, remedy)
            return PrometheusProfile(name=wanted.url, url=wanted.url)
        profile = self.profiles.get(wanted.profile or "")
        if profile is None:
            known = ", ".join(sorted(self.profiles)) or "none"
            raise InvalidInput(subject, "spec.prometheus.profile", wanted.profile, f"the operator has: {known}")
        return profile
