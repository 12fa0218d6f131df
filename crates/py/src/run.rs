use std::time::Duration;

use dbdyno_engine::run::{Conclusion, Counts, Job, Run, Span};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::histogram::PyHistogram;
use crate::program::PyProgram;

create_exception!(
    _engine,
    EngineError,
    PyException,
    "A run of the engine could not begin; see the stub file."
);

/// A run under way on threads of its own; see the stub file.
#[pyclass(name = "Run", module = "dbdyno._engine", frozen)]
pub(crate) struct PyRun {
    run: Run,
}

#[pymethods]
impl PyRun {
    #[new]
    fn new(job: &str, program: &PyProgram) -> PyResult<Self> {
        // the job holds a password: the parser's own message could repeat it
        let job: Job = serde_json::from_str(job).map_err(|error| {
            PyValueError::new_err(format!(
                "the job is not of the engine's form (line {}, column {})",
                error.line(),
                error.column()
            ))
        })?;
        let run = Run::start(job, program.program()).map_err(PyOSError::new_err)?;
        Ok(Self { run })
    }

    fn next<'py>(&self, py: Python<'py>, timeout_s: f64) -> PyResult<Option<PySpan>> {
        let timeout = Duration::from_secs_f64(timeout_s.clamp(0.0, 3_600.0));
        let span = py.detach(|| self.run.next(timeout));
        span.map(|span| PySpan::new(py, span)).transpose()
    }

    #[getter]
    fn over(&self) -> bool {
        self.run.is_over()
    }

    #[getter]
    fn thread_ids(&self) -> Vec<i32> {
        self.run.thread_ids()
    }

    #[pyo3(signature = (*, immediate=false))]
    fn stop(&self, immediate: bool) {
        self.run.stop(immediate);
    }

    fn conclusion<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let conclusion = py.detach(|| self.run.conclusion());
        match conclusion {
            Ok(conclusion) => told(py, &conclusion),
            Err(error) => Err(EngineError::new_err((error.code, error.message, error.endpoint))),
        }
    }
}

fn told<'py>(py: Python<'py>, conclusion: &Conclusion) -> PyResult<Bound<'py, PyDict>> {
    let zero = conclusion.measure_ns as f64;
    let outages: Vec<(u64, f64, f64, &str)> = conclusion
        .outages
        .iter()
        .map(|one| {
            let at = |ns: u64| (ns as f64 - zero) / 1e9;
            (one.connection, at(one.begin_ns), at(one.end_ns), one.code.as_str())
        })
        .collect();
    let entry = PyDict::new(py);
    entry.set_item("seconds", conclusion.seconds)?;
    entry.set_item("interrupted", conclusion.interrupted)?;
    entry.set_item("fatal", conclusion.fatal.as_deref())?;
    entry.set_item("arrived", conclusion.arrived)?;
    entry.set_item("never_begun", conclusion.never_begun)?;
    entry.set_item("outages", outages)?;
    entry.set_item("notes", &conclusion.notes)?;
    entry.set_item("stuck", conclusion.stuck)?;
    Ok(entry)
}

/// The figures of a span of time; see the stub file.
#[pyclass(name = "Span", module = "dbdyno._engine", frozen, get_all)]
pub(crate) struct PySpan {
    begin_s: f64,
    seconds: f64,
    counts: Py<PyTuple>,
    errors: Py<PyDict>,
    response: Py<PyHistogram>,
    service: Py<PyHistogram>,
    lag: Py<PyHistogram>,
    kinds: Vec<(Py<PyTuple>, Py<PyHistogram>)>,
    warm: bool,
    last: bool,
    connected: usize,
    busy: f64,
}

impl PySpan {
    fn new(py: Python<'_>, span: Span) -> PyResult<Self> {
        let figures = span.figures;
        let errors = PyDict::new(py);
        for (code, count) in figures.errors {
            errors.set_item(code, count)?;
        }
        let kinds = figures
            .kinds
            .into_iter()
            .map(|kind| Ok((numbers(py, &kind.counts)?, Py::new(py, PyHistogram::of(kind.response))?)))
            .collect::<PyResult<_>>()?;
        Ok(Self {
            begin_s: span.begin_s,
            seconds: span.seconds,
            counts: numbers(py, &figures.counts)?,
            errors: errors.unbind(),
            response: Py::new(py, PyHistogram::of(figures.response))?,
            service: Py::new(py, PyHistogram::of(figures.service))?,
            lag: Py::new(py, PyHistogram::of(figures.lag))?,
            kinds,
            warm: span.warm,
            last: span.last,
            connected: span.connected,
            busy: span.busy,
        })
    }
}

/// In the order of the fields of dbdyno.model.sample.Counts.
fn numbers(py: Python<'_>, counts: &Counts) -> PyResult<Py<PyTuple>> {
    Ok(PyTuple::new(
        py,
        [
            counts.scheduled,
            counts.committed,
            counts.rolled_back,
            counts.failed,
            counts.unknown,
            counts.skipped,
            counts.unfinished,
            counts.retries,
            counts.reconnects,
            counts.reads,
            counts.writes,
            counts.others,
            counts.rows,
        ],
    )?
    .unbind())
}
