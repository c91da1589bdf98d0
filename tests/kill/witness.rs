//! Reads from a silo's journal what it signed and adopted, and checks it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rota::node::institution::Institution;
use rota::node::store::{DiskJournal, Owner};
use rota::protocol::certificate::Verdict;
use rota::protocol::message::Body;
use rota::protocol::{self, Hash, codec};
use rota::silo::{Journal, JournalRecord};

/// Statements and adoptions of a silo, read from its journal after each of its ends.
#[derive(Default)]
pub(crate) struct Witness {
    /// Statements by view or round, of which there may be only one each.
    notarize: BTreeMap<u64, BTreeSet<Hash>>,
    finalize: BTreeMap<u64, BTreeSet<Hash>>,
    nullify: BTreeSet<u64>,
    proposed: BTreeMap<u64, BTreeSet<Hash>>,
    contributed: BTreeMap<u64, BTreeSet<Hash>>,
    /// Outcomes of secure-aggregation rounds that the silo voted for.
    outcomes: BTreeMap<u64, BTreeSet<Hash>>,
    /// Blocks of secure-aggregation rounds.
    masked: BTreeMap<u64, Hash>,
    /// Final blocks by view.
    pub(crate) blocks: BTreeMap<u64, Hash>,
    /// Learning rounds: block and outcome.
    pub(crate) rounds: BTreeMap<u64, (Hash, Hash)>,
    /// Adopted rounds with their outcomes.
    pub(crate) adopted: BTreeMap<u64, Hash>,
}

impl Witness {
    /// Reads a journal that no process has open.
    pub(crate) fn read(&mut self, config: &Path, context: &str) {
        let institution = Institution::load(config).unwrap();
        let owner = Owner {
            federation: institution.agreement.epoch.federation,
            me: institution.me,
            key: institution.key.clone(),
        };
        let mut journal = DiskJournal::open(&institution.state, &owner)
            .unwrap_or_else(|error| panic!("{context}: {error}"));
        let mut last_adopted = 0;
        for record in journal.load().unwrap() {
            match record {
                JournalRecord::Adopted(adopted) => {
                    assert!(
                        adopted.round > last_adopted,
                        "{context}: {} adopted twice",
                        adopted.round
                    );
                    last_adopted = adopted.round;
                    self.adopted.insert(adopted.round, Hash(adopted.outcome));
                }
                JournalRecord::Protocol(record) => self.record(record),
                JournalRecord::Lost
                | JournalRecord::Begun
                | JournalRecord::Trained { .. }
                | JournalRecord::Prepared { .. } => {}
            }
        }
    }

    fn record(&mut self, record: protocol::Record) {
        match record {
            protocol::Record::Vote(message) => match message.body {
                Body::Notarize { block, .. } => {
                    self.notarize.entry(message.view).or_default().insert(block);
                }
                Body::Finalize { block } => {
                    self.finalize.entry(message.view).or_default().insert(block);
                }
                Body::Nullify => {
                    self.nullify.insert(message.view);
                }
                Body::Outcome { outcome, .. } => {
                    self.outcomes
                        .entry(message.view)
                        .or_default()
                        .insert(outcome);
                }
                _ => {}
            },
            protocol::Record::Proposed(message) => {
                if let Body::Proposal(proposal) = message.body {
                    let block = proposal.block.hash();
                    self.proposed.entry(message.view).or_default().insert(block);
                }
            }
            protocol::Record::Contributed(message) => {
                let said = match message.body {
                    Body::Contribution(contribution) => Some(contribution.fields.blob),
                    Body::Keys(keys) => Some(Hash::of(&codec::encode(&keys))),
                    _ => None,
                };
                let contributed = self.contributed.entry(message.round).or_default();
                contributed.extend(said);
            }
            protocol::Record::Final { blocks, .. } => {
                for block in blocks {
                    let before = self.blocks.insert(block.view, block.hash());
                    assert!(
                        before.is_none_or(|before| before == block.hash()),
                        "view {}",
                        block.view
                    );
                    if let Some(learning) = block.learning() {
                        self.settled(learning.round, (block.hash(), learning.outcome));
                    }
                    if let Some(masked) = block.masked() {
                        // A round names the outcome of the one before.
                        let before = self.masked.get(&(masked.round - 1)).copied();
                        if let Some(before) = before {
                            self.settled(masked.round - 1, (before, masked.state));
                        }
                        self.masked.insert(masked.round, block.hash());
                    }
                }
            }
            protocol::Record::Certified(certificate) => {
                if let Verdict::Outcome { block, outcome } = certificate.verdict {
                    let masked = self.masked.iter();
                    let mut rounds = masked.filter(|(_, of)| **of == block);
                    let round = rounds.next().map(|(round, _)| *round);
                    if let Some(round) = round {
                        self.settled(round, (block, outcome));
                    }
                }
            }
            protocol::Record::Block(_)
            | protocol::Record::Applied { .. }
            | protocol::Record::Circle(_)
            | protocol::Record::Standing(_)
            | protocol::Record::Confirmed(_) => {}
            protocol::Record::Outdated(what) => panic!("a journal lacks {what}"),
        }
    }

    /// A final round and its outcome.
    fn settled(&mut self, round: u64, now: (Hash, Hash)) {
        let before = self.rounds.insert(round, now);
        assert!(before.is_none_or(|before| before == now), "round {round}");
    }

    /// Checks that the silo signed no two different statements of one kind in a view or round.
    pub(crate) fn check(&self, context: &str, rounds: u64) {
        for (what, said) in [
            ("Notarize", &self.notarize),
            ("Finalize", &self.finalize),
            ("proposals", &self.proposed),
            ("outcomes", &self.outcomes),
            ("contributions", &self.contributed),
        ] {
            for (at, said) in said {
                assert!(
                    said.len() == 1,
                    "{context}: two different {what} at {at}: {said:?}"
                );
            }
        }
        for view in &self.nullify {
            let finalize = self.finalize.contains_key(view);
            assert!(!finalize, "{context}: Nullify and Finalize in view {view}");
        }
        for (round, outcome) in &self.adopted {
            assert_eq!(self.rounds[round].1, *outcome, "{context}: round {round}");
        }
        let all: Vec<_> = self.rounds.keys().copied().collect();
        assert_eq!(all, (1..=rounds).collect::<Vec<_>>(), "{context}");
        assert_eq!(self.adopted.keys().next_back(), Some(&rounds), "{context}");
    }
}
