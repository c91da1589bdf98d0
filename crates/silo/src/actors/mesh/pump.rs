//! Delivers network events to the silo, one at a time, and waits while the silo is behind.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use actix::Recipient;
use actix::prelude::SendError;
use bytes::Bytes;
use protocol::budget::{Denied, Path};
use protocol::envelope::{self, Known, OpenError, Opened};
use protocol::identity::{SignatureClaim, Verifier};
use protocol::net::{Acceptance, Command, Event};
use protocol::{Frame, Hash, Input, MemberIndex, Time};
use tokio::sync::mpsc::{Receiver, Sender};

use super::guard::{Consequence, Guard};
use super::{FetchRecipient, Opener};
use crate::actors::messages::{Fetched, Incoming, Notices, Subscribe, VerifiedCertificates};
use crate::checks::Checks;
use crate::clock::Clock;
use crate::environment::{WorkSize, run, wait};
use crate::run_state::{Counters, RunState};

/// Most signatures that are checked on the actor's own thread. Where nothing is cached, more are checked
/// in the pool, so that silos of one process check them in parallel.
const INLINE: usize = 2;

/// Receives the events of the network.
pub(super) struct Pump {
    pub(super) opener: Opener,
    pub(super) subscriber: Subscribe,
    pub(super) commands: Sender<Command>,
    pub(super) guard: Rc<RefCell<Guard>>,
    pub(super) waiting: FetchRecipient,
    pub(super) observer: Recipient<Notices>,
    pub(super) clock: Clock,
    pub(super) run_state: Rc<RunState>,
    pub(super) counters: Rc<Counters>,
}

impl Pump {
    pub(super) async fn run(self, mut events: Receiver<Event>) {
        while let Some(event) = events.recv().await {
            let incoming = self.take(event).await;
            if !self.run_state.is_running() {
                return;
            }
            let Some(incoming) = incoming else { continue };
            // Sending without waiting is cheaper, and mostly possible.
            let events = &self.subscriber.events;
            let sent = match events.try_send(incoming) {
                Err(SendError::Full(incoming)) => events.send(incoming).await.is_ok(),
                sent => sent.is_ok(),
            };
            if !sent {
                return;
            }
        }
        self.subscriber.events.do_send(Incoming::End);
    }

    async fn take(&self, event: Event) -> Option<Incoming> {
        match event {
            Event::Received {
                from,
                frame,
                ticket,
            } => {
                self.counters.add(|counts| counts.received += 1);
                self.receive(from, frame.into(), ticket).await
            }
            // Guests are no members of this epoch.
            Event::Up { peer, .. } | Event::Down { peer } if self.is_guest(peer) => None,
            Event::Up { peer, round_trip } => input(Input::Up { peer, round_trip }),
            Event::Down { peer } => input(Input::Down { peer }),
            Event::Arrived { key } => input(Input::Arrived { key }),
            Event::KeyElsewhere => input(Input::KeyElsewhere),
            Event::Fetched { blobs } => self.arrived(blobs, Vec::new()),
            Event::Missing { blobs } => self.arrived(Vec::new(), blobs),
            Event::Wanted { by, blobs, ticket } => self.wanted(by, blobs, ticket),
        }
    }

    fn arrived(&self, blobs: Vec<(Hash, Bytes)>, missing: Vec<Hash>) -> Option<Incoming> {
        self.counters.add(|counts| {
            counts.fetched += blobs.len() as u64;
            counts.fetched_bytes += blobs.iter().map(|(_, blob)| blob.len() as u64).sum::<u64>();
            counts.missing += missing.len() as u64;
        });
        let waiting = self.waiting.borrow();
        waiting.as_ref()?.do_send(Fetched { blobs, missing });
        None
    }

    /// Takes a frame: checks its budget, opens it, and decides whether gossip passes it on.
    async fn receive(
        &self,
        from: MemberIndex,
        frame: Frame,
        ticket: Option<u64>,
    ) -> Option<Incoming> {
        let path = match ticket {
            Some(_) => Path::Gossip,
            None => Path::Direct,
        };
        let now = self.clock.now();
        if frame.is_of_other_epoch(&self.opener.epoch) {
            let admitted = self.guard.borrow_mut().admit_elsewhere(now, from);
            if let Err(denied) = admitted {
                return self.deny(from, ticket, denied);
            }
            self.answer_epoch(now, from, &frame);
            self.judge(ticket, Acceptance::Ignore);
            return None;
        }
        let admitted = self.guard.borrow_mut().admit(now, from, path, &frame);
        let admitted = match admitted {
            Ok(admitted) => admitted,
            Err(denied) => return self.deny(from, ticket, denied),
        };
        let (opened, checked) = self.open(frame).await?;
        let now = self.clock.now();
        let opened = match opened {
            Ok(opened) => opened,
            Err(error) => {
                self.judge(ticket, Acceptance::Reject);
                let cost = (&admitted, checked);
                let refused = self.guard.borrow_mut().refused(now, from, cost, &error);
                self.follow(from, refused);
                return None;
            }
        };
        let charged = self
            .guard
            .borrow_mut()
            .opened(now, &admitted, checked, &opened);
        match (charged, opened) {
            (Err(denied), _) => self.deny(from, ticket, denied),
            (Ok(()), Opened::Known) => {
                self.judge(ticket, Acceptance::Ignore);
                None
            }
            (Ok(()), opened) => {
                self.judge(ticket, Acceptance::Accept);
                input(Input::Opened(opened))
            }
        }
    }

