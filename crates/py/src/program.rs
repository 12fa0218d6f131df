use std::sync::Arc;

use dbdyno_engine::program::{Action, Class, Event, Failure, Param, Program, Texts, Values, Vm, Want};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDateTime, PyDelta, PyDict, PyList, PyTuple, PyTzInfo};

use crate::{unsigned, value_error};

create_exception!(_engine, ProgramError, PyException, "A compiled workload failed; see the stub file.");

/// A compiled workload; see the stub file.
#[pyclass(name = "Program", module = "dbdyno._engine", frozen)]
pub(crate) struct PyProgram {
    program: Arc<Program>,
    bytes: Vec<u8>,
}

impl PyProgram {
    /// The program itself, for a run.
    pub(crate) fn program(&self) -> Arc<Program> {
        Arc::clone(&self.program)
    }
}

#[pymethods]
impl PyProgram {
    #[new]
    fn new(data: &[u8]) -> PyResult<Self> {
        Ok(Self { program: Arc::new(Program::load(data).map_err(value_error)?), bytes: data.to_vec() })
    }

    #[getter]
    fn name(&self) -> &str {
        &self.program.name
    }

    #[getter]
    fn hash(&self) -> &str {
        &self.program.hash
    }

    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.bytes)
    }

    #[getter]
    fn transactions<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        self.program
            .transactions
            .iter()
            .map(|kind| {
                let entry = PyDict::new(py);
                entry.set_item("name", &kind.name)?;
                entry.set_item("weight", kind.weight)?;
                entry.set_item("upto", kind.upto)?;
                entry.set_item("keying_s", kind.keying_s)?;
                entry.set_item("think_s", kind.think_s)?;
                entry.set_item("writes", kind.writes)?;
                Ok(entry)
            })
            .collect()
    }

    #[getter]
    fn setup(&self) -> Vec<String> {
        self.program.setup.clone()
    }

    #[getter]
    fn has_start(&self) -> bool {
        self.program.has_start()
    }

    fn texts(&self) -> Vec<(String, &'static str, u32)> {
        described(&self.program.texts())
    }

    fn terminal(&self, seed: &Bound<'_, PyAny>, number: &Bound<'_, PyAny>) -> PyResult<PyProgramTerminal> {
        let vm = Vm::new(&self.program, unsigned("seed", seed)?, unsigned("number", number)?);
        Ok(PyProgramTerminal { program: Arc::clone(&self.program), texts: self.program.texts(), vm })
    }

    #[pyo3(signature = (transaction, seed, terminal, number, db))]
    fn run_once<'py>(
        &self,
        transaction: &str,
        seed: &Bound<'py, PyAny>,
        terminal: &Bound<'py, PyAny>,
        number: &Bound<'py, PyAny>,
        db: &Bound<'py, PyAny>,
    ) -> PyResult<&'static str> {
        self.terminal(seed, terminal)?.run(db.py(), transaction, number, db)
    }
}

fn described(texts: &Texts) -> Vec<(String, &'static str, u32)> {
    (0..texts.len() as u32)
        .map(|id| texts.get(id))
        .map(|text| (text.sql.clone(), text.kind.name(), text.parameters))
        .collect()
}

/// One terminal's machine, driven by a Python `db`; see the stub file.
#[pyclass(name = "ProgramTerminal", module = "dbdyno._engine")]
pub(crate) struct PyProgramTerminal {
    program: Arc<Program>,
    texts: Texts,
    vm: Vm,
}

