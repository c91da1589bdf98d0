//! Account of the numbers that sums open of statistics of whole silos.
//!
//! A sum hides single silos as long as far fewer numbers are opened than silos have unknowns. This counts; it proves
//! nothing.

use super::{Kept, Memory};

/// Name of the mark of a state after a round of statistics that told nothing.
const NOTHING: &str = "statistics.nothing";

/// Numbers that the rounds of a strategy open, and what is unknown of a silo.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StatisticsAccount {
    /// Numbers that sums have opened so far.
    pub before: u64,
    /// True once more than numbers of rows is open. All rounds were accounted for then, so that what is left is that of
    /// each round: rounds that are added later must not end what has begun.
    pub begun: bool,
    /// Numbers that the rounds to come open at most.
    pub most: u64,
    /// Numbers that all statistics of a silo follow from; `None` where only its rows give them all.
    pub enough: Option<u64>,
    /// Values of one row, the outcome among them.
    pub values: u64,
    /// Rows of all silos, once they are opened.
    pub rows: Option<f64>,
    /// Unknowns of the other silos that each opened number needs.
    pub unknowns_per_number: f64,
}

impl StatisticsAccount {
    /// Checks that the sums of so many silos hide those of single ones from one of them that has `own` rows, or from
    /// so many that collude.
    ///
    /// # Errors
    /// More numbers may be opened than that: one sentence, with the numbers.
    pub fn check(&self, (silos, colluders): (u64, u64), own: u64) -> Result<(), String> {
        let others = silos.saturating_sub(colluders.saturating_add(1));
        // The others' rows, as if they were spread evenly.
        let rows = self.rows.map(|all| {
            let spread = silos.saturating_sub(1).max(1) as f64;
            (all - own as f64).max(0.0) / spread * self.values as f64
        });
        let enough = self.enough.map(|enough| enough as f64);
        let each = match (enough, rows) {
            (Some(enough), Some(rows)) => enough.min(rows),
            (Some(unknowns), None) | (None, Some(unknowns)) => unknowns,
            // Numbers of rows are opened first, and alone.
            (None, None) => return Ok(()),
        };
        let unknowns = others as f64 * each;
        let numbers = self.before.saturating_add(self.most);
        let per = self.unknowns_per_number;
        if numbers as f64 * per <= unknowns {
            return Ok(());
        }
        Err(format!(
            "the sums of this strategy may open {numbers} numbers, and the {others} silos that are neither this one nor \
             collude have {unknowns:.0} unknowns, which allow {:.0} numbers, one for every {per}: agree on fewer `rounds`, \
             on fewer models in `varying`, on more members, or on a lower `unknowns-per-number`",
            (unknowns / per).floor()
        ))
    }
}

/// Returns whether this memory is that of a state after a round of statistics that told nothing.
pub fn statistics_in_vain(memory: &Memory) -> bool {
    memory.count(NOTHING).is_some()
}

/// Marks that a round of statistics told nothing, or that it told something.
pub(super) fn mark_nothing(memory: &mut Memory, nothing: bool) {
    if nothing {
        memory.insert(NOTHING, Kept::Count(1));
    } else {
        memory.remove(NOTHING);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const ACCOUNT: StatisticsAccount = StatisticsAccount {
        before: 10,
        begun: false,
        most: 50,
        enough: Some(20),
        values: 5,
        rows: None,
        unknowns_per_number: 3.0,
    };

    #[test]
    fn a_third_of_the_unknowns_of_the_others_may_be_opened() {
        // 60 numbers need 180 unknowns: nine others of 20 each.
        assert_eq!(ACCOUNT.check((11, 1), 40), Ok(()));
        let why = ACCOUNT.check((10, 1), 40).unwrap_err();
        assert!(
            why.contains("may open 60 numbers, and the 8 silos")
                && why.contains("have 160 unknowns, which allow 53 numbers"),
            "{why}"
        );
        let more = StatisticsAccount {
            before: 11,
            ..ACCOUNT
        };
        assert!(more.check((11, 1), 40).is_err());
        let less = StatisticsAccount {
            unknowns_per_number: 2.0,
            ..ACCOUNT
        };
        assert_eq!(less.check((8, 1), 40), Ok(()));
        assert!(ACCOUNT.check((2, 1), 40).is_err());
        assert!(ACCOUNT.check((0, 1), 40).is_err());
    }

    #[test]
    fn few_rows_of_others_have_fewer_unknowns_than_statistics() {
        let rows = |rows: f64| StatisticsAccount {
            rows: Some(rows),
            ..ACCOUNT
        };
        // Ten others with 4 rows of 5 values each have 20 unknowns.
        assert_eq!(rows(80.0).check((11, 1), 40), Ok(()));
        assert!(rows(79.0).check((11, 1), 40).is_err());
        assert_eq!(rows(79.0).check((11, 1), 39), Ok(()));
        assert_eq!(rows(1e6).check((11, 1), 40), Ok(()));
        assert!(rows(10.0).check((11, 1), 40).is_err());
    }

    #[test]
    fn where_statistics_are_rows_numbers_of_rows_are_opened_first() {
        let classes = StatisticsAccount {
            enough: None,
            ..ACCOUNT
        };
        assert_eq!(classes.check((4, 1), 40), Ok(()));
        let counted = StatisticsAccount {
            rows: Some(1e6),
            ..classes
        };
        assert_eq!(counted.check((4, 1), 40), Ok(()));
        let few = StatisticsAccount {
            rows: Some(90.0),
            ..classes
        };
        assert!(few.check((4, 1), 40).is_err());
    }

    #[test]
    fn the_mark_of_nothing_told_goes_with_the_next_round() {
        let mut memory = Memory::default();
        assert!(!statistics_in_vain(&memory));
        mark_nothing(&mut memory, true);
        assert!(statistics_in_vain(&memory));
        mark_nothing(&mut memory, false);
        assert_eq!(memory, Memory::default());
    }
}
