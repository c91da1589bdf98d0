//! The order in which members lead after the final rounds so far.

use std::sync::Arc;

use super::cycles::permutation;
use super::{Rotation, Setting};
use crate::hash::Hash;
use crate::roster::MemberIndex;

/// The highest trust in a member, and that with which it begins.
const FULL_TRUST: u8 = 6;
/// Trust that a lost view costs.
const LOST_VIEW: u8 = 3;

/// Leads of the views after the last final learning block: the part of the chain that the rotation needs.
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
    pub(crate) fn first(epoch: &impl Setting) -> Self {
        let n = epoch.members();
        let trust = vec![FULL_TRUST; n];
        let order = match epoch.rotation() {
            Rotation::EveryRound => Vec::new(),
            Rotation::EveryRounds(_) | Rotation::OnFailure => permutation(epoch.seed(), n, 0),
            Rotation::Reliability => draw(epoch.seed(), 0, &trust),
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
    pub fn lead(&self, epoch: &impl Setting, view: u64) -> MemberIndex {
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
    pub fn collectors(&self, epoch: &impl Setting, view: u64) -> Vec<MemberIndex> {
        let lead = self.lead(epoch, view);
        let next = [view + 1, view + 2].map(|view| self.lead(epoch, view));
        let n = epoch.members() as u64;
        let other = || {
            let step = 1 + view % (n - 1).max(1);
            MemberIndex(((lead.at() as u64 + step) % n) as u16)
        };
        let second = next.into_iter().find(|&next| next != lead);
        let second = Some(second.unwrap_or_else(other)).filter(|&second| second != lead);
        [lead].into_iter().chain(second).collect()
    }

    /// A learning block of `view` became final, with the contributions of `authors`.
    pub fn advance(&mut self, epoch: &impl Setting, view: u64, authors: &[MemberIndex]) {
        let place = |turns: &Self| {
            let lead = turns.lead(epoch, view);
            let found = turns.order.iter().position(|&member| member == lead.0);
            found.unwrap_or(turns.at)
        };
        match epoch.rotation() {
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
                for (member, trust) in (0..).map(MemberIndex).zip(&mut self.trust) {
                    *trust = if authors.contains(&member) {
                        FULL_TRUST.min(*trust + 1)
                    } else {
                        trust.saturating_sub(1)
                    };
                }
                self.order = draw(epoch.seed(), view, &self.trust).into();
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
mod tests;
