//! Count of the numbers that the rounds to come may open, where sums alone are opened.

use std::ops::RangeInclusive;

use super::contribution::SumsPhase;
use super::{Before, MixedModel, memory};
use crate::strategy::{State, StatisticsAccount, Strategy};

/// From this many rounds on no whole matrices are sent any more.
const WITH_WHOLE: u64 = 8;

impl MixedModel {
    /// The account before the first of these rounds.
    pub(super) fn account(
        &self,
        state: &State,
        before: &Before,
        rounds: RangeInclusive<u64>,
    ) -> StatisticsAccount {
        let width = before.common.width() as u64;
        let opened = state.memory.count(memory::OPENED).unwrap_or(0);
        StatisticsAccount {
            before: opened,
            begun: opened > SumsPhase::Counts.numbers() as u64,
            most: self.most(state, before, rounds),
            // X'X, X'y and y'y, of which the first entry is the number of rows.
            enough: before.noise().then_some(width * (width + 3) / 2),
            values: width,
            rows: state.memory.number(memory::ROWS),
            unknowns_per_number: self.options.unknowns_per_number,
        }
    }

    /// Numbers that these rounds open if no model is done before the last of them.
    fn most(&self, state: &State, before: &Before, rounds: RangeInclusive<u64>) -> u64 {
        let (first, last) = rounds.into_inner();
        if first > last || self.ends(state) {
            return 0;
        }
        if self.all_done(state) {
            return SumsPhase::Folds.numbers() as u64;
        }
        let sums = |whole| {
            let phase = SumsPhase::sums(before.open(), whole, before.noise());
            phase.numbers() as u64
        };
        let mut counts = self.counts_first(state);
        let mut fresh = before.open().any(|model| model.pattern.is_none());
        let mut most = 0u64;
        let near = first..=last.min(first.saturating_add(WITH_WHOLE - 1));
        let far = last.saturating_sub(*near.end());
        for round in near {
            most += if counts {
                SumsPhase::Counts.numbers() as u64
            } else {
                let whole = self.is_whole(round) || fresh;
                fresh = false;
                sums(whole)
            };
            counts = false;
        }
        most.saturating_add(far.saturating_mul(sums(!self.options.lean)))
    }
}
