use pyo3::prelude::*;

/// See the stub file.
#[pyfunction]
pub(crate) fn serve_fake(py: Python<'_>, words: Vec<String>) -> u8 {
    py.detach(|| ::fakeserver::serve(words))
}
