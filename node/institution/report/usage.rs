//! Resources of its machine that a process has used.

/// Ticks a second in which Linux counts CPU time for programs, on all its architectures.
const TICKS: f64 = 100.0;

/// The CPU time in seconds that this process has used, on all cores; `None` where the system does not
/// say so in `/proc`.
pub(super) fn cpu_seconds() -> Option<f64> {
    parsed(&std::fs::read_to_string("/proc/self/stat").ok()?)
}

/// The CPU time in seconds in the text of `/proc/PID/stat`.
pub fn parsed(stat: &str) -> Option<f64> {
    // The name of the program may hold anything, but the last parenthesis ends it.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / TICKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_system_time_are_added_whatever_the_programs_name() {
        let stat = "7 (a b) c) S 1 7 7 0 -1 4194560 900 0 0 0 250 50 0 0 20 0 9 0 100";
        assert_eq!(parsed(stat), Some(3.0));
        assert_eq!(parsed("nothing"), None);
        if cfg!(target_os = "linux") {
            assert!(cpu_seconds().is_some());
        }
    }
}
