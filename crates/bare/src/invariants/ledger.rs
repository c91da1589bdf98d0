//! Everything that members ever signed or sent, indexed for the properties.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use protocol::effects::FinalRound;
use protocol::evidence::Evidence;
use protocol::message::{Block, Body, MemberScores, Message, RoundManifest};
use protocol::parameters::Epoch;
use protocol::{Hash, MemberIndex, Report, Time};

/// An event that a property may depend on.
#[derive(Debug)]
pub(crate) enum Fact<'a> {
    /// A member signed this message. Reported when it is made durable and when it is sent, so
    /// possibly several times.
    Signed(&'a Message),
    /// q Notarize votes for a block exist.
    Notarised { view: u64, block: Hash },
    /// q Nullify votes of a view exist.
    Nullified { view: u64 },
    /// q Finalize votes for a block exist.
    Final { view: u64, block: Hash },
    /// A lead's Receipt reached a member.
    Receipted {
        member: MemberIndex,
        lead: MemberIndex,
        view: u64,
        entry: Hash,
    },
    /// A member adopts outcomes.
    Applied {
        member: MemberIndex,
        rounds: &'a [FinalRound],
    },
    /// A member adopts an outcome and may skip earlier ones.
    Adopted {
        member: MemberIndex,
        round: u64,
        outcome: Hash,
    },
    /// An honest member reports evidence.
    Accused(&'a Evidence),
    /// A member sends a message to one member, or to all others.
    Sent {
        by: MemberIndex,
        to: Option<MemberIndex>,
        frame: &'a [u8],
    },
    /// A member reports that it entered a view, or that a round is final.
    Reported {
        member: MemberIndex,
        report: &'a Report,
    },
    /// The run has ended.
    Ended,
    /// A member crashed, and lost everything that is not in its journal.
    Crashed { member: MemberIndex },
    /// A member starts, and has adopted outcomes up to a round.
    Begins { member: MemberIndex, adopted: u64 },
    /// A member lost its journal.
    JournalLost { member: MemberIndex },
}

/// Everything that was signed or sent.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// Roster and parameter set.
    pub(crate) epoch: Arc<Epoch>,
    /// Members that may behave arbitrarily.
    pub(crate) faulty: BTreeSet<MemberIndex>,
    /// The time of the event under way.
    pub(crate) now: Time,
    /// All blocks ever proposed or forwarded.
    pub(crate) blocks: BTreeMap<Hash, Block>,
    newest: Option<Block>,
    /// All manifests ever sent, by root, with their senders.
    pub(crate) manifests: BTreeMap<Hash, (RoundManifest, BTreeSet<MemberIndex>)>,
    /// The author and the round of every entry, by its id.
    pub(crate) authors: BTreeMap<Hash, (MemberIndex, u64)>,
    /// All scores ever sent, by author and round.
    pub(crate) scores: BTreeMap<(MemberIndex, u64), Vec<MemberScores>>,
    notarize: BTreeMap<(u64, Hash), BTreeSet<MemberIndex>>,
    finalize: BTreeMap<(u64, Hash), BTreeSet<MemberIndex>>,
    nullify: BTreeMap<u64, BTreeSet<MemberIndex>>,
    outcome_votes: BTreeMap<(Hash, Hash), BTreeSet<MemberIndex>>,
    /// Final blocks and their ancestors.
    settled: BTreeSet<Hash>,
    /// The rounds of these blocks, with their outcomes.
    outcomes: BTreeSet<(u64, Hash)>,
}

impl Ledger {
    pub(crate) fn new(epoch: Arc<Epoch>, faulty: BTreeSet<MemberIndex>) -> Self {
        Self {
            epoch,
            faulty,
            now: Time::ZERO,
            blocks: BTreeMap::new(),
            newest: None,
            manifests: BTreeMap::new(),
            authors: BTreeMap::new(),
            scores: BTreeMap::new(),
            notarize: BTreeMap::new(),
            finalize: BTreeMap::new(),
            nullify: BTreeMap::new(),
            outcome_votes: BTreeMap::new(),
            settled: BTreeSet::new(),
            outcomes: BTreeSet::new(),
        }
    }

    /// Returns whether a member follows the protocol.
    pub(crate) fn honest(&self, member: MemberIndex) -> bool {
        !self.faulty.contains(&member)
    }

    /// Returns whether q Finalize votes for the block exist, or it is the epoch itself.
    pub(crate) fn is_final(&self, block: &Hash) -> bool {
        let quorum = self.epoch.roster.quorum();
        *block == self.epoch.id
            || self.blocks.get(block).is_some_and(|known| {
                let votes = self.finalize.get(&(known.view, *block));
                votes.is_some_and(|votes| votes.len() >= quorum)
            })
    }

