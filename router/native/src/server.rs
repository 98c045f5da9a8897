//! The gRPC server: what it listens on, how its HTTP/2 is set, and how it drains.
//!
//! In: a socket, a stream of orders. Out: nothing; it serves until told to stop.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use envoy_types::pb::envoy::service::ext_proc::v3::external_processor_server::ExternalProcessorServer;
use pyo3::prelude::*;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_stream::Stream;
use tonic::transport::server::{Connected, Router, TcpIncoming};
use tonic_health::server::HealthReporter;

use crate::control::Order;
use crate::exchange::Rules;
use crate::health::{health_service, set_serving};
use crate::stream::{LettingGo, Streams};
use crate::tls::{ReloadingCertificate, accept};
use crate::waiting::WaitingRoom;

const UNLIMITED: usize = 1 << 20;
const STREAMS_MAX: u32 = 1_000_000;
const STREAM_WINDOW: u32 = 1 << 20;
/// All requests of a gateway's worker share one connection, bodies included.
const CONNECTION_WINDOW: u32 = 16 << 20;

/// What to serve on.
pub struct Socket {
    pub listener: TcpListener,
    pub certificate: Option<ReloadingCertificate>,
}

/// See the module.
pub struct Server {
    streams: Streams,
}

impl Server {
    /// A server that has not started.
    pub fn new(room: Arc<WaitingRoom>, rules: Rules) -> Self {
        let letting_go = Arc::new(LettingGo::default());
        Self { streams: Streams { room, rules, letting_go } }
    }

    /// Serve until told to stop.
    pub async fn serve(self, socket: Socket, mut orders: UnboundedReceiver<Order>) {
        let (reporter, health) = health_service().await;
        let service = ExternalProcessorServer::new(self.streams.clone())
            .max_decoding_message_size(usize::MAX) // a buffered body arrives in one message
            .max_encoding_message_size(usize::MAX);
        let router = transport().add_service(service).add_service(health);
        let mut open = match listen(router, socket) {
            Ok(open) => Some(open),
            Err(error) => return eprintln!("kvplan-router: cannot serve: {error}"),
        };
        while let Some(order) = orders.recv().await {
            match order {
                Order::SetServing(serving, done) => {
                    set_serving(&reporter, serving).await;
                    let _ = done.send(()); // nobody waits any more
                }
                Order::Look => Python::attach(|py| self.streams.room.look(py)),
                Order::Drain { lame_duck, grace, done } => {
                    if let Some(open) = open.take() {
                        let letting_go = self.streams.letting_go.clone();
                        let drained = drain(open, reporter.clone(), letting_go, lame_duck, grace);
                        tokio::spawn(async move {
                            drained.await;
                            let _ = done.send(()); // nobody waits any more
                        });
                    }
                }
                Order::Stop => return,
            }
        }
    }
}

/// A server that listens.
struct Open {
    close: oneshot::Sender<()>,
    serving: JoinHandle<Result<(), tonic::transport::Error>>,
}

fn transport() -> tonic::transport::Server {
    tonic::transport::Server::builder()
        .initial_connection_window_size(CONNECTION_WINDOW)
        .initial_stream_window_size(STREAM_WINDOW)
        .max_concurrent_streams(STREAMS_MAX)
        // Envoy resets every stream it is done with; thousands at once are not an attack.
        .http2_max_pending_accept_reset_streams(Some(UNLIMITED))
        .http2_max_local_error_reset_streams(Some(UNLIMITED))
}

fn listen(router: Router, socket: Socket) -> io::Result<Open> {
    let listener = tokio::net::TcpListener::from_std(socket.listener)?;
    Ok(match socket.certificate {
        Some(certificate) => open(router, accept(listener, certificate)),
        None => open(router, TcpIncoming::from(listener).with_nodelay(Some(true))),
    })
}

fn open<I, C>(router: Router, incoming: I) -> Open
where
    I: Stream<Item = io::Result<C>> + Send + 'static,
    C: AsyncRead + AsyncWrite + Connected + Unpin + Send + 'static,
{
    let (close, closing) = oneshot::channel::<()>();
    let closing = async move { closing.await.unwrap_or_default() };
    let serving = tokio::spawn(router.serve_with_incoming_shutdown(incoming, closing));
    Open { close, serving }
}

/// Report NOT_SERVING, serve on while gateways notice, let go of what is only counted, say GOAWAY, wait for the rest.
async fn drain(open: Open, reporter: HealthReporter, letting_go: Arc<LettingGo>, lame_duck: Duration, grace: Duration) {
    set_serving(&reporter, false).await;
    sleep(lame_duck).await;
    letting_go.give();
    drop(open.close);
    let _ = timeout(grace, open.serving).await; // what is still open then is cut off
}
