//! What must hold at every moment of every run, whatever is broken.
//!
//! A [`Watch`] hears everything that members sign, keep and adopt, and checks every property after
//! every event. It counts signatures that exist anywhere, not certificates that somebody put
//! together: a quorum that nobody noticed is a fault all the same. Signatures themselves are not
//! checked here; a message counts as its sender's when it is the sender that sends or keeps it.

mod accusations;
mod agreement;
mod applied;
mod chain;
mod frame;
mod ledger;
mod notarised;
mod nullified;
mod parents;
mod receipts;
mod sheets;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use protocol::charter::Epoch;
use protocol::effects::FinalRound;
use protocol::evidence::Evidence;
use protocol::message::{Body, Kind, Message, Sheet};
use protocol::{Hash, MemberIndex, Record, Time};

pub(crate) use frame::{Spoken, kind, read};
use ledger::{Fact, Ledger};

/// A property that did not hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{property} was violated {:.3} s into the run: {what}", time.elapsed().as_secs_f64())]
pub struct Violation {
    /// When, on the simulation's clock.
    pub time: Time,
    /// Which property, by number and name.
    pub property: &'static str,
    /// What happened.
    pub what: String,
}

/// One property.
trait Property: Send {
    /// Its number and name.
    fn name(&self) -> &'static str;

    /// Takes note of a fact that the ledger already holds; says what is wrong, if it is.
    fn check(&mut self, fact: &Fact<'_>, ledger: &Ledger) -> Result<(), String>;
}

/// Hears everything and checks every property.
pub struct Watch {
    ledger: Ledger,
    properties: Vec<Box<dyn Property>>,
}

impl Watch {
    /// Watches a federation in which `faulty` may do anything. A member has read a Receipt once
    /// `reading` has passed since it arrived.
    pub fn new(epoch: Arc<Epoch>, faulty: BTreeSet<MemberIndex>, reading: Duration) -> Self {
        Self {
            ledger: Ledger::new(epoch, faulty),
            properties: vec![
                Box::<notarised::OneNotarised>::default(),
                Box::<nullified::NotBoth>::default(),
                Box::<chain::OneChain>::default(),
                Box::<agreement::NoConflict>::default(),
                Box::<applied::AppliedOnce>::default(),
                Box::new(sheets::TrueSheets),
                Box::new(accusations::OnlyTheGuilty),
                Box::new(receipts::ReceiptsKept::new(reading)),
                Box::new(parents::FinalParents),
            ],
        }
    }

    /// The sheet with this root, if anybody ever sent it.
    pub(crate) fn sheet(&self, root: &Hash) -> Option<Sheet> {
        self.ledger.sheets.get(root).map(|(sheet, _)| sheet.clone())
    }

    /// The properties that it checks, by number and name.
    pub fn names(&self) -> Vec<&'static str> {
        let properties = self.properties.iter();
        properties.map(|property| property.name()).collect()
    }

    /// `by` sends `frame` to one or all.
    ///
    /// # Errors
    /// [`Violation`]: a property does not hold any more.
    pub fn said(&mut self, now: Time, by: MemberIndex, frame: &[u8]) -> Result<(), Violation> {
        self.ledger.now = now;
        if matches!(
            kind(frame),
            None | Some(Kind::Certificate | Kind::Progress | Kind::SyncRequest)
        ) {
            return Ok(());
        }
        match read(frame) {
            Spoken::Message(message) if message.sender == by => self.signed(&message),
            Spoken::Evidence(evidence) if self.ledger.honest(by) => {
                self.check(&Fact::Accused(&evidence))
            }
            Spoken::Message(_) | Spoken::Evidence(_) | Spoken::Other => Ok(()),
        }
    }

    /// `by` made a record durable.
    ///
    /// # Errors
    /// [`Violation`]: a property does not hold any more.
    pub fn kept(&mut self, now: Time, by: MemberIndex, record: &Record) -> Result<(), Violation> {
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

    /// `frame` reached `to`.
    ///
    /// # Errors
    /// [`Violation`]: a property does not hold any more.
    pub fn heard(&mut self, now: Time, to: MemberIndex, frame: &[u8]) -> Result<(), Violation> {
        self.ledger.now = now;
        if kind(frame) != Some(Kind::Receipt) {
            return Ok(());
        }
        let Spoken::Message(message) = read(frame) else {
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
    /// [`Violation`]: a property does not hold any more.
    pub fn applied(
        &mut self,
        now: Time,
        by: MemberIndex,
        rounds: &[FinalRound],
    ) -> Result<(), Violation> {
        self.ledger.now = now;
        self.check(&Fact::Applied { member: by, rounds })
    }

    /// `by` adopts this outcome and, if it was away, passes over those before it.
    ///
    /// # Errors
    /// [`Violation`]: a property does not hold any more.
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

    /// `by` reports a fault of another member.
    ///
    /// # Errors
    /// [`Violation`]: a property does not hold any more.
    pub fn accused(
        &mut self,
        now: Time,
        by: MemberIndex,
        evidence: &Evidence,
    ) -> Result<(), Violation> {
        self.ledger.now = now;
        if self.ledger.honest(by) {
            self.check(&Fact::Accused(evidence))
        } else {
            Ok(())
        }
    }

    /// `member` crashed; its journal is gone too if `emptied`.
    ///
    /// # Errors
    /// [`Violation`]: a property does not hold any more.
    pub fn crashed(
        &mut self,
        now: Time,
        member: MemberIndex,
        emptied: bool,
    ) -> Result<(), Violation> {
        self.ledger.now = now;
        self.check(&Fact::Crashed { member })?;
        if emptied {
            self.check(&Fact::Emptied { member })
        } else {
            Ok(())
        }
    }

    /// `member` keeps no rules from here on, for a reason that is not its own: it counts as faulty.
    pub(crate) fn excuse(&mut self, member: MemberIndex) {
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
