//! The C library's memory, where this program and LibTorch take theirs from.

use std::hint::black_box;

/// The largest block that glibc can be taught to keep, 32 MiB with what it adds.
const LARGEST: usize = (32 << 20) - (64 << 10);

/// Lets the C library keep what is freed for the next layer, instead of giving it back to the system and
/// asking for it again, page by page. glibc learns from the largest block that it sees freed which blocks
/// to keep; a training frees one of that size late or never. Elsewhere nothing changes.
pub(super) fn keep_what_is_freed() {
    drop(black_box(Vec::<u8>::with_capacity(LARGEST)));
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Pages that this thread has asked the system for.
    fn faults() -> u64 {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        // The name, which may hold spaces, ends with the last bracket.
        let (_, numbers) = stat.rsplit_once(") ").unwrap();
        numbers.split(' ').nth(7).unwrap().parse().unwrap()
    }

    #[test]
    fn memory_that_was_freed_is_used_again() {
        keep_what_is_freed();
        let before = faults();
        (0..10).for_each(|_| drop(black_box(vec![1u8; 8 << 20])));
        let asked = faults() - before;
        assert!(asked < 3000, "{asked} pages for ten times 2048");
    }
}
