"""Between Envoy's protobuf messages and the plain values of :mod:`messages`.

In: ``ProcessingRequest``. Out: ``ProcessingResponse``. Must not decide anything. Header values come in ``raw_value`` or
in ``value`` (older gateways); what cannot be decoded is replaced, never refused. Source: 05-router §2.
"""

from collections.abc import Iterable, Mapping

from envoy.config.core.v3.base_pb2 import HeaderMap, HeaderValue, HeaderValueOption, Metadata
from envoy.extensions.filters.http.ext_proc.v3.processing_mode_pb2 import ProcessingMode
from envoy.service.ext_proc.v3 import external_processor_pb2 as ext_proc
from google.protobuf.duration_pb2 import Duration
from google.protobuf.struct_pb2 import Struct, Value

from kvplan_router.transport.messages import (
    Body,
    BodyMode,
    Continue,
    Echo,
    Message,
    Modes,
    Phase,
    Refuse,
    RequestHeaders,
    ResponseHeaders,
    Route,
    Trailers,
)
from kvplan_router.transport.names import DESTINATION, LB_NAMESPACE, SERVED, SUBSET, SUBSET_NAMESPACE
from kvplan_router.transport.refusal import error_body

_BODY_MODES = {
    ProcessingMode.NONE: BodyMode.NONE,
    ProcessingMode.STREAMED: BodyMode.STREAMED,
    ProcessingMode.BUFFERED: BodyMode.BUFFERED,
    ProcessingMode.BUFFERED_PARTIAL: BodyMode.BUFFERED,
    ProcessingMode.FULL_DUPLEX_STREAMED: BodyMode.FULL_DUPLEX,
    ProcessingMode.GRPC: BodyMode.STREAMED,
}
_WATCHED = ProcessingMode(
    request_header_mode=ProcessingMode.SEND,
    response_header_mode=ProcessingMode.SEND,
    response_body_mode=ProcessingMode.STREAMED,
    request_trailer_mode=ProcessingMode.SKIP,
    response_trailer_mode=ProcessingMode.SEND,
)


def read_message(request: ext_proc.ProcessingRequest) -> Message | None:
    """The message, or None for one of a kind that asks for nothing."""
    match request.WhichOneof("request"):
        case "request_headers":
            return _request_headers(request)
        case "request_body":
            return Body(Phase.REQUEST_BODY, request.request_body.body, request.request_body.end_of_stream)
        case "request_trailers":
            return Trailers(Phase.REQUEST_TRAILERS)
        case "response_headers":
            return _response_headers(request)
        case "response_body":
            return Body(Phase.RESPONSE_BODY, request.response_body.body, request.response_body.end_of_stream)
        case "response_trailers":
            return Trailers(Phase.RESPONSE_TRAILERS, _served(request.metadata_context))
    return None


def _request_headers(request: ext_proc.ProcessingRequest) -> RequestHeaders:
    head = request.request_headers
    config = request.protocol_config
    modes = Modes(
        _BODY_MODES.get(config.request_body_mode, BodyMode.NONE),
        _BODY_MODES.get(config.response_body_mode, BodyMode.NONE),
        config.send_body_without_waiting_for_header_response,
    )
    headers = read_headers(head.headers)
    return RequestHeaders(headers, head.end_of_stream, _subset(request.metadata_context, headers), modes)


def _response_headers(request: ext_proc.ProcessingRequest) -> ResponseHeaders:
    headers = read_headers(request.response_headers.headers)
    return ResponseHeaders(_served(request.metadata_context) or headers.get(SERVED))


def read_headers(headers: HeaderMap) -> dict[str, str]:
    """Headers by lower-case name; several values of one name are joined with commas."""
    found: dict[str, str] = {}
    for header in headers.headers:
        raw: bytes = header.raw_value
        value = raw.decode("utf-8", "replace") if raw else header.value
        name = header.key.lower()
        found[name] = f"{found[name]},{value}" if name in found else value
    return found


def _subset(metadata: Metadata, headers: Mapping[str, str]) -> tuple[str, ...] | None:
    """The endpoints a gateway allows: a list or a comma-separated text, in metadata or in a header."""
    hint = metadata.filter_metadata.get(SUBSET_NAMESPACE) if metadata.filter_metadata else None
    if hint is not None and SUBSET in hint.fields:
        return tuple(_endpoints(hint.fields[SUBSET]))
    return _split(headers[SUBSET]) if SUBSET in headers else None


