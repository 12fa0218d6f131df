//! Inputs worth trying: conversations recorded from real servers, and what fuzzing found.

use std::path::{Path, PathBuf};

/// Inputs of a target: those kept in `corpus/TARGET.txt`, one a line in hexadecimal digits, and the server's
/// side of every recorded exchange under some of the settings.
///
/// # Panics
/// A file that is there cannot be read.
pub fn inputs(target: &str) -> Vec<Vec<u8>> {
    let mut inputs = recorded(target);
    if let Ok(text) = std::fs::read_to_string(kept(target)) {
        inputs.extend(text.lines().map(|line| bytes_of(line).expect("hexadecimal digits")));
    }
    inputs
}

/// The file of a target's kept inputs.
pub fn kept(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(format!("{target}.txt"))
}

/// Bytes of hexadecimal digits.
pub fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

fn recorded(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wire/tests/golden");
    let side = if target.ends_with("_client") { "client" } else { "server" };
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    files.sort();
    let mut inputs = Vec::new();
    for file in files {
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if !name.ends_with(".json") || name.starts_with("postgresql") != target.contains("postgresql") {
            continue;
        }
        let text = std::fs::read_to_string(&file).expect("a recorded conversation");
        let golden: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        for (number, exchange) in golden["exchanges"].as_array().into_iter().flatten().enumerate() {
            let turns = exchange["turns"].as_array().into_iter().flatten();
            let digits: String =
                turns.filter(|turn| turn[0] == side).filter_map(|turn| turn[1].as_str()).collect();
            let bytes = bytes_of(&digits).expect("hexadecimal digits");
            // a quarter of the settings each: the neighbours have the others
            for settings in (number as u8 % 4..32).step_by(4) {
                inputs.push([&[settings | settings << 5], bytes.as_slice()].concat());
            }
        }
    }
    inputs
}
