//! The safety properties S1 to S10, which must hold after every event of every run, under any
//! faults.
//!
//! A [`Monitor`] receives everything that members sign, persist and adopt, and checks every property
//! after every event. It counts signatures wherever they exist, not only certificates that a member
//! assembled: a quorum that no member noticed violates a property just the same. It does not verify
//! signatures: a message counts as its sender's when that member sends or persists it. The
//! properties are defined in `docs/protocol/properties.md`; there is one file for each.

mod accusations;
mod agreement;
mod applied;
mod chain;
mod frame;
mod ledger;
mod manifests;
mod mentions;
mod names;
mod notarised;
mod nullified;
mod parents;
mod receipts;
mod unmasked;
mod vectors;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use protocol::effects::FinalRound;
use protocol::message::{Block, Body, Entry, Kind, Message, RoundManifest};
use protocol::parameters::{Epoch, RoundMode};
use protocol::{Hash, MemberIndex, Record, Report, Time};

pub use frame::{DecodedFrame, kind, read_frame};
use ledger::{Fact, Ledger};

/// The violation of a property.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{property} was violated {:.3} s into the run: {what}", time.elapsed().as_secs_f64())]
pub struct Violation {
    /// When, on the simulation's clock.
    pub time: Time,
    /// The property, by number and name.
    pub property: &'static str,
    /// What happened.
    pub what: String,
}

/// One property.
trait Property: Send {
    /// Number and name of the property.
    fn name(&self) -> &'static str;

    /// Takes note of a fact that the ledger already holds. The error says how the property is
    /// violated.
    fn check(&mut self, fact: &Fact<'_>, ledger: &Ledger) -> Result<(), String>;
}

/// Checks every property after every event that is reported to it.
pub struct Monitor {
    ledger: Ledger,
    /// Who sent the frame that was read last, and the frame. A lead sends a long list to one member after another, and what it
    /// says is the same every time.
    last: (MemberIndex, Vec<u8>),
    properties: Vec<Box<dyn Property>>,
}

impl Monitor {
    /// Monitors a federation whose `faulty` members may behave arbitrarily. A member counts as
    /// having read a Receipt once `reading` has passed since it arrived, and has reported by then which
    /// lead it sends something to.
    pub fn new(epoch: Arc<Epoch>, faulty: BTreeSet<MemberIndex>, reading: Duration) -> Self {
        let names = names::NamesRemoved::new(&epoch, reading);
        let (removed, masked) = match epoch.protocol.privacy.mode() {
            RoundMode::Clear => (true, false),
            RoundMode::Named => (false, false),
            RoundMode::Masked(_) | RoundMode::Noised(..) => (false, true),
        };
        let names = removed.then(|| Box::new(names) as Box<dyn Property>);
        let mut monitor = Self {
            ledger: Ledger::new(epoch, faulty),
            last: (MemberIndex(0), Vec::new()),
            properties: vec![
                Box::<notarised::OneNotarised>::default(),
                Box::<nullified::NullifiedOrFinal>::default(),
                Box::<chain::OneChain>::default(),
                Box::<agreement::NoConflict>::default(),
                Box::<applied::AppliedOnce>::default(),
                Box::new(manifests::FaithfulManifests),
                Box::new(accusations::TrueEvidence),
                Box::new(receipts::ReceiptsKept::new(reading)),
                Box::new(parents::FinalParents),
            ],
        };
        monitor.properties.extend(names);
        if masked {
            monitor.properties.extend([
                Box::<unmasked::OneListUnmasked>::default() as Box<dyn Property>,
                Box::<vectors::OneVector>::default(),
            ]);
        }
        monitor
    }

    /// The entries that a final block is about, with their true authors and their losses.
    pub fn entries(&self, block: &Hash) -> Vec<(MemberIndex, Entry, Option<Vec<f64>>)> {
        let Some(manifest) = self.final_manifest(block) else {
            return Vec::new();
        };
        let rows = manifest.scores.unwrap_or_default();
        let rows = rows.into_iter().map(Some).chain(std::iter::repeat(None));
        let each = manifest.entries.into_iter().zip(rows);
        each.filter_map(|(entry, row)| {
            let (author, _) = *self.ledger.authors.get(&entry.id)?;
            Some((author, entry, row))
        })
        .collect()
    }

    /// The manifest that a final block is about.
    pub fn final_manifest(&self, block: &Hash) -> Option<RoundManifest> {
        let learning = self.ledger.blocks.get(block).and_then(Block::learning);
        self.manifest(&learning?.manifest)
    }

    /// The manifest with this root, if any member ever sent it.
    pub fn manifest(&self, root: &Hash) -> Option<RoundManifest> {
        self.ledger
            .manifests
            .get(root)
            .map(|(manifest, _)| manifest.clone())
    }

    /// The properties that it checks, by number and name.
    pub fn names(&self) -> Vec<&'static str> {
        let properties = self.properties.iter();
        properties.map(|property| property.name()).collect()
    }

    /// `by` sends `frame` to one member, or to all others.
    ///
    /// # Errors
    /// [`Violation`]: this event violates a property.
    pub fn sent(
        &mut self,
        now: Time,
        by: MemberIndex,
        to: Option<MemberIndex>,
        frame: &[u8],
    ) -> Result<(), Violation> {
        let repeated = now == self.ledger.now && by == self.last.0 && frame == self.last.1;
        self.ledger.now = now;
        if !repeated {
            self.read(by, frame)?;
            self.last = (by, frame.to_vec());
        }
        self.check(&Fact::Sent { by, to, frame })
    }

