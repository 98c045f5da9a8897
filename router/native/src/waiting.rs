//! Requests that wait for room: who is woken, and when.
//!
//! In: tickets of waiting requests; the hint that there may be room. Out: an answer per ticket. Must not decide who
//! is released: that is Python's. Mirrors `kvplan_router.transport.waiting`.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use pyo3::prelude::*;
use tokio::sync::oneshot;
use tokio::time::{Sleep, sleep};

use crate::decide::{Answer, Bridge};

/// A timer may fire early by a tick; a look before the deadline would be the last one.
const SLACK: Duration = Duration::from_millis(2);

struct Waiter {
    unseen: bool,
    answer: oneshot::Sender<Answer>,
}

/// Everybody who waits, by the address of the ticket: a ticket is one object for as long as it waits.
pub struct WaitingRoom {
    /// To Python.
    pub bridge: Bridge,
    waiting: Mutex<HashMap<usize, Waiter>>,
}

impl WaitingRoom {
    /// An empty one.
    pub fn new(bridge: Bridge) -> Self {
        Self { bridge, waiting: Mutex::default() }
    }

    /// Answer whoever can be answered now; cheap when nobody waits. Due whenever there may be room.
    pub fn look(&self, py: Python<'_>) {
        if self.lock().is_empty() {
            return;
        }
        match self.bridge.release(py) {
            Ok(released) => released.iter().for_each(|(ticket, decision)| self.answer(ticket, decision)),
            Err(error) => error.write_unraisable(py, None),
        }
    }

    /// Wait for the answer to a ticket.
    pub fn hold(self: &Arc<Self>, ticket: Py<PyAny>, seconds: f64, unseen: bool) -> Hold {
        let (answer, answered) = oneshot::channel();
        self.lock().insert(name(&ticket), Waiter { unseen, answer });
        let until = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::ZERO) + SLACK;
        Hold { room: self.clone(), ticket, answered, alarm: Some(Box::pin(sleep(until))) }
    }

    fn answer(&self, ticket: &Bound<'_, PyAny>, decision: &Bound<'_, PyAny>) {
        let Some(waiter) = self.lock().remove(&(ticket.as_ptr() as usize)) else {
            return;
        };
        match self.bridge.read(decision, waiter.unseen) {
            Ok(answer) => drop(waiter.answer.send(answer)),
            Err(error) => error.write_unraisable(ticket.py(), None),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<usize, Waiter>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One waiting request.
pub struct Hold {
    room: Arc<WaitingRoom>,
    ticket: Py<PyAny>,
    answered: oneshot::Receiver<Answer>,
    alarm: Option<Pin<Box<Sleep>>>,
}

impl Hold {
    /// The answer; None if there will be none.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Answer>> {
        if let Some(alarm) = &mut self.alarm
            && alarm.as_mut().poll(context).is_ready()
        {
            self.alarm = None;
            Python::attach(|py| self.room.look(py));
        }
        Pin::new(&mut self.answered).poll(context).map(Result::ok)
    }

    /// Its client left.
    pub fn abandon(&self, py: Python<'_>) -> PyResult<()> {
        self.room.lock().remove(&name(&self.ticket));
        self.room.bridge.abandon(py, &self.ticket)
    }
}

fn name(ticket: &Py<PyAny>) -> usize {
    ticket.as_ptr() as usize
}
