//! Every open ext_proc stream is one `Stream` of replies that reads the gateway's messages as it is polled.
//!
//! No task and no channel per request: the HTTP/2 connection polls the replies, those poll the messages. The one place
//! where a request is finished is the end of its stream, for whatever reason: when this is dropped.

use std::mem::take;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use envoy_types::pb::envoy::service::ext_proc::v3::external_processor_server::ExternalProcessor;
use envoy_types::pb::envoy::service::ext_proc::v3::{ProcessingRequest, ProcessingResponse};
use pyo3::prelude::*;
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;
use tokio_stream::Stream;
use tonic::{Request, Response, Status, Streaming};

use crate::exchange::{Exchange, Outbox, Rules};
use crate::messages::Message;
use crate::waiting::WaitingRoom;

/// The order to close with OK every stream that is only held to count it, now and from here on.
#[derive(Default)]
pub struct LettingGo {
    given: AtomicBool,
    told: Arc<Notify>,
}

impl LettingGo {
    /// Give it.
    pub fn give(&self) {
        self.given.store(true, Ordering::Release);
        self.told.notify_waiters();
    }

    fn is_given(&self) -> bool {
        self.given.load(Ordering::Acquire)
    }
}

/// The gRPC service.
#[derive(Clone)]
pub struct Streams {
    pub room: Arc<WaitingRoom>,
    pub rules: Rules,
    pub letting_go: Arc<LettingGo>,
}

#[tonic::async_trait]
impl ExternalProcessor for Streams {
    type ProcessStream = Conversation;

    async fn process(&self, request: Request<Streaming<ProcessingRequest>>) -> Result<Response<Conversation>, Status> {
        Ok(Response::new(Conversation {
            messages: request.into_inner(),
            exchange: Exchange::new(self.room.clone(), self.rules),
            out: Outbox::default(),
            letting_go: self.letting_go.clone(),
            told: None,
        }))
    }
}

/// One request of a client.
pub struct Conversation {
    messages: Streaming<ProcessingRequest>,
    exchange: Exchange,
    out: Outbox,
    letting_go: Arc<LettingGo>,
    told: Option<Pin<Box<OwnedNotified>>>,
}

impl Stream for Conversation {
    type Item = Result<ProcessingResponse, Status>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if let Some(reply) = this.out.replies.pop_front() {
                return Poll::Ready(Some(Ok(reply)));
            }
            if this.out.end || this.may_be_let_go() {
                return Poll::Ready(None);
            }
            let went_on = match this.out.hold {
                Some(_) => ready!(this.poll_answer(context)),
                None => match this.poll_message(context) {
                    Poll::Ready(Some(outcome)) => outcome,
                    Poll::Ready(None) => return Poll::Ready(None),
                    Poll::Pending => {
                        ready!(this.poll_told(context));
                        continue;
                    }
                },
            };
            if let Err(status) = went_on {
                return Poll::Ready(Some(Err(status)));
            }
        }
    }
}

impl Conversation {
    fn may_be_let_go(&self) -> bool {
        self.letting_go.is_given() && self.exchange.may_end()
    }

    /// Read one message; None at the end of the stream, be it a broken one.
    fn poll_message(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<(), Status>>> {
        let Some(Ok(request)) = ready!(Pin::new(&mut self.messages).poll_next(context)) else {
            return Poll::Ready(None);
        };
        let received = match Message::read(request) {
            Some(message) => self.exchange.receive(message, &mut self.out),
            None => Ok(()),
        };
        Poll::Ready(Some(received.map_err(failed)))
    }

    /// Go on once the wait is over.
    fn poll_answer(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Status>> {
        let Some(hold) = &mut self.out.hold else {
            return Poll::Ready(Ok(()));
        };
        let Some(answer) = ready!(hold.poll(context)) else {
            return Poll::Ready(Err(Status::unavailable("the wait was given up")));
        };
        Poll::Ready(self.exchange.resume(answer, &mut self.out).map_err(failed))
    }

    /// Ready when the order to let go has come and concerns this stream.
    fn poll_told(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let letting_go = &self.letting_go;
        let told = self.told.get_or_insert_with(|| Box::pin(letting_go.told.clone().notified_owned()));
        let given = letting_go.is_given() || told.as_mut().poll(context).is_ready();
        if given && self.exchange.may_end() { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        self.exchange.close(take(&mut self.out.hold));
    }
}

/// A decision that raised: the gateway goes on without one, and the log says why.
fn failed(error: PyErr) -> Status {
    Python::attach(|py| error.write_unraisable(py, None));
    Status::internal("the decision failed")
}
