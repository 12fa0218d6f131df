//! `fakeserver`: see `--help`.

use std::env;
use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(fakeserver::serve(env::args().skip(1).collect()))
}
