//! The one thread that does I/O, and its Python thread state.
//!
//! In: where to listen, rules. Out: a thread that serves until told to stop.

use std::io;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use pyo3::prelude::*;
use tokio::runtime::Builder;

use crate::control::Control;
use crate::decide::Bridge;
use crate::exchange::Rules;
use crate::server::{Server, Socket};
use crate::tls::{Files, ReloadingCertificate};
use crate::waiting::WaitingRoom;

/// glibc gives large blocks back to the system at once and asks again for the next body: up to this size it keeps them.
const KEPT_BYTES: i32 = 32 << 20;

/// Where and how to listen.
pub struct Listener {
    pub address: String,
    pub files: Option<Files>,
}

/// See the module.
pub struct IoThread {
    listener: Listener,
    room: Arc<WaitingRoom>,
    rules: Rules,
    running: Mutex<Option<JoinHandle<()>>>,
}

impl IoThread {
    /// A thread that has not started.
    pub fn new(listener: Listener, bridge: Bridge, rules: Rules) -> Self {
        let room = Arc::new(WaitingRoom::new(bridge));
        Self { listener, room, rules, running: Mutex::default() }
    }

    /// Listen, start, and return the port.
    pub fn start(&self, control: &Control) -> io::Result<u16> {
        let certificate = self.listener.files.clone().map(ReloadingCertificate::read).transpose()?;
        let listener = TcpListener::bind(&self.listener.address)?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let socket = Socket { listener, certificate };
        let server = Server::new(self.room.clone(), self.rules);
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let orders = control.open();
        keep_freed_memory();
        // Attached for life, detached for as long as it serves: every decision attaches to the same thread state.
        let serve = move || {
            Python::attach(|py| py.detach(|| runtime.block_on(server.serve(socket, orders))));
        };
        let running = thread::Builder::new().name("kvplan-io".to_owned()).spawn(serve)?;
        *self.handle() = Some(running);
        Ok(port)
    }

    /// Wait until the thread has ended.
    pub fn join(&self) {
        let running = self.handle().take();
        if let Some(running) = running {
            let _ = running.join(); // a panic has been reported by its hook
        }
    }

    fn handle(&self) -> std::sync::MutexGuard<'_, Option<JoinHandle<()>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn keep_freed_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt takes two integers and may be called at any time.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, KEPT_BYTES);
        libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT_BYTES);
    }
}
