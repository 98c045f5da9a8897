//! What a gateway is told.
//!
//! In: plain values. Out: `ProcessingResponse`. Mirrors the writers of `kvplan_router.transport.wire`.

use std::time::Duration;

use envoy_types::pb::envoy::config::core::v3::header_value_option::HeaderAppendAction;
use envoy_types::pb::envoy::config::core::v3::{HeaderValue, HeaderValueOption};
use envoy_types::pb::envoy::extensions::filters::http::ext_proc::v3::ProcessingMode;
use envoy_types::pb::envoy::extensions::filters::http::ext_proc::v3::processing_mode::{BodySendMode, HeaderSendMode};
use envoy_types::pb::envoy::service::ext_proc::v3::body_mutation::Mutation;
use envoy_types::pb::envoy::service::ext_proc::v3::processing_response::Response;
use envoy_types::pb::envoy::service::ext_proc::v3::{
    BodyMutation, BodyResponse, CommonResponse, HeaderMutation, HeadersResponse, ImmediateResponse, ProcessingResponse,
    StreamedBodyResponse, TrailersResponse,
};
use envoy_types::pb::envoy::r#type::v3::HttpStatus;
use envoy_types::pb::google::protobuf::value::Kind;
use envoy_types::pb::google::protobuf::{self, Struct, Value};

use crate::decide::Refusal;
use crate::messages::{Body, DESTINATION, LB_NAMESPACE, Phase};

/// The destinations, in the header and in the metadata, both the same text; empty leaves the choice to the gateway.
pub fn route(
    phase: Phase,
    destinations: String,
    mut headers: Vec<(String, String)>,
    watch: bool,
) -> ProcessingResponse {
    let mut reply = ProcessingResponse::default();
    if !destinations.is_empty() {
        reply.dynamic_metadata = Some(chosen(destinations.clone()));
        match headers.iter_mut().find(|(name, _)| name == DESTINATION) {
            Some((_, value)) => *value = destinations,
            None => headers.push((DESTINATION.to_owned(), destinations)),
        }
    }
    reply.mode_override = watch.then(watched);
    let common = CommonResponse { header_mutation: Some(set_headers(headers)), ..CommonResponse::default() };
    reply.response = Some(plain(phase, Some(common)));
    reply
}

/// Go on unchanged.
pub fn go_on(phase: Phase) -> ProcessingResponse {
    with(plain(phase, None))
}

/// One piece of a full-duplex body, unchanged.
pub fn echo(body: Body) -> ProcessingResponse {
    let piece =
        StreamedBodyResponse { body: body.data, end_of_stream: body.end_of_stream, ..StreamedBodyResponse::default() };
    let common = CommonResponse {
        body_mutation: Some(BodyMutation { mutation: Some(Mutation::StreamedResponse(piece)) }),
        ..CommonResponse::default()
    };
    with(plain(body.phase, Some(common)))
}

/// An answer to the client.
pub fn refuse(refusal: Refusal) -> ProcessingResponse {
    let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    if refusal.retry_after_seconds > 0 {
        let seconds = refusal.retry_after_seconds.to_string();
        headers.push(("retry-after".to_owned(), seconds));
    }
    with(Response::ImmediateResponse(ImmediateResponse {
        status: Some(HttpStatus { code: refusal.status }),
        headers: Some(set_headers(headers)),
        body: refusal.body,
        details: format!("kvplan_{}", refusal.status),
        ..ImmediateResponse::default()
    }))
}

/// Ask the gateway to wait longer for the reply; it takes one such request per message, of 1 ms or more.
pub fn more_time(seconds: f64) -> ProcessingResponse {
    let milliseconds = (seconds * 1000.0).round_ties_even().max(1.0);
    let time = Duration::from_millis(milliseconds as u64);
    ProcessingResponse {
        override_message_timeout: Some(protobuf::Duration {
            seconds: time.as_secs() as i64,
            nanos: time.subsec_nanos() as i32,
        }),
        ..ProcessingResponse::default()
    }
}

fn with(response: Response) -> ProcessingResponse {
    ProcessingResponse { response: Some(response), ..ProcessingResponse::default() }
}

fn plain(phase: Phase, response: Option<CommonResponse>) -> Response {
    match phase {
        Phase::RequestHeaders => Response::RequestHeaders(HeadersResponse { response }),
        Phase::RequestBody => Response::RequestBody(BodyResponse { response }),
        Phase::RequestTrailers => Response::RequestTrailers(TrailersResponse::default()),
        Phase::ResponseHeaders => Response::ResponseHeaders(HeadersResponse { response }),
        Phase::ResponseBody => Response::ResponseBody(BodyResponse { response }),
        Phase::ResponseTrailers => Response::ResponseTrailers(TrailersResponse::default()),
    }
}

fn set_headers(headers: Vec<(String, String)>) -> HeaderMutation {
    HeaderMutation { set_headers: headers.into_iter().map(overwrite).collect(), ..HeaderMutation::default() }
}

fn overwrite((key, value): (String, String)) -> HeaderValueOption {
    HeaderValueOption {
        header: Some(HeaderValue { key, raw_value: value.into_bytes(), ..HeaderValue::default() }),
        append_action: HeaderAppendAction::OverwriteIfExistsOrAdd.into(),
        ..HeaderValueOption::default()
    }
}

fn chosen(destinations: String) -> Struct {
    one(LB_NAMESPACE, Kind::StructValue(one(DESTINATION, Kind::StringValue(destinations))))
}

fn one(name: &str, kind: Kind) -> Struct {
    Struct { fields: [(name.to_owned(), Value { kind: Some(kind) })].into() }
}

/// Let this response's body pass by here.
fn watched() -> ProcessingMode {
    ProcessingMode {
        request_header_mode: HeaderSendMode::Send.into(),
        response_header_mode: HeaderSendMode::Send.into(),
        response_body_mode: BodySendMode::Streamed.into(),
        request_trailer_mode: HeaderSendMode::Skip.into(),
        response_trailer_mode: HeaderSendMode::Send.into(),
        ..ProcessingMode::default()
    }
}