    /// Returns whether a block or one that stands on it has q Finalize votes.
    pub(crate) fn has_settled(&self, block: &Hash) -> bool {
        self.settled.contains(block)
    }

    /// Returns whether q Nullify votes of the view exist.
    pub(crate) fn is_nullified(&self, view: u64) -> bool {
        self.nullify
            .get(&view)
            .is_some_and(|votes| votes.len() >= self.epoch.roster.quorum())
    }

    /// Returns whether this outcome of a round is in a final block or an ancestor of one.
    pub(crate) fn is_settled(&self, round: u64, outcome: Hash) -> bool {
        let began = &self.epoch.began;
        (began.round, began.outcome) == (round, outcome)
            || self.outcomes.contains(&(round, outcome))
    }

    /// A member's name, for people.
    pub(crate) fn name(&self, member: MemberIndex) -> &str {
        self.epoch.roster.name(member)
    }

    /// Records a message. Returns the quorum that its vote completes, if it does.
    pub(crate) fn signed(&mut self, message: &Message) -> Option<Fact<'static>> {
        let (view, by) = (message.view, message.sender);
        let quorum = self.epoch.roster.quorum();
        let completes =
            |votes: &mut BTreeSet<MemberIndex>| votes.insert(by) && votes.len() == quorum;
        match &message.body {
            Body::Contribution(contribution) => {
                let entry = contribution.entry(&self.epoch.federation, message.round);
                self.authors.entry(entry.id).or_insert((by, message.round));
            }
            Body::Keys(keys) => {
                let id = keys.id(&self.epoch.federation, message.round, by);
                self.authors.entry(id).or_insert((by, message.round));
            }
            &Body::Outcome { block, outcome } => {
                if completes(self.outcome_votes.entry((block, outcome)).or_default()) {
                    let masked = self.blocks.get(&block).and_then(Block::masked);
                    self.outcomes
                        .extend(masked.map(|masked| (masked.round, outcome)));
                }
            }
            Body::Scores(scores) => {
                let sent = self.scores.entry((by, message.round)).or_default();
                if sent.last() != Some(scores) {
                    sent.push(scores.clone());
                }
            }
            Body::ContributionList(contribution_list) => {
                let manifest = RoundManifest {
                    entries: contribution_list.entries.clone(),
                    scores: None,
                };
                self.manifest(manifest, by);
            }
            Body::Manifest(manifest) => self.manifest(manifest.clone(), by),
            Body::Proposal(proposal) => self.block(&proposal.block),
            Body::SyncResponse(response) => {
                response.blocks.iter().for_each(|block| self.block(block))
            }
            &Body::Notarize { block, .. } => {
                if completes(self.notarize.entry((view, block)).or_default()) {
                    return Some(Fact::Notarised { view, block });
                }
            }
            &Body::Finalize { block } => {
                if completes(self.finalize.entry((view, block)).or_default()) {
                    self.settle(block);
                    return Some(Fact::Final { view, block });
                }
            }
            Body::Nullify => {
                if completes(self.nullify.entry(view).or_default()) {
                    return Some(Fact::Nullified { view });
                }
            }
            Body::Receipt { .. }
            | Body::KeyList(_)
            | Body::MaskedVector(_)
            | Body::MaskedManifest(_)
            | Body::Unmasking(_)
            | Body::Inclusion { .. }
            | Body::Progress { .. }
            | Body::SyncRequest { .. }
            | Body::Complete
            | Body::Abstain
            | Body::Amendment(_)
            | Body::Approval { .. }
            | Body::Confirmation(_)
            | Body::Standing(_) => {}
        }
        None
    }

    /// Records a block.
    pub(crate) fn block(&mut self, block: &Block) {
        // All members persist the same block; comparing it is cheaper than hashing it again.
        if self.newest.as_ref() != Some(block) {
            self.newest = Some(block.clone());
            self.blocks.insert(block.hash(), block.clone());
        }
    }

    fn settle(&mut self, mut block: Hash) {
        while self.settled.insert(block) {
            let Some(known) = self.blocks.get(&block) else {
                break;
            };
            if let Some(learning) = known.learning() {
                self.outcomes.insert((learning.round, learning.outcome));
            }
            if let Some(masked) = known.masked() {
                self.outcomes.insert((masked.round - 1, masked.state));
            }
            block = known.parent;
        }
    }

    fn manifest(&mut self, manifest: RoundManifest, by: MemberIndex) {
        self.manifests
            .entry(manifest.root())
            .or_insert((manifest, BTreeSet::new()))
            .1
            .insert(by);
    }
}
