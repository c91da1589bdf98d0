//! Events between the network and the silo.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mesh::Peers;
use protocol::MemberIndex;
use protocol::net::Event;
use tokio::sync::mpsc;

use super::leaving::Leaving;
use crate::audit::Questions;
use crate::events::NodeEvent;
use crate::institution::locked;
use crate::institution::report::thread::Reporter;

/// Route to a member: `None` if there is none, and else the member that relays to it, if one does.
type ReachedBy = Option<Option<MemberIndex>>;

/// Passes events from the network to the silo, and notes which members can be reached.
pub(super) struct MemberLinks {
    pub(super) leaving: Arc<Mutex<Leaving>>,
    pub(super) reporter: Reporter,
    pub(super) names: Vec<String>,
    /// State of the connections.
    pub(super) peers: Peers,
    /// Requests of members, for the audit log.
    pub(super) questions: Questions,
    pub(super) began: Instant,
}

impl MemberLinks {
    pub(super) async fn pass(self, mut from: mpsc::Receiver<Event>, to: mpsc::Sender<Event>) {
        // Route to each member, as it was last printed.
        let mut ways: Vec<ReachedBy> = vec![None; self.names.len()];
        loop {
            // The network ends when the silo has ended, even without events.
            let event = tokio::select! {
                event = from.recv() => event,
                () = to.closed() => None,
            };
            let Some(event) = event else { return };
            self.questions.observe(&event);
            let link = match &event {
                Event::Up { peer, round_trip } => Some((*peer, Some(*round_trip))),
                Event::Down { peer } => Some((*peer, None)),
                _ => None,
            };
            // Guests, who are no members, have no name.
            let link = link.filter(|(peer, _)| peer.at() < ways.len());
            if let Some((peer, round_trip)) = link {
                locked(&self.leaving).reach(peer, round_trip.is_some(), Instant::now());
                let way = round_trip.map(|_| self.peers.through(peer));
                let before = std::mem::replace(&mut ways[peer.at()], way);
                if before != way {
                    self.print(&self.names[peer.at()], round_trip, way, before);
                }
            }
            if to.send(event).await.is_err() {
                return;
            }
        }
    }

    fn print(&self, name: &str, round_trip: Option<Duration>, way: ReachedBy, before: ReachedBy) {
        let at = self.began.elapsed().as_secs_f64();
        match round_trip {
            Some(trip) => {
                let relay = way.flatten().and_then(|relay| self.names.get(relay.at()));
                let how = match relay {
                    Some(relay) => format!(" through {relay}, which relays to it"),
                    None if before.is_some() => " directly now".to_owned(),
                    None => String::new(),
                };
                let event = NodeEvent::PeerUp {
                    member: name.into(),
                    round_trip_ms: trip.as_secs_f64() * 1e3,
                    through: relay.cloned(),
                };
                let line = format!("{name} can be reached{how}");
                self.reporter.print(at, event, line);
            }
            None => {
                let member = name.into();
                let line = format!("{name} cannot be reached");
                self.reporter
                    .print(at, NodeEvent::PeerDown { member }, line);
            }
        }
    }
}
