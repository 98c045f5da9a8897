"""What an operator of the router can choose about its decisions. Pure values, each default stated here."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CoreSettings:
    """Choices of the decision core.

    Attributes:
        identity: of this process, as in the index's ``routers``.
        session_header: names the session; its requests stay on one member of a home.
        model_header: names the model where a gateway puts it into a header; the body's ``model`` otherwise.
        session_hash: False restores the paper's rule: always the least-loaded member.
        route_weights: False restores the paper's rule: cold requests are drawn from the whole fleet alike.
        longest_wait_seconds: a request waits no longer for room, whatever its class says; 0 where none may wait.
        busier_factor: a session leaves its member when that one has more than this times the least load …
        busier_margin: … plus this many requests.
        destinations: most destinations named per pick, the first included.
        retry_after_seconds: what a shed client is told.
        counted_keys: most keys with a counter of their own.
        remembered_keys: most keys whose last request is remembered for the reuse gap.
    """

    identity: str = "router"
    session_header: str = "x-session-id"
    model_header: str = "x-gateway-model-name"
    session_hash: bool = True
    route_weights: bool = True
    longest_wait_seconds: float = 29.0
    busier_factor: float = 2.0
    busier_margin: float = 4.0
    destinations: int = 3
    retry_after_seconds: int = 1
    counted_keys: int = 8_192
    remembered_keys: int = 65_536
