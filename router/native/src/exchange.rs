//! One request's way through ext_proc: messages in, replies out.
//!
//! The same machine as `kvplan_router.transport.exchange_state`, method for method; that one is the specification,
//! and the two are tested against each other on random conversations. Must not do I/O, or keep more of a body than
//! the cap.

use std::collections::VecDeque;
use std::mem::take;
use std::sync::Arc;

use envoy_types::pb::envoy::service::ext_proc::v3::ProcessingResponse;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::decide::{Answer, Asked, Route};
use crate::headers::Headers;
use crate::messages::{Body, BodyMode, Head, Message, Modes, Phase};
use crate::replies;
use crate::waiting::{Hold, WaitingRoom};

/// What the answer itself may take after the deadline of a wait, before the gateway goes on without it.
const ANSWER_SECONDS: f64 = 0.25;

/// An engine's `usage` object is a few hundred bytes, and little follows it (`kvplan_router.transport.usage`).
const TAIL_BYTES: usize = 4096;

/// What is the same for all requests of a process.
#[derive(Clone, Copy)]
pub struct Rules {
    /// A longer body is passed on unread.
    pub body_bytes_max: usize,
    /// Whether a request counts until the gateway ends its stream; otherwise the stream ends with the request.
    pub counts_to_the_end: bool,
    /// Whether responses that would pass unseen are sampled.
    pub samples: bool,
}

/// Replies in order, and what comes after them.
#[derive(Default)]
pub struct Outbox {
    pub replies: VecDeque<ProcessingResponse>,
    /// Go on with the answer to this.
    pub hold: Option<Hold>,
    /// Close the stream with OK.
    pub end: bool,
    /// What comes after that answer.
    later: Vec<ProcessingResponse>,
}

impl Outbox {
    fn say(&mut self, reply: ProcessingResponse) {
        if self.hold.is_some() {
            self.later.push(reply);
        } else if !self.end {
            self.replies.push_back(reply);
        }
    }
}

/// The state of one ext_proc stream.
pub struct Exchange {
    room: Arc<WaitingRoom>,
    rules: Rules,
    headers: Option<Py<Headers>>,
    subset: Option<Vec<String>>,
    modes: Modes,
    answering: Phase,
    held: Vec<Body>,
    held_bytes: usize,
    begun: bool,
    wants_body: bool,
    ended: bool,
    routed: bool,
    ticket: Option<Py<PyAny>>,
    /// Who answers, as far as the decider knows.
    at: String,
    /// The end of the response, where it passes by here.
    tail: Option<Vec<u8>>,
}

impl Exchange {
    /// Before the first message.
    pub fn new(room: Arc<WaitingRoom>, rules: Rules) -> Self {
        Self {
            room,
            rules,
            headers: None,
            subset: None,
            modes: Modes::default(),
            answering: Phase::RequestHeaders,
            held: Vec::new(),
            held_bytes: 0,
            begun: false,
            wants_body: false,
            ended: false,
            routed: false,
            ticket: None,
            at: String::new(),
            tail: None,
        }
    }

    /// Reply to the next message.
    pub fn receive(&mut self, message: Message, out: &mut Outbox) -> PyResult<()> {
        match message {
            Message::RequestHeaders(head) => return self.request_headers(head, out),
            Message::RequestBody(body) => return self.request_body(body, out),
            Message::RequestTrailers => return self.request_trailers(out),
            Message::ResponseHeaders { served } => self.response_part(Phase::ResponseHeaders, served, out),
            Message::ResponseBody(body) => self.response_body(body, out),
            Message::ResponseTrailers { served } => self.response_part(Phase::ResponseTrailers, served, out),
        }
        Ok(())
    }

    /// Go on once a wait is over.
    pub fn resume(&mut self, answer: Answer, out: &mut Outbox) -> PyResult<()> {
        out.hold = None;
        self.answer(answer, out)?;
        for reply in take(&mut out.later) {
            out.say(reply);
        }
        Ok(())
    }

    /// Whether the stream may be closed with OK now and the request goes on unharmed.
    pub fn may_end(&self) -> bool {
        let full_duplex = [self.modes.request, self.modes.response].contains(&BodyMode::FullDuplex);
        self.routed && self.tail.is_none() && !full_duplex
    }

    /// The stream is over; whoever holds tokens returns them.
    pub fn close(&mut self, hold: Option<Hold>) {
        if hold.is_none() && self.ticket.is_none() {
            return;
        }
        Python::attach(|py| {
            let mut ended = hold.map_or(Ok(()), |hold| hold.abandon(py));
            if let Some(ticket) = self.ticket.take() {
                ended = ended.and(self.room.bridge.finish(py, ticket, self.tail.as_deref()));
            }
            if let Err(error) = ended {
                error.write_unraisable(py, None);
            }
            self.room.look(py);
        });
    }

    fn request_headers(&mut self, head: Head, out: &mut Outbox) -> PyResult<()> {
        if self.begun {
            out.say(replies::go_on(Phase::RequestHeaders)); // a stream is one request, whatever it says
            return Ok(());
        }
        self.begun = true;
        (self.modes, self.subset, self.ended) = (head.modes, head.subset, head.end_of_stream);
        let seen: Option<&[u8]> = if head.end_of_stream { Some(&[]) } else { None };
        let answer = Python::attach(|py| {
            self.headers = Some(Py::new(py, head.headers)?);
            self.decide(py, seen)
        })?;
        if !matches!(answer, Answer::NeedBody) {
            return self.answer(answer, out);
        }
        if self.modes.request == BodyMode::Buffered {
            (self.wants_body, self.answering) = (true, Phase::RequestBody);
            out.say(replies::go_on(Phase::RequestHeaders));
        } else if self.body_comes_unasked() {
            self.wants_body = true;
        } else {
            return self.decide_and_answer(&[], out);
        }
        Ok(())
    }

