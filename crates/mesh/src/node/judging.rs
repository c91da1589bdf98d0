//! Published frames that wait for the verdict of the silo, before gossip passes them on.

use std::collections::BTreeMap;

use libp2p::PeerId;
use libp2p::gossipsub::MessageId;
use protocol::Hash;
use protocol::net::JUDGED;
use tokio::time::Instant;

/// Frames that may wait; beyond that the oldest is dropped.
const WAITING: usize = 2048;

/// A frame that waits for its verdict.
#[derive(Debug)]
pub(super) struct WaitingFrame {
    pub(super) id: MessageId,
    pub(super) source: PeerId,
    pub(super) frame: Hash,
    since: Instant,
}

/// All waiting frames, by ticket.
#[derive(Debug, Default)]
pub(super) struct WaitingFrames {
    last: u64,
    waiting: BTreeMap<u64, WaitingFrame>,
}

impl WaitingFrames {
    /// Adds a frame. Returns its ticket, and a frame that was dropped for it.
    pub(super) fn ask(
        &mut self,
        id: MessageId,
        source: PeerId,
        frame: Hash,
    ) -> (u64, Option<WaitingFrame>) {
        let since = Instant::now();
        // Gossip has dropped these already.
        while let Some(oldest) = self.waiting.first_entry()
            && since - oldest.get().since > JUDGED
        {
            oldest.remove();
        }
        let full = self.waiting.len() >= WAITING;
        let dropped = full.then(|| self.waiting.pop_first()).flatten();
        self.last += 1;
        let waiting = WaitingFrame {
            id,
            source,
            frame,
            since,
        };
        self.waiting.insert(self.last, waiting);
        (self.last, dropped.map(|(_, waiting)| waiting))
    }

    /// The frame of a ticket, unless the verdict comes too late.
    pub(super) fn answer(&mut self, ticket: u64) -> Option<WaitingFrame> {
        let waiting = self.waiting.remove(&ticket)?;
        (waiting.since.elapsed() <= JUDGED).then_some(waiting)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waiting_for_a_verdict_is_bounded_in_time_and_number() {
        let mut judging = WaitingFrames::default();
        let ask = |judging: &mut WaitingFrames, number: u64| {
            let frame = Hash::of(&number.to_le_bytes());
            judging.ask(MessageId::from(frame.0.to_vec()), PeerId::random(), frame)
        };
        let (first, _) = ask(&mut judging, 0);
        let (late, _) = ask(&mut judging, 1);
        assert_eq!(
            judging.answer(first).map(|w| w.frame),
            Some(Hash::of(&[0; 8]))
        );
        assert!(judging.answer(first).is_none());
        advance(JUDGED + Duration::from_millis(1)).await;
        assert!(judging.answer(late).is_none());

        let dropped: Vec<_> = (0..WAITING as u64 + 2)
            .filter_map(|number| ask(&mut judging, number).1)
            .map(|waiting| waiting.frame)
            .collect();
        assert_eq!(dropped, [Hash::of(&[0; 8]), Hash::of(&1u64.to_le_bytes())]);
        assert_eq!(judging.waiting.len(), WAITING);
        advance(JUDGED + Duration::from_millis(1)).await;
        ask(&mut judging, 0);
        assert_eq!(judging.waiting.len(), 1);
    }
}
