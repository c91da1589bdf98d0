//! A member of a federation as a state machine: inputs in, effects out. The rules R1–R5 stand in
//! `docs/protocol/rules.md`.
//!
//! | file | holds |
//! |---|---|
//! | `config` | configuration that a member starts with |
//! | `receive`, `answers`, `queries` | who takes a message or an answer; what the environment may ask |
//! | `restart` | restarting with the records of the journal |
//! | `consensus` | agreement on blocks; names none of the other sides |
//! | `rounds` | rounds of learning, in clear and masked |
//! | `governance` | changes of the agreement |
//! | `steps` | what an event of one side means for the others, in the order of effects |
//!
//! A rule sees only what it depends on: structs like `Judging` or `Voting` are built for one call and borrow
//! those fields of [`Member`] that they may read or change. They give back what concerns other fields: a
//! vote, a block to propose, evidence. The methods of [`Member`] itself say in which order that is done.
//!
//! Every input changes some of this state. Then `Member::drive` takes all steps that have become possible
//! or due, as a function of the state alone, until nothing is left to do. So the order of messages
//! does not matter, and a message that was lost has the same effect when it is sent again.

mod answers;
mod config;
mod consensus;
mod governance;
mod queries;
mod receive;
mod restart;
mod rounds;
mod steps;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::effects::{Effect, Input, Record};
use crate::envelope::Opened;
use crate::roster::MemberIndex;
use crate::time::Time;

pub use config::{Config, Examine, Start};
pub use governance::approvals::KEPT;

use consensus::Consensus;
use consensus::outbox::Outbox;
use consensus::participation::JournalState;
use governance::Governance;
use governance::recovery::still_handles;
use rounds::Rounds;

/// The state machine of one member: its whole behaviour towards the others.
pub struct Member {
    config: Config,
    now: Time,
    consensus: Consensus,
    rounds: Rounds,
    governance: Governance,
    out: Outbox,
}

impl Member {
    /// Starts a member. Its first effects are added to `effects`, in the order in which to carry them
    /// out.
    pub fn new(config: Config, start: Start, now: Time, effects: &mut Vec<Effect>) -> Self {
        let epoch = &config.epoch;
        let (past, records) = match start {
            Start::New => (JournalState::Empty, Vec::new()),
            Start::Kept(records) if records.iter().all(Record::outlives_epochs) => {
                (JournalState::Empty, records)
            }
            // It may have begun without its journal, and have stopped before it knew what its key signed.
            Start::Kept(records) if !records.iter().any(Record::took_part) => {
                (JournalState::Unsigned, records)
            }
            Start::Kept(records) => (JournalState::Kept, records),
            Start::Lost => (JournalState::Lost, Vec::new()),
        };
        let mut member = Self {
            consensus: Consensus::new(epoch, past, now),
            rounds: Rounds::new(epoch, config.ended, now),
            governance: Governance::new(config.paused),
            out: Outbox::new(config.me),
            config,
            now,
        };
        let applied = member.restore(records);
        member.begin(applied);
        member.try_to_take_part();
        member.run_until_quiet();
        member.out.move_to(effects);
        member
    }

    /// Takes one input. Its effects are added to `effects`, in the order in which to carry them out.
    /// A time before that of an earlier step counts as that earlier time.
    pub fn step(&mut self, now: Time, input: Input, effects: &mut Vec<Effect>) {
        self.now = self.now.max(now);
        if self.consensus.over || self.governance.recoveries.signed() && !still_handles(&input) {
            return;
        }
        match input {
            Input::Opened(Opened::Message(message)) if message.sender == self.config.me => {
                self.own_message_from_outside(&message);
            }
            Input::Opened(Opened::Message(message)) => self.receive(message),
            Input::Opened(Opened::Certificate(certificate)) => self.add_certificate(certificate),
            Input::Opened(Opened::Evidence(evidence)) => self.accuse(*evidence),
            Input::Opened(Opened::Passage(passage)) => self.pass(*passage),
            Input::Opened(Opened::Known) | Input::Time => {}
            Input::Approve { amendment, number } => {
                let known = self.amending().approve(*amendment, number);
                self.follow(known);
            }
            Input::Withdraw { amendment, number } => {
                let known = self.amending().withdraw(amendment, number);
                self.follow(known);
            }
            Input::Arrived { key } => {
                let known = self.amending().arrived(key);
                self.follow(known);
            }
            Input::Resume => self.governance.paused = false,
            Input::Recover { lost, abandon } => self.recovering().recover(lost, abandon),
            Input::GiveUp { round } => self.recovering().give_up(round),
            Input::KeyElsewhere => self.own_key().elsewhere(),
            Input::Up { peer, round_trip } => self.peer_up(peer, round_trip),
            Input::Down { peer } => self.peer_down(peer),
            Input::Done(answer) => self.done(answer),
        }
        self.run_until_quiet();
        self.out.move_to(effects);
    }

    /// Does everything that has become possible or due, and takes the messages to itself, until
    /// nothing is left.
    fn run_until_quiet(&mut self) {
        loop {
            if self.consensus.over {
                break;
            }
            self.drive();
            let Some(message) = self.out.next_own() else {
                break;
            };
            self.receive(message);
        }
    }

    /// Does everything that is possible or due in the present state.
    fn drive(&mut self) {
        self.recovering().sign_standing();
        if self.governance.recoveries.signed() {
            if let Some(passage) = self.recovering().go_on() {
                self.pass(passage);
            }
            return self.each_heartbeat();
        }
        self.settle();
        if self.config.bystander.is_none() {
            self.adopting().adopt();
            self.adopting().request_plan();
        }
        self.contributing().train();
        self.contributing().contribute();
        self.contributing().say_nothing();
        let kind = self.rounds.kind;
        kind.answer(self);
        self.lead();
        if !self.consensus.participation.listening() {
            // Otherwise the proposal stays: this member may be allowed to vote later in this view.
            self.judge();
        }
        let spans = self.rounds.spans(&self.config.epoch);
        if let Some(reason) = self.timing().lead_fails(spans) {
            self.voting().nullify(reason);
        }
        self.each_heartbeat();
    }
}

/// Signatures over a manifest by the authors of its entries, ascending by member.
type Inclusions = Arc<[(MemberIndex, crate::identity::Signature)]>;
/// Something about each of some members.
type ByMember<T> = BTreeMap<MemberIndex, T>;
