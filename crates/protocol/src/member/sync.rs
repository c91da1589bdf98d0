//! Catching up with what became final elsewhere, and coming back without a journal (R5).

use super::{ByMember, Member};
use crate::certificate::Verdict;
use crate::effects::{Effect, Report};
use crate::message::{Body, SyncResponse};
use crate::roster::MemberIndex;

/// Final blocks sent in one answer.
const BLOCKS: usize = 64;

pub(super) struct Sync {
    /// Whether this member was away and has not heard from anybody since.
    behind: bool,
    /// A question was sent that is not answered yet.
    asking: bool,
    /// Who was asked last: the next one is asked next.
    last: Option<MemberIndex>,
    lost: Option<Recovery>,
    /// This member has all rounds, and has not told everybody yet.
    pub(super) telling: bool,
}

/// A member without its journal, on the way back.
struct Recovery {
    /// The highest certified view by each member's word.
    answers: ByMember<u64>,
}

impl Sync {
    pub(super) fn new(lost: bool, behind: bool) -> Self {
        let lost = lost.then(|| Recovery {
            answers: ByMember::new(),
        });
        Self {
            behind,
            asking: false,
            last: None,
            lost,
            telling: false,
        }
    }

    /// Whether this member may neither vote, propose nor contribute.
    pub(super) fn recovering(&self) -> bool {
        self.lost.is_some()
    }
}

impl Member {
    /// What became final after a view, for a member that asks.
    pub(super) fn answer(&mut self, asker: MemberIndex, after: u64) {
        if asker == self.me() {
            return;
        }
        let newer: Vec<_> = self
            .chain
            .history
            .iter()
            .filter(|(block, _)| block.view > after)
            .collect();
        let few = &newer[..newer.len().min(BLOCKS)];
        let last = few.iter().rposition(|(_, proof)| proof.is_some());
        let count = last.map_or(0, |last| last + 1);
        let blocks = few[..count]
            .iter()
            .map(|(block, _)| block.clone())
            .collect();
        let proof = last.and_then(|last| few[last].1.clone());
        let more = count < newer.len();
        let response = SyncResponse {
            after,
            certified: self.chain.highest(),
            blocks,
            proof,
            more,
            certificates: self.chain.above(),
        };
        let (_, frame) = self.seal(0, 0, Body::SyncResponse(Box::new(response)));
        self.out.push(Effect::Send { to: asker, frame });
    }

    /// A member's answer: final blocks that continue one's own chain, and the way to its view.
    pub(super) fn answered(&mut self, sender: MemberIndex, response: SyncResponse) {
        self.sync.behind = false;
        self.sync.asking = false;
        if let Some(recovery) = &mut self.sync.lost {
            let answer = recovery.answers.entry(sender).or_default();
            *answer = response.certified.max(*answer);
        }
        let known = self.chain.tip.view;
        let blocks: Vec<_> = response
            .blocks
            .into_iter()
            .filter(|block| block.view > known)
            .collect();
        if let (Some(last), Some(proof)) = (blocks.last(), response.proof) {
            let linked = blocks
                .first()
                .is_some_and(|first| first.parent == self.chain.tip.hash)
                && blocks
                    .windows(2)
                    .all(|pair| pair[1].parent == pair[0].hash());
            let proven = proof.verdict == Verdict::Final(last.hash());
            if linked && proven {
                self.sync.behind = response.more;
                self.advance(blocks, proof);
            }
        }
        for certificate in response.certificates {
            self.certify(certificate);
        }
        self.recover();
        if self.sync.behind {
            self.ask(sender);
        }
    }

