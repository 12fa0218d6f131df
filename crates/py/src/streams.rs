use dbdyno_engine::{Arrivals, Distribution, Kind, Parameters, Spacing, Stream};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::{unsigned, value_error};

/// A distribution of sysbench's `--rand-type`; see the stub file.
#[pyclass(name = "Distribution", module = "dbdyno._engine", frozen, eq)]
#[derive(PartialEq)]
pub(crate) struct PyDistribution(Distribution);

#[pymethods]
impl PyDistribution {
    #[new]
    #[pyo3(signature = (kind, *, spec_iter=12, spec_pct=1, spec_res=75, pareto_h=0.2, zipfian_exp=0.8))]
    fn new(
        kind: &str,
        spec_iter: i64,
        spec_pct: i64,
        spec_res: i64,
        pareto_h: f64,
        zipfian_exp: f64,
    ) -> PyResult<Self> {
        let narrow = |name: &str, value: i64| {
            u32::try_from(value).map_err(|_| {
                pyo3::exceptions::PyValueError::new_err(format!("{name} is out of range: {value}"))
            })
        };
        let parameters = Parameters {
            spec_iter: narrow("spec_iter", spec_iter)?,
            spec_pct: narrow("spec_pct", spec_pct)?,
            spec_res: narrow("spec_res", spec_res)?,
            pareto_h,
            zipfian_exp,
        };
        let kind = Kind::parse(kind).map_err(value_error)?;
        Distribution::new(kind, parameters).map(Self).map_err(value_error)
    }

    #[getter]
    fn kind(&self) -> String {
        self.0.kind().to_string()
    }

    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (p, found) = (self.0.parameters(), PyDict::new(py));
        found.set_item("spec_iter", p.spec_iter)?;
        found.set_item("spec_pct", p.spec_pct)?;
        found.set_item("spec_res", p.spec_res)?;
        found.set_item("pareto_h", p.pareto_h)?;
        found.set_item("zipfian_exp", p.zipfian_exp)?;
        Ok(found)
    }

    fn __repr__(&self) -> String {
        let p = self.0.parameters();
        format!(
            "Distribution('{}', spec_iter={}, spec_pct={}, spec_res={}, pareto_h={:?}, zipfian_exp={:?})",
            self.0.kind(),
            p.spec_iter,
            p.spec_pct,
            p.spec_res,
            p.pareto_h,
            p.zipfian_exp
        )
    }
}

/// One transaction's random values for one purpose; see the stub file.
#[pyclass(name = "Stream", module = "dbdyno._engine")]
pub(crate) struct PyStream(Stream);

#[pymethods]
impl PyStream {
    #[new]
    #[pyo3(signature = (seed, purpose, terminal, transaction, distribution=None))]
    fn new(
        seed: &Bound<'_, PyAny>,
        purpose: &str,
        terminal: &Bound<'_, PyAny>,
        transaction: &Bound<'_, PyAny>,
        distribution: Option<PyRef<'_, PyDistribution>>,
    ) -> PyResult<Self> {
        let (seed, terminal, transaction) =
            (unsigned("seed", seed)?, unsigned("terminal", terminal)?, unsigned("transaction", transaction)?);
        let distribution = distribution.map_or_else(Distribution::default, |given| given.0);
        Ok(Self(Stream::new(seed, purpose, terminal, transaction, distribution)))
    }

    fn reseat(&mut self, terminal: &Bound<'_, PyAny>, transaction: &Bound<'_, PyAny>) -> PyResult<()> {
        self.0.reseat(unsigned("terminal", terminal)?, unsigned("transaction", transaction)?);
        Ok(())
    }

    fn rewind(&mut self) {
        self.0.rewind();
    }

    fn uniform(&mut self, a: i64, b: i64) -> PyResult<i64> {
        self.0.uniform(a, b).map_err(value_error)
    }

    fn pick(&mut self, a: i64, b: i64) -> PyResult<i64> {
        self.0.pick(a, b).map_err(value_error)
    }

    fn real(&mut self) -> f64 {
        self.0.real()
    }

    fn chance(&mut self, p: f64) -> PyResult<bool> {
        self.0.chance(p).map_err(value_error)
    }

    fn exponential(&mut self, mean: f64) -> PyResult<f64> {
        self.0.exponential(mean).map_err(value_error)
    }

    // A and C keep the letter case of the specification: they are keyword names in Python.
    #[allow(non_snake_case)]
    fn nurand(&mut self, A: i64, x: i64, y: i64, C: i64) -> PyResult<i64> {
        self.0.nurand(A, x, y, C).map_err(value_error)
    }

    fn text(&mut self, lo: i64, hi: i64, alphabet: &str) -> PyResult<String> {
        self.0.text(lo, hi, alphabet).map_err(value_error)
    }

    fn template(&mut self, pattern: &str) -> String {
        self.0.template(pattern)
    }

    fn permute(&mut self, n: i64, i: i64) -> PyResult<i64> {
        self.0.permute(n, i).map_err(value_error)
    }

    fn at(&self, table: &str, unit: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self(self.0.at(table, unsigned("unit", unit)?)))
    }
}

/// The seeded schedule of an open loop; see the stub file.
#[pyclass(name = "Arrivals", module = "dbdyno._engine")]
pub(crate) struct PyArrivals(Arrivals);

#[pymethods]
impl PyArrivals {
    #[new]
    #[pyo3(signature = (seed, rate_per_s, kind="poisson"))]
    fn new(seed: &Bound<'_, PyAny>, rate_per_s: f64, kind: &str) -> PyResult<Self> {
        let spacing = Spacing::parse(kind).map_err(value_error)?;
        Arrivals::new(unsigned("seed", seed)?, rate_per_s, spacing).map(Self).map_err(value_error)
    }

    fn next_ns(&mut self) -> u64 {
        self.0.next_ns()
    }
}
