use dbdyno_engine::Histogram;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::value_error;

/// HdrHistogram of durations in ns; see the stub file for units and errors.
#[pyclass(name = "Histogram", module = "dbdyno._engine", eq)]
#[derive(PartialEq)]
pub(crate) struct PyHistogram(Histogram);

impl PyHistogram {
    /// Around figures of the engine's.
    pub(crate) fn of(histogram: Histogram) -> Self {
        Self(histogram)
    }
}

fn not_negative(name: &str, value: i64) -> PyResult<u64> {
    u64::try_from(value).map_err(|_| PyValueError::new_err(format!("{name} must not be negative: {value}")))
}

#[pymethods]
impl PyHistogram {
    #[classattr]
    const LOWEST_NS: u64 = Histogram::LOWEST_NS;
    #[classattr]
    const HIGHEST_NS: u64 = Histogram::HIGHEST_NS;

    #[new]
    fn new() -> Self {
        Self(Histogram::new())
    }

    fn record(&mut self, ns: i64) -> PyResult<()> {
        self.0.record(not_negative("a duration", ns)?);
        Ok(())
    }

    fn record_n(&mut self, ns: i64, n: i64) -> PyResult<()> {
        self.0.record_n(not_negative("a duration", ns)?, not_negative("a count", n)?);
        Ok(())
    }

    fn merge(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) {
        if slf.is(other) {
            let copy = slf.borrow().0.clone();
            slf.borrow_mut().0.merge(&copy);
        } else {
            slf.borrow_mut().0.merge(&other.borrow().0);
        }
    }

    fn reset(&mut self) {
        self.0.reset();
    }

    fn copy(&self) -> Self {
        Self(self.0.clone())
    }

    #[getter]
    fn count(&self) -> u64 {
        self.0.count()
    }

    #[getter]
    fn saturated(&self) -> u64 {
        self.0.saturated()
    }

    #[getter]
    fn min(&self) -> u64 {
        self.0.min()
    }

    #[getter]
    fn max(&self) -> u64 {
        self.0.max()
    }

    #[getter]
    fn mean(&self) -> f64 {
        self.0.mean()
    }

    #[getter]
    fn stddev(&self) -> f64 {
        self.0.stddev()
    }

    fn percentile(&self, p: f64) -> PyResult<u64> {
        self.0.percentile(p).map_err(value_error)
    }

    fn buckets(&self) -> Vec<(u64, u64)> {
        self.0.buckets()
    }

    fn encode<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.encode())
    }

    #[staticmethod]
    fn decode(data: &[u8]) -> PyResult<Self> {
        Histogram::decode(data).map(Self).map_err(value_error)
    }

    fn __repr__(&self) -> String {
        let h = &self.0;
        format!(
            "Histogram(count={}, min={}, mean={:.0}, max={}, saturated={})",
            h.count(),
            h.min(),
            h.mean(),
            h.max(),
            h.saturated()
        )
    }
}
