//! P7: an institution draws noise once for an epoch and round, and has a line in its ledger for it.
//!
//! Two draws of one round would be two releases where one is counted. One draw in two sums that are opened
//! would stand in their difference no more: whoever is in the one and not in the other would be seen without
//! noise. So a round that is done again, after a recovery or because it was given up, has another draw and a
//! line of its own. The ledger of an institution is a file beside all else that a node has: it survives
//! whatever becomes of that, and all processes of the institution share it.

use std::collections::BTreeMap;

use protocol::Hash;

/// An institution, by its first node, with the epoch and the round.
pub(super) type DrawPlace = (usize, Hash, u64);

/// The lines of all ledgers, and all draws that were sent.
#[derive(Debug, Default)]
pub(super) struct SentDraws {
    lines: BTreeMap<DrawPlace, Hash>,
    /// The draw in everything that was sent from a place.
    sent: BTreeMap<DrawPlace, Hash>,
    /// The place that a draw was sent from.
    places: BTreeMap<Hash, DrawPlace>,
}

impl SentDraws {
    /// Notes that a draw is going to be sent. The same line again is no other one.
    ///
    /// # Errors
    /// The ledger has a line for another draw of this epoch and round.
    pub(super) fn line(&mut self, place: DrawPlace, draw: Hash) -> Result<(), String> {
        if *self.lines.entry(place).or_insert(draw) == draw {
            return Ok(());
        }
        Err("the ledger has another contribution to this round".into())
    }

    /// Returns whether a vector was sent from a place already.
    pub(super) fn has_sent(&self, place: DrawPlace) -> bool {
        self.sent.contains_key(&place)
    }

    /// A vector with this draw is sent.
    ///
    /// # Errors
    /// A description of the violation.
    pub(super) fn send(&mut self, place: DrawPlace, draw: Hash) -> Result<(), String> {
        let (node, epoch, round) = place;
        let here = format!("node {node} in round {round} of epoch {epoch}");
        if *self.sent.entry(place).or_insert(draw) != draw {
            return Err(format!("{here} sent a second draw of noise"));
        }
        if *self.places.entry(draw).or_insert(place) != place {
            return Err(format!(
                "{here} sent a draw of noise that was sent in another round before"
            ));
        }
        if self.lines.get(&place) != Some(&draw) {
            return Err(format!(
                "{here} sent a draw of noise that has no line in its ledger"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: DrawPlace = (2, Hash([1; 32]), 5);
    const DRAW: Hash = Hash([8; 32]);
    const OTHER: Hash = Hash([9; 32]);

    #[test]
    fn one_draw_may_be_sent_for_many_lists_of_a_round() {
        let mut draws = SentDraws::default();
        for _ in 0..3 {
            assert_eq!(draws.line(PLACE, DRAW), Ok(()));
            assert_eq!(draws.send(PLACE, DRAW), Ok(()));
        }
        // In another epoch another one.
        let later = (2, Hash([2; 32]), 5);
        assert_eq!(draws.line(later, OTHER), Ok(()));
        assert_eq!(draws.send(later, OTHER), Ok(()));
    }

    #[test]
    fn draws_that_are_second_foreign_or_without_a_line_are_found() {
        let mut draws = SentDraws::default();
        let none = draws.send((0, DRAW, 1), DRAW);
        assert!(none.is_err_and(|why| why.contains("no line")));
        let mut draws = SentDraws::default();
        assert_eq!(draws.line(PLACE, DRAW), Ok(()));
        assert_eq!(draws.send(PLACE, DRAW), Ok(()));
        assert!(draws.line(PLACE, OTHER).is_err());
        let second = draws.send(PLACE, OTHER);
        assert!(second.is_err_and(|why| why.contains("second draw")));
        let later = (2, Hash([2; 32]), 5);
        assert_eq!(draws.line(later, DRAW), Ok(()));
        let kept = draws.send(later, DRAW);
        assert!(kept.is_err_and(|why| why.contains("in another round before")));
    }
}