#[pymethods]
impl PyProgramTerminal {
    fn start(&mut self, py: Python<'_>, db: &Bound<'_, PyAny>) -> PyResult<&'static str> {
        let now_us = now_us(db)?;
        if !self.vm.begin_start(&self.program, now_us) {
            return Ok("committed");
        }
        self.drive(py, db)
    }

    fn run(
        &mut self,
        py: Python<'_>,
        transaction: &str,
        number: &Bound<'_, PyAny>,
        db: &Bound<'_, PyAny>,
    ) -> PyResult<&'static str> {
        let kind = self
            .program
            .transactions
            .iter()
            .position(|kind| kind.name == transaction)
            .ok_or_else(|| PyKeyError::new_err(transaction.to_owned()))?;
        let (terminal, now_us) = (self.vm.terminal(), now_us(db)?);
        self.vm.begin(&self.program, kind, terminal, unsigned("number", number)?, now_us);
        self.drive(py, db)
    }

    #[pyo3(signature = (db, tries=None))]
    fn retry(&mut self, py: Python<'_>, db: &Bound<'_, PyAny>, tries: Option<u32>) -> PyResult<&'static str> {
        let values = tries.map_or(Values::Same, |tries| Values::New { tries });
        self.vm.retry(&self.program, values);
        self.drive(py, db)
    }

    fn restore_state(&mut self) {
        self.vm.restore_state();
    }

    #[getter]
    fn acks(&self) -> &str {
        self.vm.acks()
    }

    #[getter]
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let found = PyDict::new(py);
        for (index, name) in self.program.state_names().enumerate() {
            if let Some(value) = self.vm.state_value(index) {
                found.set_item(name, to_python(py, value)?)?;
            }
        }
        Ok(found)
    }

    fn texts(&self) -> Vec<(String, &'static str, u32)> {
        described(&self.texts)
    }
}

impl PyProgramTerminal {
    fn drive<'py>(&mut self, py: Python<'py>, db: &Bound<'py, PyAny>) -> PyResult<&'static str> {
        let mut event = Event::Start;
        // a pipeline is sequential here, as it is in the DB-API drive
        let mut pipeline: Option<u64> = None;
        loop {
            let action = self.vm.resume(&self.program, &mut self.texts, event);
            event = match action {
                Action::Statement { text, want, columns } => {
                    let answer = self.statement(py, db, text, want, columns)?;
                    match (&mut pipeline, answer) {
                        (Some(total), Event::Matched(n)) => {
                            *total += n;
                            Event::Done
                        }
                        (Some(_), Event::Rows(rows @ 2..)) if want == Want::Row => {
                            Event::SecondRow { text, rows, place: self.vm.place() }
                        }
                        (Some(_), _) => Event::Done,
                        (None, answer) => answer,
                    }
                }
                Action::Begin { .. } => {
                    db.call_method0("begin")?;
                    Event::Done
                }
                Action::Commit => {
                    db.call_method0("commit")?;
                    Event::Done
                }
                Action::PipelineBegin => {
                    pipeline = Some(0);
                    Event::Done
                }
                Action::PipelineEnd => Event::Matched(pipeline.take().unwrap_or(0)),
                Action::Done => return Ok("committed"),
                Action::Rollback => return Ok("rolled back"),
                Action::Error(failure) => return Err(program_error(py, &failure)?),
            };
        }
    }

    fn statement<'py>(
        &mut self,
        py: Python<'py>,
        db: &Bound<'py, PyAny>,
        text: u32,
        want: Want,
        columns: u64,
    ) -> PyResult<Event> {
        let sql = &self.texts.get(text).sql;
        let mut arguments = vec![sql.into_pyobject(py)?.into_any()];
        for param in self.vm.params(&self.program) {
            arguments.push(to_python(py, param)?);
        }
        let arguments = PyTuple::new(py, arguments)?;
        if want == Want::Matched {
            let matched: i64 = db.call_method1("execute", arguments)?.extract()?;
            return Ok(Event::Matched(matched.max(0) as u64));
        }
        let rows = db.call_method1("query", arguments)?;
        let rows = rows.cast::<PyList>()?;
        if columns != 0 {
            let mut writer = self.vm.rows();
            for row in rows.iter() {
                for (n, column) in row.cast::<PyTuple>()?.iter().enumerate() {
                    if columns >> n.min(63) & 1 == 0 {
                        writer.skip();
                    } else {
                        from_python(&mut writer, &column)?;
                    }
                }
                writer.end_row();
            }
        }
        Ok(Event::Rows(rows.len() as u64))
    }
}

