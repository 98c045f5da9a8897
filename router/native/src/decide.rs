//! The bridge to Python: the only module that calls it.
//!
//! In: what a decision needs of a request. Out: [`Answer`]. The Python object has one method per event, all synchronous
//! and short: `decide(headers, body, subset)`, `served(ticket, address)`, `finish(ticket, tail)`,
//! `abandon(ticket)`, `release()`, `now()`, `sampled()` and `refusal(status, reason)`. Decisions come back as the
//! types of `kvplan_router.core.values`, and are told apart by their class.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple, PyType};

use crate::headers::Headers;

/// Send the request there.
pub struct Route {
    /// `ip:port[,ip:port…]`, best first; empty leaves the choice to the gateway.
    pub destinations: String,
    /// To set on the request.
    pub headers: Vec<(String, String)>,
    /// To finish when the request is over.
    pub ticket: Py<PyAny>,
    /// Ask the gateway to stream this response's body here.
    pub watch: bool,
}

/// Answer the client at once.
pub struct Refusal {
    pub status: i32,
    pub retry_after_seconds: u64,
    pub body: Vec<u8>,
}

/// What Python decided.
pub enum Answer {
    Route(Route),
    Refuse(Refusal),
    /// Hold it until the ticket is released, at the deadline at the latest.
    Wait {
        ticket: Py<PyAny>,
        seconds: f64,
    },
    NeedBody,
}

/// A request as a decision sees it.
pub struct Asked<'a> {
    pub headers: &'a Py<Headers>,
    /// None: not seen yet; empty: there is none, or it is over the cap.
    pub body: Option<&'a [u8]>,
    pub subset: Option<&'a [String]>,
    /// Whether the response would pass unseen, so that the sample has to be drawn.
    pub unseen: bool,
}

/// The Python object and the classes that its decisions have.
pub struct Bridge {
    decide: Py<PyAny>,
    served: Py<PyAny>,
    finish: Py<PyAny>,
    abandon: Py<PyAny>,
    release: Py<PyAny>,
    now: Py<PyAny>,
    sampled: Py<PyAny>,
    refusal: Py<PyAny>,
    pick: Py<PyType>,
    pass_through: Py<PyType>,
    shed: Py<PyType>,
    wait: Py<PyType>,
    need_body: Py<PyType>,
}

impl Bridge {
    /// Look up every method once.
    pub fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let values = object.py().import("kvplan_router.core.values")?;
        let method = |name: &str| object.getattr(name).map(Bound::unbind);
        let class = |name: &str| -> PyResult<Py<PyType>> { Ok(values.getattr(name)?.cast_into::<PyType>()?.unbind()) };
        Ok(Self {
            decide: method("decide")?,
            served: method("served")?,
            finish: method("finish")?,
            abandon: method("abandon")?,
            release: method("release")?,
            now: method("now")?,
            sampled: method("sampled")?,
            refusal: method("refusal")?,
            pick: class("Pick")?,
            pass_through: class("PassThrough")?,
            shed: class("Shed")?,
            wait: class("Wait")?,
            need_body: class("NeedBody")?,
        })
    }

    /// Where this request goes.
    pub fn decide(&self, py: Python<'_>, asked: &Asked<'_>) -> PyResult<Answer> {
        let body = asked.body.map(|body| PyBytes::new(py, body));
        let subset = asked.subset.map(|subset| PyTuple::new(py, subset)).transpose()?;
        let decision = self.decide.bind(py).call1((asked.headers, body, subset))?;
        self.read(&decision, asked.unseen)
    }

    /// The gateway says which `ip:port` really answers.
    pub fn served(&self, py: Python<'_>, ticket: &Py<PyAny>, address: &str) -> PyResult<()> {
        self.served.bind(py).call1((ticket, address)).map(drop)
    }

    /// A picked request is over; `tail` is the end of its response, where that was seen.
    pub fn finish(&self, py: Python<'_>, ticket: Py<PyAny>, tail: Option<&[u8]>) -> PyResult<()> {
        let tail = tail.map(|tail| PyBytes::new(py, tail));
        self.finish.bind(py).call1((ticket, tail)).map(drop)
    }

    /// The client of a waiting request left.
    pub fn abandon(&self, py: Python<'_>, ticket: &Py<PyAny>) -> PyResult<()> {
        self.abandon.bind(py).call1((ticket,)).map(drop)
    }

    /// Waiting requests that can be answered now: their tickets and decisions.
    pub fn release<'py>(&self, py: Python<'py>) -> PyResult<Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
        let released = self.release.bind(py).call0()?;
        released.try_iter()?.map(|item| item?.extract()).collect()
    }

    /// A decision as Python made it.
    pub fn read(&self, decision: &Bound<'_, PyAny>, unseen: bool) -> PyResult<Answer> {
        let py = decision.py();
        let class = decision.get_type();
        let field = |number: usize| decision.cast::<PyTuple>()?.get_item(number);
        if class.is(&self.pick) {
            let destinations = join(&field(0)?)?;
            self.route(py, destinations, &field(1)?, field(3)?, unseen)
        } else if class.is(&self.pass_through) {
            self.route(py, String::new(), &field(0)?, field(1)?, unseen)
        } else if class.is(&self.need_body) {
            Ok(Answer::NeedBody)
        } else if class.is(&self.wait) {
            let seconds = field(1)?.extract::<f64>()? - self.now.bind(py).call0()?.extract::<f64>()?;
            Ok(Answer::Wait { ticket: field(0)?.unbind(), seconds })
        } else if class.is(&self.shed) {
            self.refuse(py, &field(0)?, &field(1)?, &field(2)?)
        } else {
            Err(PyTypeError::new_err(format!("a decision cannot be a {class}")))
        }
    }

    fn route(
        &self,
        py: Python<'_>,
        destinations: String,
        headers: &Bound<'_, PyAny>,
        ticket: Bound<'_, PyAny>,
        unseen: bool,
    ) -> PyResult<Answer> {
        let watch = unseen && self.sampled.bind(py).call0()?.is_truthy()?;
        Ok(Answer::Route(Route { destinations, headers: pairs(headers)?, ticket: ticket.unbind(), watch }))
    }

    fn refuse(
        &self,
        py: Python<'_>,
        status: &Bound<'_, PyAny>,
        retry_after: &Bound<'_, PyAny>,
        reason: &Bound<'_, PyAny>,
    ) -> PyResult<Answer> {
        let body = self.refusal.bind(py).call1((status, reason))?;
        Ok(Answer::Refuse(Refusal {
            status: status.extract()?,
            retry_after_seconds: retry_after.extract()?,
            body: body.extract()?,
        }))
    }
}

fn join(destinations: &Bound<'_, PyAny>) -> PyResult<String> {
    let mut joined = String::with_capacity(64);
    for destination in destinations.cast::<PyTuple>()? {
        if !joined.is_empty() {
            joined.push(',');
        }
        joined.push_str(destination.cast::<PyString>()?.to_str()?);
    }
    Ok(joined)
}

fn pairs(headers: &Bound<'_, PyAny>) -> PyResult<Vec<(String, String)>> {
    let headers = headers.cast::<PyDict>()?;
    headers.iter().map(|(name, value)| Ok((name.extract()?, value.extract()?))).collect()
}
