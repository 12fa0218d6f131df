//! `corpus unpack TARGET FOLDER` writes a target's inputs as files for a fuzzer; `corpus pack TARGET FOLDER`
//! keeps the files of a folder as the target's inputs.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use dbdyno_fuzz::corpus::{inputs, kept};

/// Longer inputs are not kept: the repository stays small.
const KEPT_BYTES: usize = 512;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["unpack", target, folder] => unpack(target, Path::new(folder)),
        ["pack", target, folder] => pack(target, Path::new(folder)),
        _ => {
            eprintln!("usage: corpus unpack|pack TARGET FOLDER");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("corpus: {error}");
            ExitCode::FAILURE
        }
    }
}

fn unpack(target: &str, folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    for (number, input) in inputs(target).iter().enumerate() {
        fs::write(folder.join(format!("{number:05}")), input)?;
    }
    Ok(())
}

fn pack(target: &str, folder: &Path) -> std::io::Result<()> {
    let mut lines = Vec::new();
    for entry in fs::read_dir(folder)? {
        let input = fs::read(entry?.path())?;
        if (1..=KEPT_BYTES).contains(&input.len()) {
            lines.push(input.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        }
    }
    lines.sort_by(|one, two| (one.len(), one).cmp(&(two.len(), two)));
    lines.dedup();
    fs::write(kept(target), lines.join("\n") + "\n")
}
