"""The fast transport of the kvplan router, as `kvplan_router.transport.native` uses it."""

from collections.abc import Iterator, Mapping
from pathlib import Path

class Headers(Mapping[str, str]):
    """A request's headers by lower-case name; makes text only of what is asked for."""

    def __getitem__(self, name: str) -> str: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...

class Server:
    """A server of ext_proc and of the gRPC health protocol on a thread of its own."""

    def __init__(
        self,
        bridge: object,
        address: str,
        *,
        tls: tuple[Path, Path] | None,
        body_bytes_max: int,
        counts_to_the_end: bool,
        samples: bool,
    ) -> None: ...
    def start(self) -> int:
        """Listen, NOT_SERVING; returns the port. Raises OSError: address or certificate cannot be used."""
    def set_serving(self, serving: bool) -> None:
        """What the health services answer from now on; waits until they do."""
    def look(self) -> None:
        """There may be room for requests that wait; does not wait."""
    def drain(self, lame_duck: float, grace: float) -> None:
        """Report NOT_SERVING, serve on, let go, say GOAWAY, and wait for what is open. Seconds."""
    def stop(self) -> None:
        """Close at once and end the thread. Idempotent."""
