//! The links of a bare run: which are cut, and how long messages take.

use std::time::Duration;

use crate::cuts::CutLinks;
use crate::random::Random;

use super::faults::Faults;

/// The links between all members.
pub(super) struct BareLinks {
    /// Links that are cut.
    pub(super) cuts: CutLinks,
    faults: Faults,
    random: Random,
    /// Messages lost and duplicated so far.
    pub(super) played: u64,
}

/// Shortest and longest usual latency.
const USUAL: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(40));

impl BareLinks {
    pub(super) fn new(seed: u64, faults: Faults) -> Self {
        Self {
            cuts: CutLinks::default(),
            faults,
            random: Random::new(seed, "links"),
            played: 0,
        }
    }

    /// Ends all cuts, losses, duplicates and delays.
    pub(super) fn heal(&mut self) {
        self.cuts.clear();
        self.faults = Faults::none();
    }

    /// A round trip as it would be measured.
    pub(super) fn round_trip(&self) -> Duration {
        2 * USUAL.1
    }

    /// The delays after which copies of a message arrive.
    pub(super) fn arrivals(&mut self, from: usize, to: usize) -> Vec<Duration> {
        let lost = self.random.chance(self.faults.loss);
        if lost || !self.cuts.open(from, to) {
            self.played += 1;
            return Vec::new();
        }
        let twice = self.random.chance(self.faults.repeat);
        self.played += u64::from(twice);
        (0..1 + usize::from(twice))
            .map(|_| {
                let late = self.faults.late.mul_f64(self.random.uniform().powi(4));
                self.random.span(USUAL.0, USUAL.1) + late
            })
            .collect()
    }
}
