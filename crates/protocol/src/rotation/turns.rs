//! Whose turn it is to lead after the final rounds so far.

use std::sync::Arc;

use super::Rotation;
use super::cycles::permutation;
use crate::charter::Epoch;
use crate::hash::Hash;
use crate::roster::MemberIndex;

/// The highest trust in a member, and that with which it begins.
const FULL_TRUST: u8 = 6;
/// What a lost view costs.
const LOST_VIEW: u8 = 3;

/// Who leads the views after the last final learning block: what the rotation takes from the chain.
///
/// With v the view of that block (0 before the first round), the leads of the views v+1, v+2, … are
/// all members in a circle, from one that the policy names:
///
/// | policy | order of the circle | begins with |
/// |---|---|---|
/// | every K rounds | one shuffle of the federation's id | the lead of the block; the member after it if K rounds in a row were its own |
/// | on failure | the same | the lead of the block |
/// | reliability | drawn anew for v | the member drawn first |
/// | fixed | the first silo alone | |
///
/// **Reliability.** Each member has a trust t from 0 to 6, and starts at 6. With every final round t
/// grows by 1 for members whose contribution is in the block and falls by 1 for the others; and it
/// falls by 3 for the lead of each view since the block before that did not make the round final.
/// A member has 2^t lots, numbers that follow from the federation's id and v. The members lead in
/// the order of their smallest lots. So the one with t = 6 comes before one with t = 0 in 64 of 65
/// draws, and every member still leads once in n views.
///
/// Under `every-round` nothing is taken from the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turns {
    /// The circle.
    order: Arc<[u16]>,
    /// The place in it of the lead of the view after `since`.
    at: usize,
    /// The view of the last final learning block.
    since: u64,
    /// Final rounds in a row of the member at that place.
    led: u32,
    /// The trust in every member.
    trust: Vec<u8>,
}

impl Turns {
    /// Before the first final round.
    pub(crate) fn first(epoch: &Epoch) -> Self {
        let n = epoch.roster.len();
        let trust = vec![FULL_TRUST; n];
        let order = match epoch.charter.rotation {
            Rotation::EveryRound => Vec::new(),
            Rotation::EveryRounds(_) | Rotation::OnFailure => permutation(&epoch.federation, n, 0),
            Rotation::Reliability => draw(&epoch.federation, 0, &trust),
            Rotation::Fixed => vec![0],
        };
        Self {
            order: order.into(),
            at: 0,
            since: 0,
            led: 0,
            trust,
        }
    }

    /// The lead of a view after the last final learning block.
    pub fn lead(&self, epoch: &Epoch, view: u64) -> MemberIndex {
        if self.order.is_empty() {
            return epoch.lead_by_view(view);
        }
        let passed = view.saturating_sub(self.since + 1);
        let size = self.order.len() as u64;
        let at = (self.at as u64 + passed % size) % size;
        MemberIndex(self.order[at as usize])
    }

    /// The collectors of a view, who make certificates of its votes: its lead, and the lead of the
    /// next view; where that is the same member, the lead of the one after. Under `fixed`, where
    /// all views have one lead, another member that changes with the view.
    pub fn collectors(&self, epoch: &Epoch, view: u64) -> Vec<MemberIndex> {
        let lead = self.lead(epoch, view);
        let next = [view + 1, view + 2].map(|view| self.lead(epoch, view));
        let n = epoch.roster.len() as u64;
        let other = || {
            let step = 1 + view % (n - 1).max(1);
            MemberIndex(((lead.at() as u64 + step) % n) as u16)
        };
        let second = next.into_iter().find(|&next| next != lead);
        let second = Some(second.unwrap_or_else(other)).filter(|&second| second != lead);
        [lead].into_iter().chain(second).collect()
    }

    /// A learning block of `view` became final, with the contributions of `authors`.
    pub fn advance(&mut self, epoch: &Epoch, view: u64, authors: &[MemberIndex]) {
        let place = |turns: &Self| {
            let lead = turns.lead(epoch, view);
            let found = turns.order.iter().position(|&member| member == lead.0);
            found.unwrap_or(turns.at)
        };
        match epoch.charter.rotation {
            Rotation::EveryRound | Rotation::Fixed => {}
            Rotation::OnFailure => self.at = place(self),
            Rotation::EveryRounds(rounds) => {
                let place = place(self);
                let again = view == self.since + 1;
                self.led = if again { self.led + 1 } else { 1 };
                self.at = place;
                if self.led >= rounds {
                    self.at = (place + 1) % self.order.len();
                    self.led = 0;
                }
            }
            Rotation::Reliability => {
                let n = self.order.len() as u64;
                // One turn of the circle takes all trust that there is to take.
                let lost = (self.since + 1..view).take(2 * n as usize);
                for lead in lost.map(|view| self.lead(epoch, view)).collect::<Vec<_>>() {
                    let trust = &mut self.trust[lead.at()];
                    *trust = trust.saturating_sub(LOST_VIEW);
                }
                for (member, trust) in epoch.roster.members().zip(&mut self.trust) {
                    *trust = match authors.contains(&member) {
                        true => FULL_TRUST.min(*trust + 1),
                        false => trust.saturating_sub(1),
                    };
                }
                self.order = draw(&epoch.federation, view, &self.trust).into();
                self.at = 0;
            }
        }
        self.since = view;
    }