    /// Returns whether this is a neighbour that is no member of this epoch.
    fn is_guest(&self, peer: MemberIndex) -> bool {
        peer.at() >= self.opener.epoch.roster.len()
    }

    /// Answers a frame of another epoch: with the proof that it is over, or, if it is not known, with
    /// a question that its members answer with the way there. About once a heartbeat for each neighbour.
    fn answer_epoch(&self, now: Time, to: MemberIndex, frame: &Frame) {
        let epoch = &self.opener.epoch;
        if !self.guard.borrow_mut().may_answer(now, to) {
            return;
        }
        let id = frame.epoch();
        let mut former = self.opener.former.iter();
        let former = former.find(|(known, _)| Some(*known) == id);
        let frame = former.map_or_else(|| envelope::hail(epoch), |(_, passage)| passage.clone());
        let _ = self.commands.try_send(Command::Send { to, frame });
    }

    /// Opens a frame. Also returns how many signatures were checked for it.
    async fn open(&self, frame: Frame) -> Option<(Result<Opened, OpenError>, u64)> {
        let Opener {
            epoch,
            checks,
            pool,
            ..
        } = self.opener.clone();
        let signatures = frame.cost(epoch.roster.len(), epoch.roster.quorum());
        let shared = checks.opened(&epoch, &frame);
        if signatures <= INLINE {
            let opened = match shared {
                Some(opened) => (Ok((*opened).clone()), 0),
                None => counted(&checks, |checks| {
                    envelope::open(&epoch, checks, &Known::default(), &frame)
                }),
            };
            return Some(opened);
        }
        let known = self
            .subscriber
            .verified
            .send(VerifiedCertificates)
            .await
            .ok()?;
        let work = WorkSize::Open {
            signatures: signatures as u64,
        };
        let done = if let Some(opened) = shared {
            let known = move || (Ok(opened.unless_in(&known)), 0);
            wait(&*pool, work, known).await
        } else {
            let open = move || {
                counted(&checks, |checks| {
                    envelope::open(&epoch, checks, &known, &frame)
                })
            };
            run(&*pool, work, open).await
        };
        // A job that panicked is a defect and was reported where it happened: the frame is dropped.
        done.ok()
    }

    /// Drops a frame.
    fn deny(&self, from: MemberIndex, ticket: Option<u64>, why: Denied) -> Option<Incoming> {
        self.judge(ticket, Acceptance::Ignore);
        let now = self.clock.now();
        let denied = self.guard.borrow_mut().denied(now, from, why);
        self.follow(from, denied);
        None
    }

    /// Tells the network whether to pass a frame on. If its queue is full, others get the frame from
    /// another member.
    fn judge(&self, ticket: Option<u64>, verdict: Acceptance) {
        if let Some(ticket) = ticket {
            let _ = self.commands.try_send(Command::Judge { ticket, verdict });
        }
    }

    fn follow(&self, peer: MemberIndex, Consequence { notices, mute }: Consequence) {
        if let Some(span) = mute {
            // If the queue is full, the guard alone keeps the member out.
            let _ = self.commands.try_send(Command::Mute { peer, span });
        }
        if !notices.is_empty() {
            self.observer.do_send(Notices {
                at: self.clock.now(),
                list: notices,
            });
        }
    }

    /// Passes a request for blobs to the silo, or refuses it if the member asks for too many.
    fn wanted(&self, by: MemberIndex, blobs: Vec<Hash>, ticket: u64) -> Option<Incoming> {
        let now = self.clock.now();
        let wants = || self.guard.borrow_mut().wants(now, by, blobs.len());
        if !self.is_guest(by) && wants() {
            return Some(Incoming::Wanted { by, blobs, ticket });
        }
        self.counters
            .add(|counts| counts.unserved += blobs.len() as u64);
        let blobs = vec![None; blobs.len()];
        let _ = self.commands.try_send(Command::Serve { ticket, blobs });
        None
    }
}

/// Returns the result of `work`, and how many signatures it checked.
fn counted<T>(checks: &Checks, work: impl FnOnce(&Counting<'_>) -> T) -> (T, u64) {
    let counting = Counting {
        checks,
        count: AtomicU64::new(0),
    };
    let done = work(&counting);
    (done, counting.count.into_inner())
}

/// A verifier that counts signatures.
struct Counting<'a> {
    checks: &'a Checks,
    count: AtomicU64,
}

impl Verifier for Counting<'_> {
    fn verify(&self, claim: &SignatureClaim<'_>) -> bool {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.checks.verify(claim)
    }

    fn verify_all(&self, claims: &[SignatureClaim<'_>]) -> bool {
        self.count.fetch_add(claims.len() as u64, Ordering::Relaxed);
        self.checks.verify_all(claims)
    }
}

fn input(input: Input) -> Option<Incoming> {
    Some(Incoming::Input(Box::new(input)))
}
