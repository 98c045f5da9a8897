"""Filter settings of other gateways, made of our own Envoy's: what a conformant gateway may send.

In: a configuration. Out: the same with another ``processing_mode``.
"""

from typing import Any

GATEWAYS: dict[str, dict[str, str]] = {
    "full duplex both ways": {
        "request_body_mode": "FULL_DUPLEX_STREAMED", "request_trailer_mode": "SEND",
        "response_header_mode": "SEND", "response_body_mode": "FULL_DUPLEX_STREAMED", "response_trailer_mode": "SEND",
    },
    "full duplex requests": {
        "request_body_mode": "FULL_DUPLEX_STREAMED", "request_trailer_mode": "SEND",
        "response_header_mode": "SEND", "response_body_mode": "NONE", "response_trailer_mode": "SEND",
    },
    "buffered requests": {
        "request_body_mode": "BUFFERED", "response_header_mode": "SEND", "response_trailer_mode": "SEND",
    },
    "streamed requests, unasked": {
        "request_body_mode": "STREAMED", "response_header_mode": "SEND", "response_trailer_mode": "SEND",
    },
    "streamed both ways": {
        "request_body_mode": "STREAMED", "response_header_mode": "SEND", "response_body_mode": "STREAMED",
        "response_trailer_mode": "SEND",
    },
    "buffered both ways": {
        "request_body_mode": "BUFFERED", "response_header_mode": "SEND", "response_body_mode": "BUFFERED",
        "response_trailer_mode": "SEND",
    },
}  # fmt: skip


def manager(document: dict[str, Any]) -> dict[str, Any]:
    """The HTTP connection manager in a bootstrap: routes and filters."""
    listener = document["static_resources"]["listeners"][0]
    config: dict[str, Any] = listener["filter_chains"][0]["filters"][0]["typed_config"]
    return config


def ext_proc(document: dict[str, Any]) -> dict[str, Any]:
    """The filter's configuration in a bootstrap."""
    config: dict[str, Any] = manager(document)["http_filters"][0]["typed_config"]
    return config


def be_patient(document: dict[str, Any]) -> None:
    """Let no busy moment of the machine send a request on without a decision, where every one has to be counted."""
    ext_proc(document)["message_timeout"] = "30s"


def behave_like(gateway: str, document: dict[str, Any]) -> None:
    """Let our Envoy send what this gateway sends; it decides the mode itself, as gateways do."""
    config = ext_proc(document)
    config["processing_mode"].update(GATEWAYS[gateway])
    config["allow_mode_override"] = False
    config["send_body_without_waiting_for_header_response"] = gateway == "streamed requests, unasked"
    document["static_resources"]["listeners"][0]["per_connection_buffer_limit_bytes"] = 16 * 1024 * 1024
