//! From the network to the silo: one event at a time, waiting while the silo is behind.

use std::rc::Rc;

use actix::Recipient;
use actix::prelude::SendError;
use bytes::Bytes;
use protocol::envelope::{self, Known, OpenError, Opened};
use protocol::net::Event;
use protocol::{Hash, Input, MemberIndex};
use tokio::sync::mpsc::Receiver;

use super::{Arrived, Door, Heard, Listen, Waiting, WhatIsKnown};
use crate::actors::observer::Notices;
use crate::clock::Clock;
use crate::handle::{Counters, Life};
use crate::notice::Notice;
use crate::surroundings::{Work, run, wait};

/// Signatures that are checked at once; more are checked in the pool, so that silos that share a
/// process do it side by side.
const INLINE: usize = 2;

pub(super) struct Pump {
    pub(super) door: Door,
    pub(super) to: Listen,
    pub(super) waiting: Waiting,
    pub(super) observer: Recipient<Notices>,
    pub(super) clock: Clock,
    pub(super) life: Rc<Life>,
    pub(super) counters: Rc<Counters>,
}

impl Pump {
    pub(super) async fn run(self, mut events: Receiver<Event>) {
        while let Some(event) = events.recv().await {
            let heard = self.take(event).await;
            if !self.life.alive() {
                return;
            }
            let Some(heard) = heard else { continue };
            // Waiting costs more than handing over, and is rarely needed.
            let handed = match self.to.heard.try_send(heard) {
                Err(SendError::Full(heard)) => self.to.heard.send(heard).await.is_ok(),
                handed => handed.is_ok(),
            };
            if !handed {
                return;
            }
        }
        self.to.heard.do_send(Heard::End);
    }

    async fn take(&self, event: Event) -> Option<Heard> {
        match event {
            Event::Received { from, frame } => {
                self.counters.add(|counts| counts.received += 1);
                self.open(from, frame).await
            }
            Event::Up { peer, round_trip } => input(Input::Up { peer, round_trip }),
            Event::Down { peer } => input(Input::Down { peer }),
            Event::Fetched { blobs } => self.arrived(blobs, Vec::new()),
            Event::Missing { blobs } => self.arrived(Vec::new(), blobs),
            Event::Wanted { by, blobs, ticket } => Some(Heard::Wanted { by, blobs, ticket }),
        }
    }

    fn arrived(&self, blobs: Vec<(Hash, Bytes)>, missing: Vec<Hash>) -> Option<Heard> {
        self.counters.add(|counts| {
            counts.fetched += blobs.len() as u64;
            counts.fetched_bytes += blobs.iter().map(|(_, blob)| blob.len() as u64).sum::<u64>();
            counts.missing += missing.len() as u64;
        });
        let waiting = self.waiting.borrow();
        waiting.as_ref()?.do_send(Arrived { blobs, missing });
        None
    }

    async fn open(&self, from: MemberIndex, frame: Bytes) -> Option<Heard> {
        let Door {
            epoch,
            checks,
            pool,
        } = self.door.clone();
        let signatures = envelope::cost(&epoch, &frame);
        let shared = checks.shared(&epoch, &frame);
        let opened = if signatures <= INLINE {
            let open = || envelope::open(&epoch, &*checks, &Known::default(), &frame).map_err(said);
            shared.map_or_else(open, |opened| Ok((*opened).clone()))
        } else {
            let known = self.to.known.send(WhatIsKnown).await.ok()?;
            let work = Work::Open {
                signatures: signatures as u64,
            };
            if let Some(opened) = shared {
                let known = move || opened.unless_in(&known);
                wait(&*pool, work, known).await
            } else {
                let open = move || envelope::open(&epoch, &*checks, &known, &frame).map_err(said);
                run(&*pool, work, open).await.and_then(|opened| opened)
            }
        };
        match opened {
            Ok(Opened::Known) => None,
            Ok(opened) => input(Input::Opened(opened)),
            Err(reason) => {
                self.counters.add(|counts| counts.unopened += 1);
                let list = vec![Notice::Unopened { from, reason }];
                self.observer.do_send(Notices {
                    at: self.clock.now(),
                    list,
                });
                None
            }
        }
    }
}

fn input(input: Input) -> Option<Heard> {
    Some(Heard::Input(Box::new(input)))
}

fn said(error: OpenError) -> String {
    error.to_string()
}
