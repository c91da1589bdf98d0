//! Frames to all members.
//!
//! Small ones go by gossipsub: anonymous (its signed mode would name the author of every message),
//! message ids are content hashes, one topic for the federation. Large ones, those that gossip
//! cannot carry at the moment, and those that are said again go directly to every member. Whichever
//! way they come, they are passed to the silo once.

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
/// The largest frame that is gossiped. The margin is for two habits of gossipsub 0.50: a payload of
/// exactly the limit is published and never arrives; and a reader compares the limit with all that
/// it has buffered, which is a message and up to 8 KiB of what follows, and closes the stream with
/// everything on it where that is more.
pub(crate) const LARGEST: usize = TRANSMIT - (12 << 10);
/// Messages that may wait for one member's connection; 16 MiB at most.
const QUEUE: usize = 256;
/// Message ids that are announced at once: 13.6 KB of the 16 KiB of such talk that a reader accepts.
/// The default, 5000, would make it close the stream.
const ANNOUNCED: usize = 400;
/// How often gossip looks after itself.
const HEARTBEAT: Duration = Duration::from_millis(500);
/// Heartbeats that a message is kept for: longer than the silo may take to judge it.
const KEPT: usize = JUDGED.as_millis().div_ceil(HEARTBEAT.as_millis()) as usize + 2;
/// Published frames that are remembered.
const REMEMBERED: usize = 16384;

/// How a published frame came to be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Gossip brought it, and passes it on by itself.
    Gossip,
    /// A member sent it here.
    Direct,
    /// It was published here.
    Own,
}

/// How to publish a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// It is new, or was only sent here: by gossip if it is small.
    Spread,
    /// Gossip is doing it already.
    Done,
    /// Said before, and gossip would not say it again: directly to everybody.
    Again,
}

/// The published frames of the recent past, by hash.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    known: BTreeMap<Hash, Origin>,
    order: VecDeque<Hash>,
}

impl Seen {
    /// Whether a frame that came in is new.
    pub(crate) fn first(&mut self, frame: Hash, origin: Origin) -> bool {
        let new = !self.known.contains_key(&frame);
        if new {
            self.remember(frame, origin);
        }
        new
    }

    /// A frame that gossip brought goes no further. It may come again from who may say it, and what
    /// is published here is not gossip's business any more.
    pub(crate) fn forget(&mut self, frame: &Hash) {
        if self.known.get(frame) == Some(&Origin::Gossip) {
            self.known.remove(frame);
        }
    }

    /// How to publish a frame here.
    pub(crate) fn publish(&mut self, frame: Hash) -> Way {
        match self.known.get_mut(&frame) {
            None => self.remember(frame, Origin::Own),
            Some(origin) => match std::mem::replace(origin, Origin::Own) {
                Origin::Own => return Way::Again,
                Origin::Gossip => return Way::Done,
                Origin::Direct => {}
            },
        }
        Way::Spread
    }

    fn remember(&mut self, frame: Hash, origin: Origin) {
        self.known.insert(frame, origin);
        self.order.push_back(frame);
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

/// The topic of a federation.
pub(crate) fn topic(federation: Hash) -> IdentTopic {
    IdentTopic::new(format!("rota/{federation:#}"))
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
    fn a_frame_is_new_once_and_published_the_cheapest_way_that_reaches_all() {
        let mut seen = Seen::default();
        let [own, gossiped, sent] = [b"own", b"gos", b"sen"].map(|frame| Hash::of(frame));
        assert_eq!(seen.publish(own), Way::Spread);
        assert_eq!(seen.publish(own), Way::Again);
        assert!(!seen.first(own, Origin::Gossip));

        assert!(seen.first(gossiped, Origin::Gossip));
        assert!(!seen.first(gossiped, Origin::Direct));
        assert_eq!(seen.publish(gossiped), Way::Done);
        assert_eq!(seen.publish(gossiped), Way::Again);

        assert!(seen.first(sent, Origin::Direct));
        assert_eq!(seen.publish(sent), Way::Spread);

        let dropped = Hash::of(b"dropped");
        assert!(seen.first(dropped, Origin::Gossip));
        seen.forget(&dropped);
        seen.forget(&own);
        assert!(seen.first(dropped, Origin::Direct));
        assert_eq!(seen.publish(dropped), Way::Spread);
        assert_eq!(seen.publish(own), Way::Again);
    }

    #[test]
    fn only_the_recent_past_is_remembered() {
        let mut seen = Seen::default();
        let frame = |i: usize| Hash::of(&i.to_le_bytes());
        assert!((0..=REMEMBERED).all(|i| seen.first(frame(i), Origin::Gossip)));
        assert!(!seen.first(frame(1), Origin::Gossip));
        assert!(seen.first(frame(0), Origin::Gossip));
    }
}
