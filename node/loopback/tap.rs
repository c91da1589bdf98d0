//! What sits between a silo and its mesh.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mesh::{Command, Event};
use protocol::{Hash, MemberIndex};
use simulations::{Ear, Tamper};
use tokio::sync::mpsc;

/// Hears what one silo says and hears, and lies where it is told to.
#[derive(Clone)]
pub(super) struct Tap {
    pub(super) me: MemberIndex,
    pub(super) ear: Ear,
    pub(super) liar: Option<Arc<Mutex<Tamper>>>,
    /// Bytes of messages by who passed them on, shared by all taps.
    pub(super) messages: Vec<Arc<AtomicU64>>,
    pub(super) mesh: mpsc::Sender<Command>,
}

impl Tap {
    /// From the silo to its mesh, until one of them ends.
    pub(super) async fn outgoing(self, mut said: mpsc::Receiver<Command>) {
        while let Some(command) = said.recv().await {
            let instead = match &self.liar {
                Some(liar) => lock(liar).outgoing(command),
                None => vec![command],
            };
            for command in instead {
                if let Command::Send { frame, .. } | Command::Publish { frame } = &command {
                    self.ear.said(self.me, frame);
                }
                if self.mesh.send(command).await.is_err() {
                    return;
                }
            }
        }
    }

    /// From the mesh to the silo, until one of them ends. Waits while the silo is behind.
    pub(super) async fn incoming(
        self,
        mut events: mpsc::Receiver<Event>,
        heard: mpsc::Sender<Event>,
    ) {
        while let Some(event) = events.recv().await {
            match &event {
                Event::Received { from, frame, .. } => {
                    if let Some(sent) = self.messages.get(from.at()) {
                        sent.fetch_add(frame.len() as u64, Ordering::Relaxed);
                    }
                    self.ear.heard(*from, self.me, &Hash::of(frame), frame);
                }
                Event::Wanted { blobs, ticket, .. } => {
                    if let Some(lies) = self.lies(*ticket, blobs) {
                        if self.mesh.send(lies).await.is_err() {
                            return;
                        }
                        continue;
                    }
                }
                _ => {}
            }
            if heard.send(event).await.is_err() {
                return;
            }
        }
    }

    /// An answer of spoiled blobs, if one of these is wanted.
    fn lies(&self, ticket: u64, wanted: &[Hash]) -> Option<Command> {
        let liar = lock(self.liar.as_ref()?);
        let blobs: Vec<_> = wanted.iter().map(|hash| liar.blob(hash)).collect();
        let some = blobs.iter().any(Option::is_some);
        some.then_some(Command::Serve { ticket, blobs })
    }
}

fn lock(liar: &Mutex<Tamper>) -> MutexGuard<'_, Tamper> {
    // What it holds is whole also after a panic.
    liar.lock().unwrap_or_else(PoisonError::into_inner)
}
