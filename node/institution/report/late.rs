//! What an institution is told whose model comes too late for a round.

use std::time::Duration;

use protocol::Epoch;

use crate::events::NodeEvent;
use formatting::numbers::{plural, seconds};

/// Room that is left above the longest time that was seen.
const ROOM: f64 = 1.5;

/// Rounds that were over before this institution's model was there.
#[derive(Default)]
pub(super) struct Late {
    /// In a row.
    rounds: usize,
    /// The longest time that a model took, or has taken at least.
    longest: Duration,
}

impl Late {
    /// A round has this institution's model.
    pub(super) fn in_time(&mut self) {
        self.rounds = 0;
    }

    /// A round was over without it: what is printed, as a document and as a line. `ready` and `over` are
    /// those of [`Report::Late`](protocol::Report::Late).
    pub(super) fn missed(
        &mut self,
        epoch: &Epoch,
        round: u64,
        ready: Option<Duration>,
        over: Duration,
    ) -> (NodeEvent, String) {
        self.rounds += 1;
        let patience = epoch.patience();
        let took = ready.unwrap_or(over);
        let slow = took > patience || ready.is_none();
        self.longest = self.longest.max(took);
        let heartbeats = ROOM * self.longest.as_secs_f64() / epoch.heartbeat().as_secs_f64();
        let wanted = (slow && took >= patience / 2).then_some(heartbeats.ceil() as u32);
        let wanted = wanted.filter(|heartbeats| *heartbeats > epoch.protocol.patience);
        let event = NodeEvent::Late {
            round,
            ready: ready.map(|ready| ready.as_secs_f64()),
            over: over.as_secs_f64(),
            patience: patience.as_secs_f64(),
            in_a_row: self.rounds,
            suggested_patience: wanted,
        };
        let said = |span: Duration| seconds(span.as_secs_f64());
        let what = match ready {
            Some(ready) if slow => format!("it was ready after {}", said(ready)),
            Some(ready) => format!(
                "it was ready in time, after {}, and did not reach the lead before: is the line slow?",
                said(ready)
            ),
            None => "its training had not ended".into(),
        };
        let mut line = format!(
            "warning: round {round} ended after {} without this institution's model: {what}",
            said(over)
        );
        match (wanted, self.rounds) {
            (Some(heartbeats), 1) => line.push_str(&format!(
                ". The others wait for {}. So that they wait long enough, propose `straggler-timeout = {heartbeats}` (in beats \
                 of {}; \
                 {} now) under [protocol] with `rota federation change`, or less training in a round \
                 (`epochs`)",
                said(patience),
                said(epoch.heartbeat()),
                epoch.protocol.patience
            )),
            (_, 1) => {}
            (Some(heartbeats), rounds) => line.push_str(&format!(
                ", in {} in a row (`straggler-timeout = {heartbeats}` would be enough)",
                plural(rounds, "round")
            )),
            (None, rounds) => line.push_str(&format!(", in {} in a row", plural(rounds, "round"))),
        }
        (event, line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn of(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn who_is_late_is_told_by_how_much_and_what_would_help() {
        // Beats of a second, patience 20.
        let protocol = protocol::ProtocolParameters {
            patience: 20,
            view_timeout: 100,
            ..fixture::protocol()
        };
        let epoch = fixture::epoch(fixture::silos(4, 1), protocol);
        let mut late = Late::default();
        let (event, line) = late.missed(&epoch, 5, None, of(21_000));
        assert_eq!(
            line,
            "warning: round 5 ended after 21.0 s without this institution's model: its training had not \
             ended. The others wait for 20.0 s. So that they wait long enough, propose `straggler-timeout = 32` (in beats of 1.0 s; \
             20 now) under [protocol] with `rota federation change`, or less training in a round (`epochs`)"
        );
        let patience = |event| match event {
            NodeEvent::Late {
                suggested_patience, ..
            } => suggested_patience,
            other => panic!("{other:?}"),
        };
        assert_eq!(patience(event), Some(32));
        let (_, line) = late.missed(&epoch, 6, Some(of(30_000)), of(40_000));
        assert!(
            line.ends_with(
                "it was ready after 30.0 s, in 2 rounds in a row (`straggler-timeout = 45` would be enough)"
            ),
            "{line}"
        );
        late.in_time();
        // Patience helps nobody whose model was there in time.
        let (event, line) = late.missed(&epoch, 8, Some(of(2_000)), of(4_000));
        assert!(
            line.ends_with("it was ready in time, after 2.0 s, and did not reach the lead before: is the line slow?"),
            "{line}"
        );
        assert_eq!(patience(event), None);
    }
}
