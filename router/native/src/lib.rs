//! The fast transport of the kvplan router: gRPC, HTTP/2, TLS, health and bodies here, every decision in Python.
//!
//! In: an address, rules, and a Python object with one method per event (see [`decide`]). Out: one class,
//! `Server`, which `kvplan_router.transport.native` adapts to the router's transport interface. Must not decide
//! anything: which reply answers which message is specified by `kvplan_router.transport.exchange_state`.
//!
//! One thread does all I/O on a current-thread runtime and keeps one Python thread state for its whole life:
//! attaching from a thread that has none would create and destroy one per call.

mod control;
mod decide;
mod exchange;
mod headers;
mod health;
mod io_thread;
mod messages;
mod replies;
mod server;
mod stream;
mod tls;
mod waiting;

use std::path::PathBuf;
use std::time::Duration;

use pyo3::prelude::*;

use crate::control::Control;
use crate::decide::Bridge;
use crate::exchange::Rules;
use crate::headers::Headers;
use crate::io_thread::{IoThread, Listener};
use crate::tls::Files;

/// A server of ext_proc and of the gRPC health protocol on a thread of its own.
///
/// Every method may be called from any thread; those that wait let other Python threads run.
#[pyclass(frozen)]
struct Server {
    control: Control,
    thread: IoThread,
}

#[pymethods]
impl Server {
    /// Prepare a server; nothing listens yet.
    #[new]
    #[pyo3(signature = (bridge, address, *, tls, body_bytes_max, counts_to_the_end, samples))]
    fn new(
        bridge: &Bound<'_, PyAny>,
        address: String,
        tls: Option<(PathBuf, PathBuf)>,
        body_bytes_max: usize,
        counts_to_the_end: bool,
        samples: bool,
    ) -> PyResult<Self> {
        let rules = Rules { body_bytes_max, counts_to_the_end, samples };
        let files = tls.map(|(certificate, key)| Files { certificate, key });
        let control = Control::default();
        let listener = Listener { address, files };
        let thread = IoThread::new(listener, Bridge::new(bridge)?, rules);
        Ok(Self { control, thread })
    }

    /// Listen, NOT_SERVING; returns the port. Raises OSError: the address or the certificate cannot be used.
    fn start(&self, py: Python<'_>) -> PyResult<u16> {
        py.detach(|| self.thread.start(&self.control)).map_err(PyErr::from)
    }

    /// What the health services answer from now on; waits until they do.
    fn set_serving(&self, py: Python<'_>, serving: bool) {
        py.detach(|| self.control.set_serving(serving));
    }

    /// There may be room for requests that wait; does not wait.
    fn look(&self) {
        self.control.look();
    }

    /// Report NOT_SERVING, serve on, let go, say GOAWAY, and wait for what is open. Seconds.
    fn drain(&self, py: Python<'_>, lame_duck: f64, grace: f64) {
        let (lame_duck, grace) = (seconds(lame_duck), seconds(grace));
        py.detach(|| self.control.drain(lame_duck, grace));
    }

    /// Close at once and end the thread. Idempotent.
    fn stop(&self, py: Python<'_>) {
        py.detach(|| {
            self.control.stop();
            self.thread.join();
        });
    }
}

fn seconds(value: f64) -> Duration {
    Duration::try_from_secs_f64(value).unwrap_or(Duration::ZERO)
}

/// The module.
#[pymodule]
fn kvplan_router_native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Server>()?;
    module.add_class::<Headers>()
}
