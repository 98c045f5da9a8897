//! A request's headers as Python sees them: a read-only mapping that makes text only of what is asked for.
//!
//! A decision looks at three or four of some twenty headers; a dictionary of all of them would cost more than the
//! decision. Names are in lower case; several values of one name are joined with commas; a value comes in `raw_value`
//! or, from older gateways, in `value`; bytes that are no text are replaced.

use std::borrow::Cow;

use envoy_types::pb::envoy::config::core::v3::HeaderValue;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyList};

/// See the module.
#[pyclass(frozen, mapping)]
pub struct Headers(Vec<HeaderValue>);

impl Headers {
    /// Take the headers of a message.
    pub fn new(mut headers: Vec<HeaderValue>) -> Self {
        for header in &mut headers {
            if header.key.bytes().any(|byte| byte.is_ascii_uppercase() || !byte.is_ascii()) {
                header.key = header.key.to_lowercase();
            }
        }
        Self(headers)
    }

    /// The value of a header, by its name in lower case.
    pub fn value(&self, name: &str) -> Option<Cow<'_, str>> {
        let mut values = self.0.iter().filter(|header| header.key == name).map(text);
        let first = values.next()?;
        Some(values.fold(first, |before, value| Cow::Owned(format!("{before},{value}"))))
    }

    fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::with_capacity(self.0.len());
        for header in &self.0 {
            if !names.contains(&header.key.as_str()) {
                names.push(&header.key);
            }
        }
        names
    }
}

#[pymethods]
impl Headers {
    #[pyo3(signature = (name, default = None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.value(name) {
            Some(value) => Ok(Some(value.into_pyobject(py)?.into_any())),
            None => Ok(default),
        }
    }

    fn __getitem__(&self, name: &str) -> PyResult<Cow<'_, str>> {
        self.value(name).ok_or_else(|| PyKeyError::new_err(name.to_owned()))
    }

    fn __contains__(&self, name: &str) -> bool {
        self.0.iter().any(|header| header.key == name)
    }

    fn __len__(&self) -> usize {
        self.names().len()
    }

    fn keys(&self) -> Vec<&str> {
        self.names()
    }

    fn values(&self) -> Vec<Cow<'_, str>> {
        self.items().into_iter().map(|(_, value)| value).collect()
    }

    fn items(&self) -> Vec<(&str, Cow<'_, str>)> {
        self.names().into_iter().filter_map(|name| Some((name, self.value(name)?))).collect()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        PyList::new(py, self.names())?.try_iter()
    }
}

fn text(header: &HeaderValue) -> Cow<'_, str> {
    if header.raw_value.is_empty() { Cow::Borrowed(&header.value) } else { String::from_utf8_lossy(&header.raw_value) }
}
