//! Orders from any thread to the I/O thread.
//!
//! In: calls of `Server`'s methods. Out: a queue of [`Order`]s. Without an I/O thread every order is done at once.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

/// Told when an order has been carried out; dropped with the I/O thread.
pub type Done = oneshot::Sender<()>;

/// What the I/O thread is told.
pub enum Order {
    SetServing(bool, Done),
    Look,
    Drain { lame_duck: Duration, grace: Duration, done: Done },
    Stop,
}

/// The sending end.
#[derive(Default)]
pub struct Control(Mutex<Option<UnboundedSender<Order>>>);

impl Control {
    /// A new queue for a new I/O thread.
    pub fn open(&self) -> UnboundedReceiver<Order> {
        let (orders, received) = unbounded_channel();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(orders);
        received
    }

    /// See `Server.look`.
    pub fn look(&self) {
        self.send(Order::Look);
    }

    /// See `Server.set_serving`.
    pub fn set_serving(&self, serving: bool) {
        self.wait(|done| Order::SetServing(serving, done));
    }

    /// See `Server.drain`.
    pub fn drain(&self, lame_duck: Duration, grace: Duration) {
        self.wait(|done| Order::Drain { lame_duck, grace, done });
    }

    /// See `Server.stop`.
    pub fn stop(&self) {
        self.send(Order::Stop);
    }

    fn wait(&self, order: impl FnOnce(Done) -> Order) {
        let (done, carried_out) = oneshot::channel();
        if self.send(order(done)) {
            let _ = carried_out.blocking_recv(); // an error: the thread ended, and with it the reason to wait
        }
    }

    fn send(&self, order: Order) -> bool {
        let orders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        orders.as_ref().is_some_and(|orders| orders.send(order).is_ok())
    }
}
