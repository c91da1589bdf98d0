//! Publishes frames to all members.
//!
//! Small ones go by gossipsub: without an author (its signed mode would name the author of every message),
//! message ids are content hashes, one topic for the epoch. Large frames, frames that gossip
//! cannot carry at the moment, and repeated frames go directly to every member. Each is passed to
//! the silo once, however it arrives.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use libp2p::gossipsub::{
    self, Behaviour, ConfigBuilder, IdentTopic, MessageAuthenticity, MessageId, ValidationMode,
};
use protocol::Hash;
use protocol::net::JUDGED;

use crate::config::MeshError;

/// The largest message that gossipsub transmits, with its own fields: its default.
const TRANSMIT: usize = 64 << 10;
/// The largest frame that is gossiped. The margin is for two properties of gossipsub 0.50: a payload of
/// exactly the limit is published and never arrives; and a reader compares the limit with all that
/// it has buffered, which is a message and up to 8 KiB of what follows, and closes the stream with
/// everything on it where that is more.
pub(crate) const LARGEST: usize = TRANSMIT - (12 << 10);
/// Messages that may wait for one member's connection; 16 MiB at most.
const QUEUE: usize = 256;
/// Message ids announced at once: 13.6 KB of the 16 KiB of control messages that a reader accepts. The
/// default, 5000, would make it close the stream.
const ANNOUNCED: usize = 400;
/// Interval of gossip's own maintenance.
const HEARTBEAT: Duration = Duration::from_millis(500);
/// Heartbeats that a message is kept: longer than the silo may take to judge it.
const KEPT: usize = JUDGED.as_millis().div_ceil(HEARTBEAT.as_millis()) as usize + 2;
/// Published frames that are remembered.
const REMEMBERED: usize = 16384;

/// Way on which a published frame arrived here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameOrigin {
    /// Gossip brought it, and passes it on by itself.
    Gossip,
    /// A member sent it here.
    Direct,
    /// This node published it.
    Own,
}

/// Way in which a frame is published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PublishBy {
    /// By gossip if it is small: it is new, or was only sent here directly.
    Gossip,
    /// Not at all: gossip passes it on already.
    Nothing,
    /// Directly to every member: it is repeated, and gossip would not send it again.
    Direct,
}

/// Recently published frames, by hash.
#[derive(Debug, Default)]
pub(crate) struct PublishedFrames {
    known: BTreeMap<Hash, FrameOrigin>,
    order: VecDeque<Hash>,
}

impl PublishedFrames {
    /// Returns whether a frame that came in is new.
    pub(crate) fn first(&mut self, frame: Hash, origin: FrameOrigin) -> bool {
        let new = !self.known.contains_key(&frame);
        if new {
            self.remember(frame, origin);
        }
        new
    }

    /// Forgets a frame that gossip brought and the silo ignored. It may arrive again from another
    /// member. Frames that this node published stay.
    pub(crate) fn forget(&mut self, frame: &Hash) {
        if self.known.get(frame) == Some(&FrameOrigin::Gossip) {
            self.known.remove(frame);
        }
    }

    /// Returns how to publish a frame of this node.
    pub(crate) fn publish(&mut self, frame: Hash) -> PublishBy {
        match self.known.get_mut(&frame) {
            None => self.remember(frame, FrameOrigin::Own),
            Some(origin) => match std::mem::replace(origin, FrameOrigin::Own) {
                FrameOrigin::Own => return PublishBy::Direct,
                FrameOrigin::Gossip => return PublishBy::Nothing,
                FrameOrigin::Direct => {}
            },
        }
        PublishBy::Gossip
    }

    fn remember(&mut self, frame: Hash, origin: FrameOrigin) {
        self.known.insert(frame, origin);
        self.order.push_back(frame);
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

/// The topic of an epoch.
pub(crate) fn topic(epoch: Hash) -> IdentTopic {
    IdentTopic::new(format!("rota/{epoch:#}"))
}

/// Gossipsub, subscribed to that topic. Messages are passed on only after
/// `report_message_validation_result`, which the mesh calls when the silo has judged them.
pub(crate) fn behaviour(topic: &IdentTopic) -> Result<Behaviour, MeshError> {
    let config = ConfigBuilder::default()
        .validation_mode(ValidationMode::Anonymous)
        .validate_messages()
        .message_id_fn(|message| MessageId::from(Hash::of(&message.data).0.to_vec()))
        .max_transmit_size(TRANSMIT)
        .max_control_messages_sent(ANNOUNCED)
        .connection_handler_queue_len(QUEUE)
        .heartbeat_interval(HEARTBEAT)
        .history_length(KEPT)
        .build()
        .map_err(|error| MeshError::Start(format!("gossip: {error}")))?;
    let mut behaviour = Behaviour::new(MessageAuthenticity::Anonymous, config)
        .map_err(|error| MeshError::Start(format!("gossip: {error}")))?;
    let subscribed = behaviour.subscribe(topic);
    subscribed.map_err(|error: gossipsub::SubscriptionError| {
        MeshError::Start(format!("gossip: {error}"))
    })?;
    Ok(behaviour)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_new_once_and_takes_the_cheapest_path_to_all() {
        let mut seen = PublishedFrames::default();
        let [own, gossiped, sent] = [b"own", b"gos", b"sen"].map(|frame| Hash::of(frame));
        assert_eq!(seen.publish(own), PublishBy::Gossip);
        assert_eq!(seen.publish(own), PublishBy::Direct);
        assert!(!seen.first(own, FrameOrigin::Gossip));

        assert!(seen.first(gossiped, FrameOrigin::Gossip));
        assert!(!seen.first(gossiped, FrameOrigin::Direct));
        assert_eq!(seen.publish(gossiped), PublishBy::Nothing);
        assert_eq!(seen.publish(gossiped), PublishBy::Direct);

        assert!(seen.first(sent, FrameOrigin::Direct));
        assert_eq!(seen.publish(sent), PublishBy::Gossip);

        let dropped = Hash::of(b"dropped");
        assert!(seen.first(dropped, FrameOrigin::Gossip));
        seen.forget(&dropped);
        seen.forget(&own);
        assert!(seen.first(dropped, FrameOrigin::Direct));
        assert_eq!(seen.publish(dropped), PublishBy::Gossip);
        assert_eq!(seen.publish(own), PublishBy::Direct);
    }

    #[test]
    fn old_frames_are_forgotten() {
        let mut seen = PublishedFrames::default();
        let frame = |i: usize| Hash::of(&i.to_le_bytes());
        assert!((0..=REMEMBERED).all(|i| seen.first(frame(i), FrameOrigin::Gossip)));
        assert!(!seen.first(frame(1), FrameOrigin::Gossip));
        assert!(seen.first(frame(0), FrameOrigin::Gossip));
    }
}
