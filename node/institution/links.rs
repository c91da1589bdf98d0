//! Events between the network and the silo.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use protocol::net::Event;
use serde_json::json;
use tokio::sync::mpsc;

use super::leaving::Leaving;
use super::locked;
use super::reporter::Reporter;
use crate::audit::Questions;

/// Passes events from the network to the silo, and notes which members can be reached.
pub(super) struct Links {
    pub(super) leaving: Arc<Mutex<Leaving>>,
    pub(super) reporter: Reporter,
    pub(super) names: Vec<String>,
    /// What members ask for, for the audit log.
    pub(super) questions: Questions,
    pub(super) began: Instant,
}

impl Links {
    pub(super) async fn pass(self, mut from: mpsc::Receiver<Event>, to: mpsc::Sender<Event>) {
        let mut up = vec![false; self.names.len()];
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
            let link = link.filter(|(peer, _)| peer.at() < up.len());
            if let Some((peer, round_trip)) = link {
                locked(&self.leaving).reach(peer, round_trip.is_some(), Instant::now());
                if std::mem::replace(&mut up[peer.at()], round_trip.is_some())
                    != round_trip.is_some()
                {
                    self.print(&self.names[peer.at()], round_trip);
                }
            }
            if to.send(event).await.is_err() {
                return;
            }
        }
    }

    fn print(&self, name: &str, round_trip: Option<Duration>) {
        let at = self.began.elapsed().as_secs_f64();
        match round_trip {
            Some(trip) => self.reporter.print(
                json!({
                    "event": "peer-up", "at": at, "member": name,
                    "round-trip-ms": trip.as_secs_f64() * 1e3,
                }),
                format!("{name} can be reached"),
            ),
            None => self.reporter.print(
                json!({ "event": "peer-down", "at": at, "member": name }),
                format!("{name} cannot be reached"),
            ),
        }
    }
}
