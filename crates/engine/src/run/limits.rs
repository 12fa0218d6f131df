//! The process's own limits.

use rustix::process::{Resource, getrlimit, setrlimit};

/// File descriptors beside the connections that a run may come to need: samples, the store, logins under way.
const SPARE: u64 = 128;

/// Makes room for that many connections: raises the soft limit of file descriptors as far as needed.
///
/// # Errors
/// The hard limit is lower: one sentence.
pub(crate) fn make_room(connections: u64) -> Result<(), String> {
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count() as u64);
    let needed = connections + open + SPARE;
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    if let Some(most) = limit.maximum.filter(|most| *most < needed) {
        return Err(format!(
            "{connections} connections need {needed} file descriptors, the limit is {most}; raise it with ulimit -n"
        ));
    }
    limit.current = Some(needed);
    setrlimit(Resource::Nofile, limit).map_err(|error| {
        format!("{connections} connections need {needed} file descriptors, and the limit cannot be raised: {error}")
    })
}
