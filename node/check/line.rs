//! Whether a round waits long enough for models of the agreed size.

use agreement::{LINE_MBIT, models_take};

use super::Finding;
use crate::institution::Configured;
use formatting::numbers;

/// Lines that nobody has to think about, in megabits per second.
const ORDINARY: f64 = 10.0;

/// The line that every member needs; nothing where any line will do.
pub(super) fn line(configured: &Configured) -> Option<Finding> {
    let epoch = &configured.agreement.epoch;
    let (limit, members) = (epoch.protocol.blob_limit, epoch.roster.len());
    finding(limit, members, epoch.patience().as_secs_f64())
}

fn finding(limit: u64, members: usize, patience: f64) -> Option<Finding> {
    let others = members.saturating_sub(1) as u64;
    let needed = limit as f64 * 8.0 * others as f64 / 1e6 / patience;
    if needed <= ORDINARY {
        return None;
    }
    let text = format!(
        "a round waits {} for up to {} of models, so every member needs a line of {needed:.0} Mbit/s",
        numbers::seconds(patience),
        numbers::bytes(limit.saturating_mul(others)),
    );
    if needed <= LINE_MBIT {
        return Some(Finding::good("line", text));
    }
    let takes = models_take(limit, members, LINE_MBIT).as_secs_f64();
    Some(Finding::note("line", text).remedy(format!(
        "one of {LINE_MBIT} Mbit/s takes {}: agree on a `straggler-timeout` of more than that, or send less \
         with `encoding`",
        numbers::seconds(takes)
    )))
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    #[test]
    fn a_round_has_to_wait_for_large_models_over_an_ordinary_line() {
        // Five models of 1 GB are 40,000 Mbit.
        let level = |patience| finding(1_000_000_000, 6, patience).map(|found| found.level);
        assert_eq!(level(60.0), Some(Level::Note));
        assert_eq!(level(1_340.0), Some(Level::Good));
        assert_eq!(level(4_000.0), None);
        assert_eq!(finding(1_000_000, 6, 60.0), None);
        let found = finding(1_000_000_000, 6, 60.0).expect("a note");
        assert!(
            found.text.ends_with("a line of 667 Mbit/s"),
            "{}",
            found.text
        );
    }
}
