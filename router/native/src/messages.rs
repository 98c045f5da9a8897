//! Envoy's messages as the exchange needs them.
//!
//! In: `ProcessingRequest`. Out: [`Message`], or nothing for a message that asks for nothing. Mirrors
//! `kvplan_router.transport.wire.read_message`.

use envoy_types::pb::envoy::config::core::v3::Metadata;
use envoy_types::pb::envoy::extensions::filters::http::ext_proc::v3::processing_mode::BodySendMode;
use envoy_types::pb::envoy::service::ext_proc::v3::processing_request::Request;
use envoy_types::pb::envoy::service::ext_proc::v3::{HttpBody, HttpHeaders, ProcessingRequest, ProtocolConfiguration};
use envoy_types::pb::google::protobuf::Value;
use envoy_types::pb::google::protobuf::value::Kind;

use crate::headers::Headers;

/// Header, and key in the metadata of [`LB_NAMESPACE`]: `ip:port[,ip:port…]`, best first.
pub const DESTINATION: &str = "x-gateway-destination-endpoint";
/// Who really served, in the response's metadata or headers.
pub const SERVED: &str = "x-gateway-destination-endpoint-served";
/// The endpoints a gateway allows.
pub const SUBSET: &str = "x-gateway-destination-endpoint-subset";
/// Where destinations stand in dynamic metadata.
pub const LB_NAMESPACE: &str = "envoy.lb";
/// Where the allowed endpoints stand in dynamic metadata.
pub const SUBSET_NAMESPACE: &str = "envoy.lb.subset_hint";

/// The part of a request or response that a message is about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    RequestHeaders,
    RequestBody,
    RequestTrailers,
    ResponseHeaders,
    ResponseBody,
    ResponseTrailers,
}

/// How the gateway sends one direction's body.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub enum BodyMode {
    #[default]
    None,
    Buffered,
    Streamed,
    FullDuplex,
}

/// The body modes of one stream, as its first message says.
#[derive(Clone, Copy, Default)]
pub struct Modes {
    pub request: BodyMode,
    pub response: BodyMode,
    pub body_before_reply: bool,
}

/// The first message of a stream.
pub struct Head {
    pub headers: Headers,
    pub end_of_stream: bool,
    pub subset: Option<Vec<String>>,
    pub modes: Modes,
}

/// A piece of a body, or all of it.
pub struct Body {
    pub phase: Phase,
    pub data: Vec<u8>,
    pub end_of_stream: bool,
}

/// What a gateway says.
pub enum Message {
    RequestHeaders(Head),
    RequestBody(Body),
    RequestTrailers,
    ResponseHeaders { served: Option<String> },
    ResponseBody(Body),
    ResponseTrailers { served: Option<String> },
}

impl Message {
    /// The message, or None for one of a kind that asks for nothing.
    pub fn read(request: ProcessingRequest) -> Option<Self> {
        let metadata = request.metadata_context.unwrap_or_default();
        Some(match request.request? {
            Request::RequestHeaders(head) => Self::RequestHeaders(read_head(head, &metadata, request.protocol_config)),
            Request::RequestBody(body) => Self::RequestBody(read_body(Phase::RequestBody, body)),
            Request::RequestTrailers(_) => Self::RequestTrailers,
            Request::ResponseHeaders(head) => {
                Self::ResponseHeaders { served: served(&metadata).or_else(|| served_header(head)) }
            }
            Request::ResponseBody(body) => Self::ResponseBody(read_body(Phase::ResponseBody, body)),
            Request::ResponseTrailers(_) => Self::ResponseTrailers { served: served(&metadata) },
        })
    }
}

fn read_head(head: HttpHeaders, metadata: &Metadata, config: Option<ProtocolConfiguration>) -> Head {
    let end_of_stream = head.end_of_stream;
    let headers = read_headers(head);
    let config = config.unwrap_or_default();
    let modes = Modes {
        request: body_mode(config.request_body_mode),
        response: body_mode(config.response_body_mode),
        body_before_reply: config.send_body_without_waiting_for_header_response,
    };
    Head { subset: allowed(metadata, &headers), headers, end_of_stream, modes }
}

fn read_headers(head: HttpHeaders) -> Headers {
    Headers::new(head.headers.unwrap_or_default().headers)
}

fn read_body(phase: Phase, body: HttpBody) -> Body {
    Body { phase, data: body.body, end_of_stream: body.end_of_stream }
}

fn body_mode(number: i32) -> BodyMode {
    match BodySendMode::try_from(number) {
        Ok(BodySendMode::Streamed | BodySendMode::Grpc) => BodyMode::Streamed,
        Ok(BodySendMode::Buffered | BodySendMode::BufferedPartial) => BodyMode::Buffered,
        Ok(BodySendMode::FullDuplexStreamed) => BodyMode::FullDuplex,
        Ok(BodySendMode::None) | Err(_) => BodyMode::None,
    }
}

/// The endpoints a gateway allows: a list or a comma-separated text, in metadata or in a header.
fn allowed(metadata: &Metadata, headers: &Headers) -> Option<Vec<String>> {
    match field(metadata, SUBSET_NAMESPACE, SUBSET) {
        Some(hint) => Some(endpoints(hint)),
        None => headers.value(SUBSET).map(|text| split(&text)),
    }
}

fn endpoints(hint: &Value) -> Vec<String> {
    match &hint.kind {
        Some(Kind::ListValue(list)) => list.values.iter().flat_map(|item| split(string(item))).collect(),
        _ => split(string(hint)),
    }
}

fn split(text: &str) -> Vec<String> {
    let parts = text.split(',').map(str::trim);
    parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

fn served(metadata: &Metadata) -> Option<String> {
    let address = string(field(metadata, LB_NAMESPACE, SERVED)?);
    (!address.is_empty()).then(|| address.to_owned())
}

fn served_header(head: HttpHeaders) -> Option<String> {
    let headers = read_headers(head);
    headers.value(SERVED).map(|address| address.into_owned())
}

fn field<'m>(metadata: &'m Metadata, namespace: &str, name: &str) -> Option<&'m Value> {
    metadata.filter_metadata.get(namespace)?.fields.get(name)
}

fn string(value: &Value) -> &str {
    match &value.kind {
        Some(Kind::StringValue(text)) => text,
        _ => "",
    }
}
