//! libFuzzer on the target that DBDYNO_FUZZ_TARGET names: see scripts/fuzz.
#![no_main]

use std::sync::LazyLock;

static TARGET: LazyLock<dbdyno_fuzz::Target> = LazyLock::new(|| {
    let name = std::env::var("DBDYNO_FUZZ_TARGET").unwrap_or_default();
    let known = dbdyno_fuzz::TARGETS.iter().find(|(known, _)| *known == name);
    let names = dbdyno_fuzz::TARGETS.map(|(known, _)| known).join(", ");
    known.unwrap_or_else(|| panic!("DBDYNO_FUZZ_TARGET is {name:?}: it must be one of {names}")).1
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| TARGET(data));
