//! A network that loses nothing and takes 10 ms, or longer to and from members with slow lines.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use protocol::net::{Command, Event};
use protocol::{Hash, MemberIndex};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::NetworkEnds;

/// Time for which a member that was asked for blobs is waited for. More than lines of tests are slow.
const PATIENCE: Duration = Duration::from_secs(3);

/// Connects several silos.
#[derive(Clone, Default)]
pub(crate) struct Hub(Rc<RefCell<HubState>>);

#[derive(Default)]
struct HubState {
    silos: BTreeMap<MemberIndex, mpsc::Sender<Event>>,
    /// Open requests for blobs: the client, the hashes, and the holders still to ask in reverse order.
    tickets: BTreeMap<u64, (MemberIndex, Vec<Hash>, Vec<MemberIndex>)>,
    next: u64,
    /// Published frames that are on their way to, or were at, a member.
    published: BTreeSet<(MemberIndex, Hash)>,
    /// Every frame with its sender.
    frames: Vec<(MemberIndex, bytes::Bytes)>,
    /// Every blob with the member that gave it.
    given: Vec<(MemberIndex, bytes::Bytes)>,
    /// Everything that silos told the network, and when.
    commands: Vec<(Instant, MemberIndex, Command)>,
    /// The time that frames take longer to and from a member.
    slow: BTreeMap<MemberIndex, Duration>,
}

impl Hub {
    /// Connects a silo, or connects it again.
    pub(crate) fn join(&self, me: MemberIndex, ends: NetworkEnds) {
        let NetworkEnds {
            mut commands,
            events,
        } = ends;
        for peer in self.0.borrow_mut().silos.keys().copied() {
            let round_trip = Duration::from_millis(20);
            let _ = events.try_send(Event::Up { peer, round_trip });
        }
        self.0.borrow_mut().silos.insert(me, events);
        let hub = self.clone();
        tokio::task::spawn_local(async move {
            while let Some(command) = commands.recv().await {
                hub.command(me, command);
            }
        });
    }

    /// Makes the line of a member slow.
    pub(crate) fn slow(&self, member: MemberIndex, longer: Duration) {
        self.0.borrow_mut().slow.insert(member, longer);
    }

    /// Frames sent so far.
    pub(crate) fn frames(&self) -> Vec<(MemberIndex, bytes::Bytes)> {
        self.0.borrow().frames.clone()
    }

    /// Blobs given so far.
    pub(crate) fn given(&self) -> Vec<(MemberIndex, bytes::Bytes)> {
        self.0.borrow().given.clone()
    }

    /// Everything that silos told the network, in words, each with the time since the first.
    pub(crate) fn commands(&self) -> Vec<String> {
        let inner = self.0.borrow();
        let began = inner.commands.first().map(|(at, ..)| *at);
        let said = |(at, by, command): &(Instant, MemberIndex, Command)| {
            let since = began.map(|began| *at - began);
            format!("{since:?} {by}: {command:?}")
        };
        inner.commands.iter().map(said).collect()
    }

    fn command(&self, me: MemberIndex, command: Command) {
        let told = (Instant::now(), me, command.clone());
        self.0.borrow_mut().commands.push(told);
        match command {
            Command::Send { to, frame } => {
                self.0.borrow_mut().frames.push((me, frame.clone()));
                let from = me;
                let ticket = None;
                let event = Event::Received {
                    from,
                    frame,
                    ticket,
                };
                self.deliver(to, event);
            }
            Command::Publish { frame } => {
                self.0.borrow_mut().frames.push((me, frame.clone()));
                let all: Vec<_> = self.0.borrow().silos.keys().copied().collect();
                let hash = Hash::of(&frame);
                for to in all.into_iter().filter(|&to| to != me) {
                    if !self.0.borrow_mut().published.insert((to, hash)) {
                        continue;
                    }
                    self.deliver(
                        to,
                        Event::Received {
                            from: me,
                            frame: frame.clone(),
                            ticket: None,
                        },
                    );
                }
            }
            Command::Fetch { blobs, mut from } => {
                from.reverse();
                let blobs = blobs.iter().map(|wish| wish.hash).collect();
                self.ask(me, blobs, from);
            }
            Command::Judge { .. } | Command::Mute { .. } => {}
            // New members are there as soon as they are proposed.
            Command::Await { keys } => {
                for key in keys {
                    self.deliver(me, Event::Arrived { key });
                }
            }
            Command::Serve { ticket, blobs } => {
                let sent = blobs.iter().flatten().map(|blob| (me, blob.clone()));
                self.0.borrow_mut().given.extend(sent);
                let Some((by, hashes, rest)) = self.0.borrow_mut().tickets.remove(&ticket) else {
                    return;
                };
                let (mut given, mut refused) = (Vec::new(), Vec::new());
                for (hash, blob) in hashes.into_iter().zip(blobs) {
                    match blob {
                        Some(blob) => given.push((hash, blob)),
                        None => refused.push(hash),
                    }
                }
                if !given.is_empty() {
                    self.deliver(by, Event::Fetched { blobs: given });
                }
                if !refused.is_empty() {
                    self.ask(by, refused, rest);
                }
            }
        }
    }

    fn ask(&self, by: MemberIndex, blobs: Vec<Hash>, mut from: Vec<MemberIndex>) {
        let Some(next) = from.pop() else {
            return self.deliver(by, Event::Missing { blobs });
        };
        let mut inner = self.0.borrow_mut();
        inner.next += 1;
        let ticket = inner.next;
        inner.tickets.insert(ticket, (by, blobs.clone(), from));
        drop(inner);
        self.deliver(next, Event::Wanted { by, blobs, ticket });
        let hub = self.clone();
        tokio::task::spawn_local(async move {
            tokio::time::sleep(PATIENCE).await;
            // A silo that was killed never answers.
            let open = hub.0.borrow_mut().tickets.remove(&ticket);
            if let Some((by, blobs, rest)) = open {
                hub.ask(by, blobs, rest);
            }
        });
    }

    fn deliver(&self, to: MemberIndex, event: Event) {
        let inner = self.0.borrow();
        let Some(silo) = inner.silos.get(&to).cloned() else {
            return;
        };
        let longer = inner.slow.get(&to).copied().unwrap_or_default();
        tokio::task::spawn_local(async move {
            tokio::time::sleep(Duration::from_millis(10) + longer).await;
            let _ = silo.send(event).await;
        });
    }
}