    /// Whether a member without its journal may take part again: it heard from q others how far
    /// views had come, and a block of a cycle after the next is final. No vote it may have given
    /// can matter then.
    pub(super) fn recover(&mut self) {
        let Some(recovery) = &self.sync.lost else {
            return;
        };
        let roster = &self.config.epoch.roster;
        if recovery.answers.len() < roster.quorum() {
            return;
        }
        let highest = recovery.answers.values().max().copied().unwrap_or(0);
        let n = roster.len() as u64;
        if self.chain.tip.view / n >= highest / n + 2 {
            self.sync.lost = None;
        }
    }

    /// A member was away: it asks the first one it reaches; without its journal, everybody.
    pub(super) fn ask_first(&mut self, peer: MemberIndex) {
        let unasked = self.sync.behind && !self.sync.asking;
        if unasked || self.sync.recovering() {
            self.ask(peer);
        }
    }

    /// Blocks before a final one are missing here. Whoever is asked first may not have them, or
    /// may not say; with every beat the next one is asked.
    pub(super) fn ask_for_ancestors(&mut self) {
        if !self.sync.asking {
            self.ask_next();
        }
    }

    fn ask_next(&mut self) {
        let others = self.others();
        let after = |peer: &&MemberIndex| Some(**peer) > self.sync.last;
        let next = others.iter().find(after).or(others.first()).copied();
        if let Some(peer) = next {
            self.ask(peer);
        }
    }

    fn ask(&mut self, peer: MemberIndex) {
        self.sync.asking = true;
        self.sync.last = Some(peer);
        let after = self.chain.tip.view;
        let (_, frame) = self.seal(0, 0, Body::SyncRequest { after });
        self.out.push(Effect::Send { to: peer, frame });
    }

    /// The last round is final and applied here.
    pub(super) fn completed(&mut self) {
        self.complete = true;
        self.lead = None;
        self.sync.telling = true;
        self.out.push(Effect::Report(Report::Complete));
    }

    /// With the beat after that everybody is told: who waits for others before it leaves need not
    /// wait for this member. Not at once, because everybody is busy finishing then.
    pub(super) fn tell_all_complete(&mut self) {
        if std::mem::take(&mut self.sync.telling) {
            // To each, not to all: nobody passes it on, so whoever is reached must hear it from here.
            self.say_complete(self.others());
        }
    }

    /// A member that was not there when everybody was told is told when it comes.
    pub(super) fn tell_complete(&mut self, peer: MemberIndex) {
        if self.complete && peer != self.me() {
            self.say_complete(vec![peer]);
        }
    }

    fn say_complete(&mut self, members: Vec<MemberIndex>) {
        let (_, frame) = self.seal(self.config.epoch.charter.rounds, 0, Body::Complete);
        let send = |to| Effect::Send {
            to,
            frame: frame.clone(),
        };
        self.out.extend(members.into_iter().map(send));
    }

    /// A member has all rounds; whoever has not may ask it for what is missing.
    pub(super) fn heard_complete(&mut self, member: MemberIndex, round: u64) {
        let last = self.config.epoch.charter.rounds;
        if round != last || member == self.me() || !self.completed.insert(member) {
            return;
        }
        self.out
            .push(Effect::Report(Report::MemberComplete { member }));
        if self.chain.learned.round < last {
            self.sync.behind = true;
            self.ask_first(member);
        }
    }

    /// Once per beat: asks the next member while something is missing.
    pub(super) fn ask_again(&mut self) {
        if self.sync.recovering() {
            let quorum = self.config.epoch.roster.quorum();
            let answered = |peer: &MemberIndex| {
                self.sync
                    .lost
                    .as_ref()
                    .is_some_and(|lost| lost.answers.contains_key(peer))
            };
            let enough = self
                .sync
                .lost
                .as_ref()
                .is_some_and(|lost| lost.answers.len() >= quorum);
            let silent: Vec<_> = self
                .others()
                .into_iter()
                .filter(|peer| !enough && !answered(peer))
                .collect();
            for peer in silent {
                self.ask(peer);
            }
        }
        if self.sync.behind || self.chain.unresolved.is_some() {
            self.ask_next();
        }
    }
}