    /// Takes what a sent frame says.
    fn read(&mut self, by: MemberIndex, frame: &[u8]) -> Result<(), Violation> {
        if matches!(
            kind(frame),
            None | Some(Kind::Certificate | Kind::Progress | Kind::SyncRequest)
        ) {
            return Ok(());
        }
        match read_frame(frame) {
            DecodedFrame::Message(message) if message.sender == by => self.signed(&message),
            DecodedFrame::Evidence(evidence) if self.ledger.honest(by) => {
                self.check(&Fact::Accused(&evidence))
            }
            DecodedFrame::Message(_) | DecodedFrame::Evidence(_) | DecodedFrame::Other => Ok(()),
        }
    }

    /// `by` reports something.
    ///
    /// # Errors
    /// [`Violation`]: this event violates a property.
    pub fn reported(
        &mut self,
        now: Time,
        by: MemberIndex,
        report: &Report,
    ) -> Result<(), Violation> {
        self.ledger.now = now;
        match report {
            Report::Fault(evidence) if self.ledger.honest(by) => {
                self.check(&Fact::Accused(evidence))
            }
            Report::Entered { .. } | Report::Final { .. } => {
                self.check(&Fact::Reported { member: by, report })
            }
            _ => Ok(()),
        }
    }

    /// The run has ended.
    ///
    /// # Errors
    /// [`Violation`]: an earlier event violated a property, which shows only now.
    pub fn ended(&mut self, now: Time) -> Result<(), Violation> {
        self.ledger.now = now;
        self.check(&Fact::Ended)
    }

    /// `by` made a record durable.
    ///
    /// # Errors
    /// [`Violation`]: this event violates a property.
    pub fn persisted(
        &mut self,
        now: Time,
        by: MemberIndex,
        record: &Record,
    ) -> Result<(), Violation> {
        self.ledger.now = now;
        match record {
            Record::Vote(message) | Record::Proposed(message) | Record::Contributed(message)
                if message.sender == by =>
            {
                self.signed(message)
            }
            Record::Final { blocks, .. } => {
                blocks.iter().for_each(|block| self.ledger.block(block));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// `frame` is delivered to `to`.
    ///
    /// # Errors
    /// [`Violation`]: this event violates a property.
    pub fn delivered(&mut self, now: Time, to: MemberIndex, frame: &[u8]) -> Result<(), Violation> {
        self.ledger.now = now;
        if kind(frame) != Some(Kind::Receipt) {
            return Ok(());
        }
        let DecodedFrame::Message(message) = read_frame(frame) else {
            return Ok(());
        };
        let Message {
            view,
            sender: lead,
            body: Body::Receipt { entry },
            ..
        } = *message
        else {
            return Ok(());
        };
        self.check(&Fact::Receipted {
            member: to,
            lead,
            view,
            entry,
        })
    }

    /// `by` adopts the outcomes of these rounds, durably.
    ///
    /// # Errors
    /// [`Violation`]: this event violates a property.
    pub fn applied(
        &mut self,
        now: Time,
        by: MemberIndex,
        rounds: &[FinalRound],
    ) -> Result<(), Violation> {
        self.ledger.now = now;
        self.check(&Fact::Applied { member: by, rounds })
    }

    /// `by` adopts this outcome and, if it was away, skips those before it.
    ///
    /// # Errors
    /// [`Violation`]: this event violates a property.
    pub fn adopted(
        &mut self,
        now: Time,
        by: MemberIndex,
        round: u64,
        outcome: Hash,
    ) -> Result<(), Violation> {
        self.ledger.now = now;
        self.check(&Fact::Adopted {
            member: by,
            round,
            outcome,
        })
    }

    /// `member` crashed; its journal is lost too if `journal_lost`.
    ///
    /// # Errors
    /// [`Violation`]: this event violates a property.
    pub fn crashed(
        &mut self,
        now: Time,
        member: MemberIndex,
        journal_lost: bool,
    ) -> Result<(), Violation> {
        self.ledger.now = now;
        self.check(&Fact::Crashed { member })?;
        if journal_lost {
            self.check(&Fact::JournalLost { member })
        } else {
            Ok(())
        }
    }

    /// `member` starts in this epoch and has adopted outcomes up to round `adopted`.
    ///
    /// # Errors
    /// [`Violation`]: this event violates a property.
    pub fn begins(
        &mut self,
        now: Time,
        member: MemberIndex,
        adopted: u64,
    ) -> Result<(), Violation> {
        self.ledger.now = now;
        self.check(&Fact::Begins { member, adopted })
    }

    /// Counts `member` as faulty from here on, for example because it cannot know that it lost its
    /// journal.
    pub fn count_as_faulty(&mut self, member: MemberIndex) {
        self.ledger.faulty.insert(member);
    }

    fn signed(&mut self, message: &Message) -> Result<(), Violation> {
        let completed = self.ledger.signed(message);
        self.check(&Fact::Signed(message))?;
        completed.map_or(Ok(()), |fact| self.check(&fact))
    }

    fn check(&mut self, fact: &Fact<'_>) -> Result<(), Violation> {
        for property in &mut self.properties {
            property
                .check(fact, &self.ledger)
                .map_err(|what| Violation {
                    time: self.ledger.now,
                    property: property.name(),
                    what,
                })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
