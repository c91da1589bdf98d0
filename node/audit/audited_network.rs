//! Passes what a silo sends on to its network, and writes it down before it leaves.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use protocol::envelope::heading;
use protocol::net::{Command, Event as NetworkEvent};
use protocol::{Hash, MemberIndex};
use tokio::sync::mpsc;

use super::line::{AuditEvent, hex};
use super::log::AuditLog;

/// Commands that are written and passed on together.
const BATCH: usize = 64;
/// Receiver of a message to everybody.
pub(super) const ALL: &str = "all";

/// By ticket, who asked for which blobs.
type Asked = BTreeMap<u64, (MemberIndex, Vec<Hash>)>;

/// Requests of members for blobs.
#[derive(Clone, Default)]
pub(crate) struct Questions(Arc<Mutex<Asked>>);

impl Questions {
    /// Takes note of an event on its way to the silo.
    pub(crate) fn observe(&self, event: &NetworkEvent) {
        if let NetworkEvent::Wanted { by, blobs, ticket } = event {
            self.locked().insert(*ticket, (*by, blobs.clone()));
        }
    }

    fn answered(&self, ticket: u64) -> Option<(MemberIndex, Vec<Hash>)> {
        self.locked().remove(&ticket)
    }

    fn locked(&self) -> MutexGuard<'_, Asked> {
        // No code panics while it holds this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Stands between a silo and its network.
pub(crate) struct AuditedNetwork {
    pub(crate) log: AuditLog,
    pub(crate) questions: Questions,
    /// The members' names, in the order of the roster.
    pub(crate) names: Vec<String>,
    pub(crate) me: MemberIndex,
}

impl AuditedNetwork {
    /// Passes commands on until the silo or the network ends. Every line is written before what it is
    /// about is passed on.
    pub(crate) async fn pass(
        mut self,
        mut from: mpsc::Receiver<Command>,
        to: mpsc::Sender<Command>,
    ) {
        let mut batch = Vec::with_capacity(BATCH);
        let mut failed = false;
        while from.recv_many(&mut batch, BATCH).await > 0 {
            for command in &batch {
                self.note(command);
            }
            match self.log.flush() {
                Ok(()) => failed = false,
                Err(why) => {
                    if !std::mem::replace(&mut failed, true) {
                        tracing::warn!("the audit log cannot be written: {why}");
                    }
                    self.log.give_up();
                }
            }
            for command in batch.drain(..) {
                if to.send(command).await.is_err() {
                    return;
                }
            }
        }
    }

    /// Adds the lines about a command.
    fn note(&mut self, command: &Command) {
        match command {
            Command::Send { to, frame } => {
                let to = self.name(*to);
                self.log.add(message(to, frame));
            }
            Command::Publish { frame } => self.log.add(message(ALL.into(), frame)),
            Command::Serve { ticket, blobs } => {
                let Some((by, asked)) = self.questions.answered(*ticket) else {
                    return;
                };
                for (hash, blob) in asked.iter().zip(blobs) {
                    if let Some(blob) = blob {
                        self.log.add(AuditEvent::Blob {
                            to: self.name(by),
                            bytes: blob.len() as u64,
                            hash: hex(hash),
                        });
                    }
                }
            }
            Command::Fetch { blobs, from } => {
                let others = self.names.len() - 1;
                let asked = from.iter().filter(|member| **member != self.me);
                let to = match asked.clone().count() {
                    all if all == others && all > 1 => ALL.to_owned(),
                    _ => {
                        let names: Vec<_> = asked.map(|member| self.name(*member)).collect();
                        names.join(", ")
                    }
                };
                for blob in blobs {
                    self.log.add(AuditEvent::Request {
                        to: to.clone(),
                        hash: hex(&blob.hash),
                    });
                }
            }
            // These say nothing to anybody.
            Command::Judge { .. } | Command::Await { .. } | Command::Mute { .. } => {}
        }
    }

    fn name(&self, member: MemberIndex) -> String {
        let name = self.names.get(member.at());
        name.cloned().unwrap_or_else(|| member.to_string())
    }
}

fn message(to: String, frame: &[u8]) -> AuditEvent {
    let heading = heading(frame);
    let above = |number: u64| (number > 0).then_some(number);
    let kind = heading.and_then(|heading| heading.kind);
    AuditEvent::Message {
        to,
        kind: kind.map_or_else(|| "unknown".into(), |kind| format!("{kind:?}")),
        round: heading.and_then(|heading| above(heading.round)),
        view: heading.and_then(|heading| above(heading.view)),
        bytes: frame.len() as u64,
        hash: hex(&Hash::of(frame)),
    }
}