fn program_error(py: Python<'_>, failure: &Failure) -> PyResult<PyErr> {
    let error = ProgramError::new_err(failure.to_string());
    let value = error.value(py);
    value.setattr("kind", failure.class.name())?;
    value.setattr("fatal_use", failure.class == Class::WrongUse)?;
    value.setattr("file", &failure.file)?;
    value.setattr("line", failure.line)?;
    value.setattr("sentence", &failure.message)?;
    Ok(error)
}

/// Microseconds since 1970 of a `datetime`, without the rounding of `timestamp()`.
fn microseconds(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    let py = value.py();
    let epoch = PyDateTime::new(py, 1970, 1, 1, 0, 0, 0, 0, Some(&PyTzInfo::utc(py)?.to_owned()))?;
    let aware = if value.getattr("tzinfo")?.is_none() {
        let keywords = PyDict::new(py);
        keywords.set_item("tzinfo", PyTzInfo::utc(py)?)?;
        value.call_method("replace", (), Some(&keywords))?
    } else {
        value.clone()
    };
    let step = PyDelta::new(py, 0, 0, 1, false)?;
    aware.sub(epoch)?.floor_div(step)?.extract()
}

fn now_us(db: &Bound<'_, PyAny>) -> PyResult<i64> {
    microseconds(&db.call_method0("now")?)
}

fn to_python<'py>(py: Python<'py>, value: Param<'_>) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Param::Null => py.None().into_bound(py),
        Param::Bool(b) => b.into_pyobject(py)?.to_owned().into_any(),
        Param::Int(i) => i.into_pyobject(py)?.into_any(),
        Param::Float(x) => x.into_pyobject(py)?.into_any(),
        Param::Str(text) => text.into_pyobject(py)?.into_any(),
        Param::Bytes(bytes) => PyBytes::new(py, bytes).into_any(),
        Param::Decimal(decimal) => {
            let text = format!("{}e-{}", decimal.unscaled, decimal.scale);
            py.import("decimal")?.getattr("Decimal")?.call1((text,))?
        }
        Param::Timestamp(us) => {
            let epoch = PyDateTime::new(py, 1970, 1, 1, 0, 0, 0, 0, Some(&PyTzInfo::utc(py)?.to_owned()))?;
            let (days, rest) = (us.div_euclid(86_400_000_000), us.rem_euclid(86_400_000_000));
            let (seconds, fraction) = (rest / 1_000_000, rest % 1_000_000);
            epoch.add(PyDelta::new(py, days as i32, seconds as i32, fraction as i32, false)?)?
        }
    })
}

fn from_python(writer: &mut dbdyno_engine::program::RowWriter<'_>, value: &Bound<'_, PyAny>) -> PyResult<()> {
    if value.is_none() {
        writer.null();
    } else if let Ok(b) = value.extract::<bool>() {
        writer.bool(b);
    } else if value.is_instance_of::<pyo3::types::PyInt>() {
        writer.int(value.extract()?);
    } else if value.is_instance_of::<pyo3::types::PyFloat>() {
        writer.float(value.extract()?);
    } else if let Ok(text) = value.extract::<std::borrow::Cow<'_, str>>() {
        writer.text(&text);
    } else if let Ok(bytes) = value.cast::<PyBytes>() {
        writer.bytes(bytes.as_bytes());
    } else if value.hasattr("as_tuple")? {
        writer.decimal_text(&value.str()?.to_cow()?);
    } else if value.hasattr("tzinfo")? {
        writer.timestamp(microseconds(value)?);
    } else {
        return Err(PyValueError::new_err(format!("a column of type {}", value.get_type().name()?)));
    }
    Ok(())
}
