//! Members that do what they like: a member that keeps the rules, with a liar between it and the
//! world. What the liar feeds it is not checked by anybody, so it can be made to lead a round on
//! invented contributions.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use protocol::certificate::{Certificate, Verdict};
use protocol::charter::Epoch;
use protocol::envelope::{Opened, seal};
use protocol::message::{
    Block, Body, Checked, Content, Contribution, EntryFields, Message, Proposal, Scores,
};
use protocol::{Hash, MemberIndex, SecretKey};

use crate::invariants::{Spoken, read};
use crate::random::Random;

/// One way to misbehave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Behaviour {
    /// Says nothing while it leads.
    Silent,
    /// Votes for everything at once.
    DoubleVote,
    /// Proposes one thing to some and another to the others.
    DoubleProposal,
    /// Contributes twice.
    DoubleContribution,
    /// Writes scores of its own into another's row.
    ForgedRow,
    /// Gives a Receipt and leaves the entry out.
    IgnoredReceipt,
    /// Decides what no check accepts.
    BadDecision,
    /// Claims an outcome that nobody computes.
    BadOutcome,
    /// Puts an entry of its own in another's place.
    Stuffed,
    /// Proposes to go on from long ago.
    Stale,
    /// Signs with a key of its own making.
    WrongKey,
}

impl Behaviour {
    const ALL: [Self; 11] = [
        Self::Silent,
        Self::DoubleVote,
        Self::DoubleProposal,
        Self::DoubleContribution,
        Self::ForgedRow,
        Self::IgnoredReceipt,
        Self::BadDecision,
        Self::BadOutcome,
        Self::Stuffed,
        Self::Stale,
        Self::WrongKey,
    ];

    /// One to three of them.
    pub(super) fn some(random: &mut Random) -> Vec<Self> {
        (0..1 + random.below(3))
            .map(|_| Self::ALL[random.below(Self::ALL.len())])
            .collect()
    }
}

/// What a liar does with one message: what goes out instead, and what its own member hears.
#[derive(Default)]
pub(super) struct Act {
    /// To one, or to all others.
    pub(super) out: Vec<(Option<MemberIndex>, Bytes)>,
    /// Fed to its own member.
    pub(super) inject: Vec<Opened>,
    /// Whether this was a misdeed.
    pub(super) bad: bool,
}

/// The liar.
pub(super) struct Liar {
    epoch: Arc<Epoch>,
    me: MemberIndex,
    key: SecretKey,
    behaviours: Vec<Behaviour>,
    random: Random,
    view: u64,
    seen: Vec<Certificate>,
    voted: Option<Hash>,
    /// Contributions invented in another's name, by round.
    invented: BTreeMap<u64, (MemberIndex, Contribution)>,
    /// Blobs that it claims to have.
    pub(super) blobs: Vec<Hash>,
}

impl Liar {
    pub(super) fn new(
        epoch: Arc<Epoch>,
        me: MemberIndex,
        key: SecretKey,
        behaviours: Vec<Behaviour>,
        seed: u64,
    ) -> Self {
        let random = Random::new(seed, &format!("liar {me}"));
        Self {
            epoch,
            me,
            key,
            behaviours,
            random,
            view: 1,
            seen: Vec::new(),
            voted: None,
            invented: BTreeMap::new(),
            blobs: Vec::new(),
        }
    }

    fn does(&self, behaviour: Behaviour) -> bool {
        self.behaviours.contains(&behaviour)
    }

    fn leads(&self) -> bool {
        self.epoch.lead(self.view) == self.me
    }

    fn seal(&self, round: u64, view: u64, body: Body) -> Bytes {
        seal(&self.epoch, &self.key, round, view, self.me, body).1
    }

    /// Whom it harms in a round.
    fn victim(&self, round: u64) -> MemberIndex {
        let n = self.epoch.roster.len();
        MemberIndex(((self.me.at() + 1 + round as usize % (n - 1).max(1)) % n) as u16)
    }

    /// The decision of a lead.
    pub(super) fn decide(&mut self, honest: Vec<u8>) -> Vec<u8> {
        if self.does(Behaviour::BadDecision) {
            self.random.bytes().to_vec()
        } else {
            honest
        }
    }

    /// Its member entered a view.
    pub(super) fn entered(&mut self, view: u64) -> Act {
        self.view = view;
        let mut act = Act::default();
        let old = self.seen.iter().rev().nth(1).cloned();
        if let (true, true, Some(old)) = (self.leads(), self.does(Behaviour::Stale), old)
            && let Some(parent) = old.verdict.block()
        {
            let block = Block {
                epoch: self.epoch.id,
                view,
                parent,
                content: Content::Empty,
            };
            let proposal = Proposal {
                block,
                parent: Some(old),
                skipped: Vec::new(),
            };
            act.out
                .push((None, self.seal(0, view, Body::Proposal(Box::new(proposal)))));
            act.bad = true;
        }
        act
    }