    /// The trust in every member under `reliability`, from 0 to 6.
    pub fn trust(&self) -> &[u8] {
        &self.trust
    }
}

/// All members in the order of their smallest lots; each has 2^trust.
fn draw(federation: &Hash, view: u64, trust: &[u8]) -> Vec<u16> {
    let mut hasher = blake3::Hasher::new();
    hasher
        .update(b"lots")
        .update(&federation.0)
        .update(&view.to_le_bytes());
    let mut stream = hasher.finalize_xof();
    let mut lots = vec![0; 8 << FULL_TRUST];
    let smallest = |lots: &[u8]| {
        let lot = |bytes: &[u8]| {
            bytes
                .iter()
                .fold(0, |lot, &byte| lot << 8 | u64::from(byte))
        };
        lots.chunks_exact(8).map(lot).min().unwrap_or(u64::MAX)
    };
    let mut order: Vec<_> = (0u16..)
        .zip(trust)
        .map(|(member, &trust)| {
            // As many bytes for each member, so that the lots of one do not depend on the others.
            stream.fill(&mut lots);
            (smallest(&lots[..8 << trust]), member)
        })
        .collect();
    order.sort_unstable();
    order.into_iter().map(|(_, member)| member).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::charter::{Charter, Genesis, Verification};
    use crate::identity::SecretKey;
    use crate::roster::Silo;

    fn epoch(n: u16, rotation: Rotation) -> Epoch {
        let silo = |at: u16| Silo {
            name: format!("silo {at}"),
            key: SecretKey::from_bytes(blake3::hash(&at.to_le_bytes()).as_bytes()).public(),
        };
        let charter = Charter {
            name: "turns".into(),
            work: Vec::new(),
            start: Hash::of(b"start"),
            rounds: 100,
            beat_ms: 1000,
            patience: 20,
            view_timeout: 200,
            min_contributions: n,
            rotation,
            verification: Verification::Full,
            names_shown: false,
            blob_limit: 1,
            keep_rounds: 1,
            discovery: false,
        };
        let silos = (0..n).map(silo).collect();
        Epoch::first(&Genesis { silos, charter }).unwrap()
    }

    fn everybody(epoch: &Epoch) -> Vec<MemberIndex> {
        epoch.roster.members().collect()
    }

    fn leads(turns: &Turns, epoch: &Epoch, views: std::ops::RangeInclusive<u64>) -> Vec<u16> {
        views.map(|view| turns.lead(epoch, view).0).collect()
    }

    #[test]
    fn any_n_views_after_a_final_round_have_n_leads_except_under_fixed() {
        for policy in Rotation::ALL {
            for n in [1, 2, 4, 7, 50] {
                let epoch = epoch(n, policy);
                let mut turns = epoch.turns();
                for round in 1..20u64 {
                    let view = turns.since + 1 + round % 3 * u64::from(n / 2);
                    turns.advance(&epoch, view, &everybody(&epoch));
                    for from in 1..5 {
                        // A cycle of `every-round` ends where a multiple of n does.
                        let from = match policy {
                            Rotation::EveryRound => (view / u64::from(n) + from) * u64::from(n),
                            _ => view + from,
                        };
                        let mut found = leads(&turns, &epoch, from..=from + u64::from(n) - 1);
                        found.sort_unstable();
                        found.dedup();
                        let all = if policy == Rotation::Fixed { 1 } else { n };
                        assert_eq!(found.len(), usize::from(all), "{policy} {n}");
                    }
                }
            }
        }
    }

    #[test]
    fn on_failure_the_lead_of_a_final_round_goes_on_and_a_failed_view_passes_to_the_next() {
        let epoch = epoch(5, Rotation::OnFailure);
        let mut turns = epoch.turns();
        let order = leads(&turns, &epoch, 1..=5);
        turns.advance(&epoch, 1, &[]);
        assert_eq!(leads(&turns, &epoch, 2..=6), order);
        turns.advance(&epoch, 2, &[]);
        assert_eq!(leads(&turns, &epoch, 3..=7), order);
        // Views 3 and 4 fail.
        turns.advance(&epoch, 5, &[]);
        assert_eq!(turns.lead(&epoch, 6).0, order[2]);
        assert_eq!(turns.lead(&epoch, 7).0, order[3]);
        assert_eq!(turns.lead(&epoch, 9).0, order[0]);
    }

    #[test]
    fn every_k_rounds_the_lead_changes_and_a_failed_view_begins_k_anew() {
        let epoch = epoch(4, Rotation::EveryRounds(3));
        let mut turns = epoch.turns();
        let order = leads(&turns, &epoch, 1..=4);
        let mut led = Vec::new();
        for view in 1..=7 {
            led.push(turns.lead(&epoch, view).0);
            turns.advance(&epoch, view, &[]);
        }
        let [a, b, c, d] = order[..] else {
            panic!("four leads")
        };
        assert_eq!(led, [a, a, a, b, b, b, c]);
        // View 8, in which the third would lead its second round, fails.
        let mut led = Vec::new();
        for view in 9..=12 {
            led.push(turns.lead(&epoch, view).0);
            turns.advance(&epoch, view, &[]);
        }
        assert_eq!(led, [d, d, d, a]);
    }

    #[test]
    fn under_fixed_the_first_silo_leads_and_another_member_collects_votes_too() {
        let epoch = epoch(4, Rotation::Fixed);
        let mut turns = epoch.turns();
        let mut others = Vec::new();
        for view in 1..20 {
            assert_eq!(turns.lead(&epoch, view), MemberIndex(0));
            let [lead, other] = turns.collectors(&epoch, view)[..] else {
                panic!("two collectors")
            };
            assert_eq!(lead, MemberIndex(0));
            others.push(other.0);
            turns.advance(&epoch, view, &[]);
        }
        others.sort_unstable();
        others.dedup();
        assert_eq!(others, [1, 2, 3]);
        assert_eq!(
            epoch_of_one().turns().collectors(&epoch_of_one(), 3).len(),
            1
        );
    }

    fn epoch_of_one() -> Epoch {
        epoch(1, Rotation::Fixed)
    }

    #[test]
    fn a_member_that_lost_views_seldom_leads_first_until_it_has_contributed_again() {
        let epoch = epoch(4, Rotation::Reliability);
        let mut turns = epoch.turns();
        let all = everybody(&epoch);
        // How often each member leads the view after a final round.
        let run = |turns: &mut Turns, authors: &[MemberIndex], rounds| {
            let mut first = [0; 4];
            for _ in 0..rounds {
                let view = turns.since + 1;
                first[turns.lead(&epoch, view).at()] += 1;
                turns.advance(&epoch, view, authors);
            }
            first
        };
        let equal = run(&mut turns, &all, 400);
        assert!(
            equal.iter().all(|&times| (60..140).contains(&times)),
            "{equal:?}"
        );
        // One lost view takes half of the trust, and six rounds without contributions all of it.
        let bad = turns.lead(&epoch, turns.since + 1);
        turns.advance(&epoch, turns.since + 2, &all);
        assert_eq!(turns.trust()[bad.at()], FULL_TRUST - LOST_VIEW + 1);
        let others: Vec<_> = all.iter().copied().filter(|&one| one != bad).collect();
        run(&mut turns, &others, 6);
        assert_eq!(turns.trust()[bad.at()], 0);
        let without = run(&mut turns, &others, 400);
        // 1 lot of 193.
        assert!(without[bad.at()] < 12, "{without:?}");
        run(&mut turns, &all, 6);
        assert!(turns.trust().iter().all(|&trust| trust == FULL_TRUST));
    }

    #[test]
    fn the_leads_of_every_policy_are_pinned() {
        // Other leads would be another protocol.
        let pinned = Rotation::ALL.map(|policy| {
            let epoch = epoch(7, policy);
            let mut turns = epoch.turns();
            turns.advance(&epoch, 1, &[MemberIndex(2), MemberIndex(3)]);
            turns.advance(&epoch, 4, &[MemberIndex(2), MemberIndex(6)]);
            leads(&turns, &epoch, 5..=9)
        });
        assert_eq!(pinned, PINNED);
    }

    const PINNED: [[u16; 5]; 5] = [
        [4, 6, 1, 2, 5],
        [0, 5, 4, 1, 6],
        [0, 1, 3, 5, 2],
        [2, 3, 5, 6, 4],
        [0, 0, 0, 0, 0],
    ];
}