def _endpoints(value: Value) -> Iterable[str]:
    if value.WhichOneof("kind") == "list_value":
        for item in value.list_value.values:
            yield from _split(item.string_value)
    else:
        yield from _split(value.string_value)


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _served(metadata: Metadata) -> str | None:
    known = metadata.filter_metadata.get(LB_NAMESPACE) if metadata.filter_metadata else None
    value = known.fields[SERVED].string_value if known is not None and SERVED in known.fields else ""
    return value or None


def route(reply: Route) -> ext_proc.ProcessingResponse:
    """The destinations, in the header and in the metadata, both the same text."""
    endpoints = ",".join(reply.destinations)
    headers = {**reply.headers, DESTINATION: endpoints} if endpoints else reply.headers
    common = ext_proc.CommonResponse(header_mutation=ext_proc.HeaderMutation(set_headers=_options(headers)))
    response = _plain(reply.phase, common)
    if endpoints:
        chosen = Struct(fields={DESTINATION: Value(string_value=endpoints)})
        response.dynamic_metadata.fields[LB_NAMESPACE].struct_value.CopyFrom(chosen)
    if reply.watch_response:
        response.mode_override.CopyFrom(_WATCHED)
    return response


def go_on(reply: Continue) -> ext_proc.ProcessingResponse:
    """The empty reply."""
    return _plain(reply.phase, None)


def echo(reply: Echo) -> ext_proc.ProcessingResponse:
    """One piece of a full-duplex body, unchanged."""
    piece = ext_proc.StreamedBodyResponse(body=reply.body.data, end_of_stream=reply.body.end_of_stream)
    mutation = ext_proc.BodyMutation(streamed_response=piece)
    return _plain(reply.body.phase, ext_proc.CommonResponse(body_mutation=mutation))


def refuse(reply: Refuse) -> ext_proc.ProcessingResponse:
    """An answer to the client."""
    headers = {"content-type": "application/json"}
    if reply.retry_after_seconds:
        headers["retry-after"] = str(reply.retry_after_seconds)
    immediate = ext_proc.ImmediateResponse(
        headers=ext_proc.HeaderMutation(set_headers=_options(headers)),
        body=error_body(reply.status, reply.reason),
        details=f"kvplan_{reply.status}",
    )
    immediate.status.code = reply.status
    return ext_proc.ProcessingResponse(immediate_response=immediate)


def more_time(seconds: float) -> ext_proc.ProcessingResponse:
    """Ask the gateway to wait longer for the reply; it takes one such request per message, of 1 ms or more."""
    duration = Duration()
    duration.FromMilliseconds(max(1, round(seconds * 1000)))
    return ext_proc.ProcessingResponse(override_message_timeout=duration)


def _plain(phase: Phase, common: ext_proc.CommonResponse | None) -> ext_proc.ProcessingResponse:
    match phase:
        case Phase.REQUEST_HEADERS:
            return ext_proc.ProcessingResponse(request_headers=ext_proc.HeadersResponse(response=common))
        case Phase.REQUEST_BODY:
            return ext_proc.ProcessingResponse(request_body=ext_proc.BodyResponse(response=common))
        case Phase.REQUEST_TRAILERS:
            return ext_proc.ProcessingResponse(request_trailers=ext_proc.TrailersResponse())
        case Phase.RESPONSE_HEADERS:
            return ext_proc.ProcessingResponse(response_headers=ext_proc.HeadersResponse(response=common))
        case Phase.RESPONSE_BODY:
            return ext_proc.ProcessingResponse(response_body=ext_proc.BodyResponse(response=common))
        case Phase.RESPONSE_TRAILERS:
            return ext_proc.ProcessingResponse(response_trailers=ext_proc.TrailersResponse())


def _options(headers: Mapping[str, str]) -> list[HeaderValueOption]:
    overwrite = HeaderValueOption.OVERWRITE_IF_EXISTS_OR_ADD
    return [
        HeaderValueOption(header=HeaderValue(key=name, raw_value=value.encode()), append_action=overwrite)
        for name, value in headers.items()
    ]
