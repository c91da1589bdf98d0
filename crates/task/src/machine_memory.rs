//! The memory of this machine.

use std::fs;

/// Memory that is assumed where the system does not report it, in bytes.
const USUAL: u64 = 64 << 30;

/// Bytes of memory that programs of this machine, or of this container, may have.
pub fn machine_memory() -> u64 {
    let whole = fs::read_to_string("/proc/meminfo").ok();
    let whole = whole.and_then(|text| total(&text));
    let group = fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let group = group.and_then(|text| text.trim().parse().ok());
    whole.into_iter().chain(group).min().unwrap_or(USUAL)
}

/// The total in `/proc/meminfo`, in bytes.
fn total(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_read_in_bytes() {
        let text = "MemFree:  12 kB\nMemTotal:       24510472 kB\nMemAvailable: 3 kB\n";
        assert_eq!(total(text), Some(24_510_472 * 1024));
        for other in ["", "MemTotal: many kB", "MemTotal: 18446744073709551615 kB"] {
            assert_eq!(total(other), None, "{other}");
        }
    }
}
