//! Programs: the second life of a workload's transactions.
//!
//! A compiler (in Python) turns the functions of a workload into a program; this module reads it, verifies
//! it and runs it. There is no input or output here: the machine asks the drive for what it needs.
//!
//! # For the author of a drive
//!
//! Once a run: `Program::load(bytes)`, shared by all threads. Once an event loop: `program.texts()`, the table
//! of SQL texts by number; a text's number is stable, so a connection keeps its prepared statements by it. Once
//! a connection (terminal): `Vm::new(&program, seed, terminal)`.
//!
//! A transaction is `vm.begin(&program, kind, seat, number, now_us)`, then `vm.resume(&program, &mut texts,
//! Event::Start)`, then an [`Event`] for each [`Action`]:
//!
//! | action | what the drive does | event |
//! |---|---|---|
//! | `Statement { text, want, columns }` | sends `texts.get(text)` with `vm.params(&program)`; passes rows to `vm.rows()` if `columns` is not 0 | `Rows(n)` for `Want::Row` and `Want::Rows`, `Matched(n)` for `Want::Matched`; inside a pipeline `Done`, at once |
//! | `Begin { write }`, `Commit` | sends them as statements | `Done` |
//! | `PipelineBegin` | from here on only queues | `Done`, at once |
//! | `PipelineEnd` | sends, awaits all answers | `Matched(sum of the rows matched)`; `SecondRow` if a `Want::Row` had two |
//! | `Done` | committed: writes `vm.acks()` to the acknowledgement file | – |
//! | `Rollback` | rolls back if `vm.transaction_open()`, counts it as rolled back, `vm.restore_state()` | – |
//! | `Error` | rolls back, the run ends with that sentence | – |
//!
//! A retryable error: ROLLBACK, then `vm.retry(&program, Values::Same)` and `Event::Start` again. Any other
//! database error: `vm.restore_state()`, then the next `begin`. The kind of a transaction is drawn by
//! `program.pick(real)`. `start`: `vm.begin_start(&program, now_us)`, once, before the first transaction.
//!
//! Batches need nothing of their own: the machine splits them into statements (and a pipeline where the
//! program was compiled for one).

mod action;
mod arithmetic;
mod batch;
mod compare;
mod convert;
mod decimal;
mod fault;
mod format;
mod formatting;
mod image;
mod interpreter;
mod machine;
mod opcode;
mod operations;
mod received;
mod sequences;
mod sql;
mod texts;
mod value;
mod verify;

pub use action::{Action, Event, Failure, Param, RowWriter};
pub use decimal::Decimal;
pub use fault::Class;
pub use image::{Program, TransactionKind, Want};
pub use machine::{Values, Vm};
pub(crate) use received::Received;
pub use sql::{StatementKind, multi_row, parameter_positions, row_group, statement_kind};
pub use texts::{TEXT_LIMIT, Text, Texts};
