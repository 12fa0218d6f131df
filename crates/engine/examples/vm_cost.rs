//! What a program costs without a database: runs transactions of a serialised program against rows that are
//! always the same. Under `valgrind --tool=callgrind --toggle-collect=...` or between two counts it gives
//! instructions per transaction.
//!
//! ```text
//! vm_cost PROGRAM.json TRANSACTIONS
//! ```

use std::hint::black_box;
use std::time::Instant;

use dbdyno_engine::program::{Action, Event, Param, Program, Vm, Want};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let usage = "vm_cost PROGRAM.json TRANSACTIONS";
    let bytes = std::fs::read(arguments.next().expect(usage)).expect("the program can be read");
    let transactions: u64 = arguments.next().expect(usage).parse().expect(usage);
    let program = Program::load(&bytes).expect("a valid program");
    let (mut texts, mut vm) = (program.texts(), Vm::new(&program, 1, 1));
    let (mut statements, mut values) = (0u64, 0u64);
    let begun = Instant::now();
    for number in 1..=transactions {
        vm.begin(&program, 0, 1, number, 0);
        let mut event = Event::Start;
        loop {
            event = match vm.resume(&program, &mut texts, event) {
                Action::Statement { want, columns, .. } => {
                    statements += 1;
                    for param in vm.params(&program) {
                        values += 1;
                        if let Param::Int(i) = param {
                            black_box(i);
                        }
                    }
                    if columns != 0 {
                        let mut rows = vm.rows();
                        rows.int(number as i64);
                        rows.text("abc");
                        rows.end_row();
                    }
                    if want == Want::Matched { Event::Matched(1) } else { Event::Rows(1) }
                }
                Action::Begin { .. } | Action::Commit | Action::PipelineBegin | Action::PipelineEnd => {
                    Event::Done
                }
                Action::Done | Action::Rollback => break,
                Action::Error(failure) => panic!("{failure}"),
            };
        }
    }
    let ns = begun.elapsed().as_nanos() as f64 / transactions as f64;
    println!("{ns:.0} ns a transaction, {statements} statements, {values} values");
}
