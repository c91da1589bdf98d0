//! What a node says about weights: an entry that weighs more than all others, and a learner that claims
//! more rows than it has.

use std::sync::Arc;

use protocol::{Epoch, MemberIndex};

use crate::events::NodeEvent;
use formatting::numbers::count;

/// Remembers what was said, so that each thing is said once as long as it stays the same.
pub(super) struct WeightWatch {
    epoch: Arc<Epoch>,
    /// The parameter set's largest share of a weight.
    most: Option<f64>,
    /// The last share that was said, in percent.
    share: Option<u64>,
    /// The last claim that was questioned.
    claimed: Option<u64>,
}

impl WeightWatch {
    pub(super) fn new(epoch: &Arc<Epoch>, most: Option<f64>) -> Self {
        Self {
            epoch: epoch.clone(),
            most,
            share: None,
            claimed: None,
        }
    }

    /// One entry of a final round claims this many of all rows, more than half: for machines, and a line
    /// for people where the share is another one than before.
    pub(super) fn heavy(
        &mut self,
        round: u64,
        (rows, total): (u64, u128),
        member: Option<MemberIndex>,
    ) -> (NodeEvent, Option<String>) {
        let share = rows as f64 / total as f64;
        let name = member.map(|member| self.epoch.roster.name(member));
        let event = NodeEvent::HeavyEntry {
            round,
            rows,
            share,
            member: name.map(str::to_owned),
            max_weight: self.most,
        };
        // Not rounded up to all of it.
        let percent = (100.0 * share) as u64;
        if self.share.replace(percent) == Some(percent) {
            return (event, None);
        }
        let whose = name.map_or_else(
            || "the contribution of one member".to_owned(),
            |name| format!("the contribution of {name}"),
        );
        let then = match self.most {
            Some(most) => format!("`max-weight` lowers it to {} %", 100.0 * most),
            None => "it alone almost determines the model".into(),
        };
        let line = format!(
            "{whose} to round {round} has {percent} % of the total weight, because it claims {} rows: {then}",
            count(rows)
        );
        (event, Some(line))
    }

    /// The learner claims this many training rows, and has `own`: a line where it claims more, or fewer
    /// than half of them.
    pub(super) fn trained(&mut self, claimed: u64, own: u64) -> Option<String> {
        let few = claimed > 0 && claimed < own.div_ceil(2);
        if claimed <= own && !few || self.claimed.replace(claimed) == Some(claimed) {
            return None;
        }
        if few {
            return Some(format!(
                "this institution's learner reports that it trained on {} rows, but it has {} training rows: its \
                 model gets the weight of the smaller number; check the learner, unless it trains on few rows on \
                 purpose",
                count(claimed),
                count(own)
            ));
        }
        Some(format!(
            "this institution's learner reports that it trained on {} rows, but it has {} training rows: others \
             see the larger number, as far as this institution may claim it; check the learner",
            count(claimed),
            count(own)
        ))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use agreement::Agreement;

    use super::*;

    const EXAMPLE: &str = include_str!("../../../examples/federation.toml");

    fn weights(most: Option<f64>) -> WeightWatch {
        let agreement = Agreement::parse("federation.toml", EXAMPLE).unwrap();
        WeightWatch::new(&agreement.epoch, most)
    }

    #[test]
    fn a_heavy_entry_is_named_once_as_long_as_its_share_stays() {
        let mut weights = weights(None);
        let (event, line) = weights.heavy(3, (9_000_000_000_000_000, 9_000_000_000_000_300), None);
        let line = line.unwrap();
        assert!(
            line.starts_with(
                "the contribution of one member to round 3 has 99 % of the total weight"
            ),
            "{line}"
        );
        assert!(line.contains("it claims 9,000,000,000,000,000 rows: it alone almost determines"));
        assert!(
            matches!(event, NodeEvent::HeavyEntry { rows, .. } if rows == 9_000_000_000_000_000)
        );
        assert_eq!(weights.heavy(4, (999, 1_001), None).1, None);
        let (event, line) = weights.heavy(5, (60, 100), Some(MemberIndex(0)));
        let first = weights.epoch.roster.name(MemberIndex(0)).to_owned();
        assert!(
            line.unwrap()
                .starts_with(&format!("the contribution of {first} to round 5 has 60 %"))
        );
        assert!(matches!(event, NodeEvent::HeavyEntry { member, .. } if member == Some(first)));
    }

    #[test]
    fn what_max_weight_makes_of_it_is_said() {
        let (event, line) = weights(Some(0.4)).heavy(1, (90, 100), None);
        assert!(line.unwrap().ends_with(": `max-weight` lowers it to 40 %"));
        assert!(
            matches!(event, NodeEvent::HeavyEntry { max_weight, .. } if max_weight == Some(0.4))
        );
    }

    #[test]
    fn a_learner_that_claims_more_rows_than_it_has_is_questioned_once() {
        let mut weights = weights(None);
        assert_eq!(weights.trained(120, 120), None);
        assert_eq!(weights.trained(0, 120), None);
        let line = weights.trained(9_000_000_000_000_000, 120).unwrap();
        assert!(
            line.contains("trained on 9,000,000,000,000,000 rows, but it has 120 training"),
            "{line}"
        );
        assert_eq!(weights.trained(9_000_000_000_000_000, 120), None);
        assert!(weights.trained(121, 120).is_some());
    }

    #[test]
    fn a_learner_that_claims_fewer_than_half_of_its_rows_is_questioned_once() {
        let mut weights = weights(None);
        assert_eq!(
            (weights.trained(60, 120), weights.trained(60, 119)),
            (None, None)
        );
        let line = weights.trained(4, 120).unwrap();
        assert!(
            line.contains("trained on 4 rows, but it has 120 training rows"),
            "{line}"
        );
        assert_eq!(weights.trained(4, 120), None);
        assert!(weights.trained(5, 120).is_some());
    }
}
