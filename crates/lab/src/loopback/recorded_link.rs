//! The tap between a silo and its mesh.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mesh::{Command, Event};
use protocol::net::Acceptance;
use protocol::{Hash, MemberIndex};
use simulations::{Recorder, Tamper};
use tokio::sync::mpsc;

/// Records what one silo sends and receives; for a Byzantine silo it changes what is sent.
#[derive(Clone)]
pub(super) struct RecordedLink {
    pub(super) me: MemberIndex,
    pub(super) recorder: Recorder,
    pub(super) tamper: Option<Arc<Mutex<Tamper>>>,
    /// Bytes of messages by forwarding member, shared by all taps.
    pub(super) messages: Vec<Arc<AtomicU64>>,
    pub(super) mesh: mpsc::Sender<Command>,
}

impl RecordedLink {
    /// Passes commands from the silo to its mesh, until one of them ends.
    pub(super) async fn outgoing(self, mut commands: mpsc::Receiver<Command>) {
        while let Some(command) = commands.recv().await {
            let instead = match &self.tamper {
                Some(tamper) => lock(tamper).outgoing(command),
                None => vec![command],
            };
            if !self.send(instead).await {
                return;
            }
        }
    }

    /// Gives commands to the mesh. False if it has ended.
    async fn send(&self, commands: Vec<Command>) -> bool {
        for command in commands {
            match &command {
                Command::Send { to, frame } => self.recorder.sent(self.me, Some(*to), frame),
                Command::Publish { frame } => self.recorder.sent(self.me, None, frame),
                _ => {}
            }
            if self.mesh.send(command).await.is_err() {
                return false;
            }
        }
        true
    }

    /// Passes events from the mesh to the silo, until one of them ends. Waits while the silo's queue
    /// is full.
    pub(super) async fn incoming(
        self,
        mut events: mpsc::Receiver<Event>,
        silo: mpsc::Sender<Event>,
    ) {
        while let Some(event) = events.recv().await {
            match &event {
                Event::Received {
                    from,
                    frame,
                    ticket,
                } => {
                    if let Some(sent) = self.messages.get(from.at()) {
                        sent.fetch_add(frame.len() as u64, Ordering::Relaxed);
                    }
                    self.recorder
                        .delivered(*from, self.me, &Hash::of(frame), frame);
                    let tamper = self.tamper.as_ref();
                    let heard = tamper.map(|tamper| lock(tamper).incoming(frame));
                    let (mut commands, hears) = heard.unwrap_or((Vec::new(), true));
                    if let (Some(ticket), false) = (*ticket, hears) {
                        let verdict = Acceptance::Ignore;
                        commands.push(Command::Judge { ticket, verdict });
                    }
                    if !self.send(commands).await {
                        return;
                    }
                    if !hears {
                        continue;
                    }
                }
                Event::Wanted { by, blobs, ticket } => {
                    let tamper = self.tamper.as_ref();
                    let answer = tamper.and_then(|tamper| lock(tamper).answer(*by, blobs));
                    if let Some(blobs) = answer {
                        let ticket = *ticket;
                        let serve = Command::Serve { ticket, blobs };
                        if self.mesh.send(serve).await.is_err() {
                            return;
                        }
                        continue;
                    }
                }
                _ => {}
            }
            if silo.send(event).await.is_err() {
                return;
            }
        }
    }
}

fn lock(tamper: &Mutex<Tamper>) -> MutexGuard<'_, Tamper> {
    // The state is consistent even after a panic.
    tamper.lock().unwrap_or_else(PoisonError::into_inner)
}
