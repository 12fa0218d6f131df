//! `dbdyno._engine`: the engine's types for Python. Thin: arguments in, values out; every rule lives in
//! the engine crate.

mod fakeserver;
mod histogram;
mod program;
mod run;
mod streams;

use dbdyno_engine::BadValue;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

fn value_error(error: BadValue) -> PyErr {
    PyValueError::new_err(error.0)
}

/// An integer that must fit 64 unsigned bits; Python's own message would not name it.
fn unsigned(name: &str, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    value.extract::<u64>().map_err(|error| {
        if error.is_instance_of::<pyo3::exceptions::PyOverflowError>(value.py()) {
            PyValueError::new_err(format!("{name} must be from 0 to 2**64 - 1, not {value}"))
        } else {
            error
        }
    })
}

/// Version of the compiled engine; the same as the package's.
#[pyfunction]
fn engine_version() -> &'static str {
    dbdyno_engine::VERSION
}

/// The compiled part of dbdyno: random streams, arrival schedules, histograms.
#[pymodule]
fn _engine(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<streams::PyStream>()?;
    module.add_class::<streams::PyDistribution>()?;
    module.add_class::<streams::PyArrivals>()?;
    module.add_class::<histogram::PyHistogram>()?;
    module.add_class::<program::PyProgram>()?;
    module.add_class::<program::PyProgramTerminal>()?;
    module.add_class::<run::PyRun>()?;
    module.add_class::<run::PySpan>()?;
    module.add("EngineError", module.py().get_type::<run::EngineError>())?;
    module.add("ProgramError", module.py().get_type::<program::ProgramError>())?;
    module.add_function(wrap_pyfunction!(fakeserver::serve_fake, module)?)?;
    module.add_function(wrap_pyfunction!(engine_version, module)?)
}