    fn body_comes_unasked(&self) -> bool {
        match self.modes.request {
            BodyMode::FullDuplex => true,
            BodyMode::Streamed => self.modes.body_before_reply,
            BodyMode::None | BodyMode::Buffered => false,
        }
    }

    fn request_body(&mut self, body: Body, out: &mut Outbox) -> PyResult<()> {
        self.ended |= body.end_of_stream;
        if !self.wants_body {
            out.say(self.passed(body));
            self.farewell(out);
            return Ok(());
        }
        let whole = body.end_of_stream || self.modes.request == BodyMode::Buffered;
        self.held_bytes += body.data.len();
        self.held.push(body);
        if whole || self.held_bytes > self.rules.body_bytes_max {
            self.decide_on_body(out)?;
        }
        Ok(())
    }

    fn decide_on_body(&mut self, out: &mut Outbox) -> PyResult<()> {
        self.wants_body = false;
        let readable = self.held_bytes <= self.rules.body_bytes_max;
        let body = if readable { self.joined() } else { Vec::new() };
        if self.answering == Phase::RequestBody {
            self.held.clear(); // the one reply answers the buffered body too
        }
        self.decide_and_answer(&body, out)
    }

    fn joined(&self) -> Vec<u8> {
        let mut whole = Vec::with_capacity(self.held_bytes);
        self.held.iter().for_each(|piece| whole.extend_from_slice(&piece.data));
        whole
    }

    fn request_trailers(&mut self, out: &mut Outbox) -> PyResult<()> {
        self.ended = true;
        if self.wants_body {
            self.decide_on_body(out)?;
        }
        out.say(replies::go_on(Phase::RequestTrailers));
        self.farewell(out);
        Ok(())
    }

    fn decide_and_answer(&mut self, body: &[u8], out: &mut Outbox) -> PyResult<()> {
        let answer = Python::attach(|py| self.decide(py, Some(body)))?;
        self.answer(answer, out)
    }

    /// Ask Python; what it decided the answer from is let go while it is attached.
    fn decide(&mut self, py: Python<'_>, body: Option<&[u8]>) -> PyResult<Answer> {
        let headers = match self.headers.take() {
            Some(headers) => headers,
            None => Py::new(py, Headers::new(Vec::new()))?,
        };
        let subset = self.subset.as_deref();
        let asked = Asked { headers: &headers, body, subset, unseen: self.unseen() };
        let answer = self.room.bridge.decide(py, &asked)?;
        if matches!(answer, Answer::NeedBody) {
            self.headers = Some(headers);
        }
        Ok(answer)
    }

    /// Whether this response would pass unseen, and may be one of the sample.
    fn unseen(&self) -> bool {
        let unseen = self.modes.response == BodyMode::None && self.answering == Phase::RequestHeaders;
        unseen && self.rules.samples
    }

    fn answer(&mut self, answer: Answer, out: &mut Outbox) -> PyResult<()> {
        match answer {
            Answer::Route(route) => self.go(route, out),
            Answer::Wait { ticket, seconds } => {
                out.say(replies::more_time(seconds + ANSWER_SECONDS));
                out.hold = Some(self.room.hold(ticket, seconds, self.unseen()));
            }
            Answer::Refuse(refusal) => {
                self.held.clear();
                out.say(replies::refuse(refusal));
            }
            Answer::NeedBody => return Err(PyTypeError::new_err("a decision on a whole request cannot be NeedBody")),
        }
        Ok(())
    }

    fn go(&mut self, route: Route, out: &mut Outbox) {
        self.routed = true;
        self.tail = (route.watch || self.modes.response != BodyMode::None).then(Vec::new);
        self.at = route.destinations.split(',').next().unwrap_or_default().to_owned();
        self.ticket = Some(route.ticket);
        out.say(replies::route(self.answering, route.destinations, route.headers, route.watch));
        for body in take(&mut self.held) {
            out.say(self.passed(body));
        }
        self.farewell(out);
    }

    fn passed(&self, body: Body) -> ProcessingResponse {
        let mode = match body.phase {
            Phase::RequestBody => self.modes.request,
            _ => self.modes.response,
        };
        match mode {
            BodyMode::FullDuplex => replies::echo(body),
            _ => replies::go_on(body.phase),
        }
    }

    /// End the stream once the request is through, where the answer is not waited for.
    fn farewell(&self, out: &mut Outbox) {
        let through = self.ended || self.modes.request == BodyMode::None;
        out.end |= !self.rules.counts_to_the_end && through && self.routed;
    }

    fn response_part(&mut self, phase: Phase, served: Option<String>, out: &mut Outbox) {
        self.told(served);
        out.say(replies::go_on(phase));
    }

    fn response_body(&mut self, body: Body, out: &mut Outbox) {
        if let Some(tail) = &mut self.tail {
            keep_end(tail, &body.data);
        }
        out.say(self.passed(body));
    }

    fn told(&mut self, served: Option<String>) {
        let (Some(address), Some(ticket)) = (served, &self.ticket) else {
            return;
        };
        if address == self.at {
            return; // no news
        }
        Python::attach(|py| {
            if let Err(error) = self.room.bridge.served(py, ticket, &address) {
                error.write_unraisable(py, None);
            }
            self.room.look(py);
        });
        self.at = address;
    }
}

fn keep_end(tail: &mut Vec<u8>, data: &[u8]) {
    tail.extend_from_slice(&data[data.len().saturating_sub(TAIL_BYTES)..]);
    let surplus = tail.len().saturating_sub(TAIL_BYTES);
    tail.drain(..surplus);
}