    /// Something reached it: what its member hears instead.
    pub(super) fn incoming(&mut self, opened: Opened) -> Act {
        let mut act = Act::default();
        if let Opened::Certificate(certificate) = &opened
            && matches!(certificate.verdict, Verdict::Notarised(_))
        {
            self.seen.push(certificate.clone());
        }
        let Opened::Message(message) = &opened else {
            act.inject.push(opened);
            return act;
        };
        let harmed = message.sender == self.victim(message.round) && self.leads();
        match &message.body {
            Body::Contribution(own) if harmed && self.does(Behaviour::IgnoredReceipt) => {
                let entry = own.entry(&self.epoch.federation, message.round).id;
                let receipt = self.seal(0, self.view, Body::Receipt { entry });
                act.out.push((Some(message.sender), receipt));
                act.bad = true;
            }
            Body::Contribution(own) if harmed && self.does(Behaviour::Stuffed) => {
                let invented = Contribution {
                    fields: EntryFields {
                        blob: Hash(self.random.bytes()),
                        ..own.fields.clone()
                    },
                    nonce: self.random.bytes(),
                    ..own.clone()
                };
                let (_, invented) = self
                    .invented
                    .entry(message.round)
                    .or_insert_with(|| (message.sender, invented));
                self.blobs.push(invented.fields.blob);
                let body = Body::Contribution(invented.clone());
                act.inject.push(Opened::Message(Message {
                    body,
                    ..message.clone()
                }));
                act.bad = true;
            }
            Body::Scores(scores) if harmed && self.does(Behaviour::ForgedRow) => {
                let mut forged = scores.clone();
                forged.losses.iter_mut().for_each(|(_, loss)| *loss += 1.0);
                let body = Body::Scores(forged);
                act.inject.push(Opened::Message(Message {
                    body,
                    ..message.clone()
                }));
                act.bad = true;
            }
            _ => act.inject.push(opened),
        }
        act
    }

    /// Its member says something: what goes out instead.
    pub(super) fn outgoing(&mut self, to: Option<MemberIndex>, frame: Bytes) -> Act {
        let mut act = Act::default();
        let message = match read(&frame) {
            Spoken::Message(message) if message.sender == self.me => *message,
            _ => {
                act.out.push((to, frame));
                return act;
            }
        };
        if self.does(Behaviour::Silent) && self.leads() {
            act.bad = true;
            return act;
        }
        if self.does(Behaviour::WrongKey) && self.random.chance(0.3) {
            let key = SecretKey::from_bytes(&self.random.bytes());
            let Message {
                round, view, body, ..
            } = message;
            act.out
                .push((to, seal(&self.epoch, &key, round, view, self.me, body).1));
            act.bad = true;
            return act;
        }
        let Message { round, view, .. } = message;
        match message.body {
            Body::Proposal(proposal) => self.propose(&mut act, view, *proposal, frame),
            Body::Notarize { block, checked } => {
                self.voted = Some(block);
                act.out.push((to, frame));
                if self.does(Behaviour::DoubleVote) {
                    let other = Hash(self.random.bytes());
                    let mut say = |body| act.out.push((None, self.seal(0, view, body)));
                    say(Body::Notarize {
                        block: other,
                        checked,
                    });
                    say(Body::Finalize { block });
                    say(Body::Nullify);
                    act.bad = true;
                }
            }
            Body::Nullify => {
                act.out.push((to, frame));
                if let (true, Some(block)) = (self.does(Behaviour::DoubleVote), self.voted) {
                    let checked = Checked::Structure;
                    act.out
                        .push((None, self.seal(0, view, Body::Finalize { block })));
                    act.out
                        .push((None, self.seal(0, view, Body::Notarize { block, checked })));
                    act.bad = true;
                }
            }
            Body::Contribution(contribution) => {
                act.out.push((to, frame));
                if self.does(Behaviour::DoubleContribution) {
                    let other = Contribution {
                        nonce: self.random.bytes(),
                        ..contribution
                    };
                    act.out
                        .push((to, self.seal(round, view, Body::Contribution(other))));
                    act.bad = true;
                }
            }
            Body::Bundle(bundle) => {
                if let Some((victim, invented)) = self.invented.get(&round) {
                    let mut losses: Vec<_> = bundle
                        .entries
                        .iter()
                        .map(|entry| (entry.fields.blob, 1.0))
                        .collect();
                    losses.sort_by_key(|&(blob, _)| blob);
                    let entry = invented.entry(&self.epoch.federation, round).id;
                    let body = Body::Scores(Scores { entry, losses });
                    act.inject.push(self.pretend(*victim, round, body));
                }
                act.out.push((to, frame));
            }
            Body::Sheet(sheet) => {
                if let Some((victim, _)) = self.invented.get(&round) {
                    let body = Body::Inclusion {
                        sheet: sheet.root(),
                    };
                    act.inject.push(self.pretend(*victim, round, body));
                }
                act.out.push((to, frame));
            }
            _ => act.out.push((to, frame)),
        }
        act
    }

    fn propose(&mut self, act: &mut Act, view: u64, proposal: Proposal, frame: Bytes) {
        let mut other = proposal.clone();
        let Content::Learning(learning) = &mut other.block.content else {
            act.out.push((None, frame));
            return;
        };
        if let Some((victim, _)) = self.invented.get(&learning.round) {
            let others = learning
                .inclusions
                .iter()
                .filter(|(member, _)| member != victim);
            learning.inclusions = others.copied().collect();
        } else if self.does(Behaviour::BadOutcome) {
            learning.outcome = Hash(self.random.bytes());
        } else if self.does(Behaviour::DoubleProposal) {
            learning.decision.push(1);
        } else {
            act.out.push((None, frame));
            return;
        }
        act.bad = true;
        let other = self.seal(0, view, Body::Proposal(Box::new(other)));
        if self.does(Behaviour::DoubleProposal) {
            for member in self
                .epoch
                .roster
                .members()
                .filter(|&member| member != self.me)
            {
                let half = if member.0 % 2 == 0 { &frame } else { &other };
                act.out.push((Some(member), half.clone()));
            }
        } else {
            act.out.push((None, other));
        }
    }

    /// A message as if another had said it; only its own member believes it.
    fn pretend(&self, sender: MemberIndex, round: u64, body: Body) -> Opened {
        let signature = self.key.sign(b"pretended");
        Opened::Message(Message {
            round,
            view: 0,
            sender,
            body,
            signature,
        })
    }
}
