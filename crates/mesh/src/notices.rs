//! Notices about nodes that are not of this federation, for the operator, at a limited rate.

use std::collections::BTreeMap;
use std::time::Duration;

use libp2p::{Multiaddr, PeerId};
use protocol::{Hash, MemberIndex, PublicKey};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::hello::Program;
use crate::members::key_of;

/// Least time between two notices about one node.
const AGAIN: Duration = Duration::from_secs(600);
/// Nodes that are remembered.
const NODES: usize = 1024;
/// Most notices in a [`SPAN`]: keys cost nothing, so one machine can come with many.
const NOTICES: usize = 10;
/// See [`NOTICES`].
const SPAN: Duration = Duration::from_secs(60);

/// Notice to the operator about a node that is not of this federation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// A member has another agreement.
    OtherAgreement {
        /// The member.
        member: MemberIndex,
        /// The id of its federation.
        federation: Hash,
        /// True if the member only checked its addresses.
        probing: bool,
    },
    /// A member's program and this one do not speak the same message formats.
    OtherFormat {
        /// The member.
        member: MemberIndex,
        /// Program of the member.
        program: Program,
    },
    /// A node whose key is not in the roster was refused.
    Stranger {
        /// Key of the node, if it is an Ed25519 key.
        key: Option<PublicKey>,
        /// The address that it came from.
        address: String,
    },
    /// Many connections from one place proved no key, and were turned away for others.
    Crowd {
        /// A net, or the address of a member.
        from: String,
        /// Connections that were turned away in the last minute.
        turned_away: u64,
    },
    /// Two processes have the key of a member.
    Twins {
        /// The member.
        member: MemberIndex,
        /// Addresses of the two processes.
        addresses: [String; 2],
    },
    /// Another process has this node's own key.
    KeyElsewhere {
        /// Address of the process, if this node has met it itself; else other members have said so.
        address: Option<String>,
    },
}

/// Whom a notice is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum NoticeSubject {
    Node(PeerId),
    Net(String),
    Twins(MemberIndex),
}

/// Decides which notices are worth a line.
pub(crate) struct NoticeFilter {
    notices: mpsc::Sender<Notice>,
    /// Time at which a notice about each was last given.
    seen: BTreeMap<NoticeSubject, Instant>,
    /// Beginning of the present span, and notices in it.
    span: (Instant, usize),
}

impl NoticeFilter {
    /// With the end at which notices are received.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Notice>) {
        // One more for what is said once.
        let (notices, received) = mpsc::channel(NOTICES + 1);
        let knocks = Self {
            notices,
            seen: BTreeMap::new(),
            span: (Instant::now(), 0),
        };
        (knocks, received)
    }

    /// A member said that it has another agreement.
    pub(crate) fn other_agreement(
        &mut self,
        id: &PeerId,
        member: MemberIndex,
        federation: Hash,
        probing: bool,
    ) {
        if self.is_worth(NoticeSubject::Node(*id)) {
            tracing::info!(%member, %federation, "the member has another agreement");
            let _ = self.notices.try_send(Notice::OtherAgreement {
                member,
                federation,
                probing,
            });
        }
    }

    /// A member's program and this one do not understand each other.
    pub(crate) fn other_format(&mut self, id: &PeerId, member: MemberIndex, program: Program) {
        if self.is_worth(NoticeSubject::Node(*id)) {
            tracing::info!(%member, version = program.version, "the member has another format");
            let notice = Notice::OtherFormat { member, program };
            let _ = self.notices.try_send(notice);
        }
    }

    /// A node outside the roster was refused.
    pub(crate) fn stranger(&mut self, id: &PeerId, address: &Multiaddr) {
        if self.is_worth(NoticeSubject::Node(*id)) {
            let key = key_of(id);
            tracing::info!(%address, key = %id, "a node that is not in the roster was refused");
            let address = address.to_string();
            let _ = self.notices.try_send(Notice::Stranger { key, address });
        }
    }

    /// Many connections from one place were turned away.
    pub(crate) fn crowd(&mut self, from: String, turned_away: u64) {
        if self.is_worth(NoticeSubject::Net(from.clone())) {
            tracing::warn!(from, turned_away, "many connections proved no key");
            let _ = self.notices.try_send(Notice::Crowd { from, turned_away });
        }
    }

    /// Two processes have a member's key.
    pub(crate) fn twins(&mut self, member: MemberIndex, addresses: [String; 2]) {
        if self.is_worth(NoticeSubject::Twins(member)) {
            tracing::warn!(%member, ?addresses, "two processes have the member's key");
            let _ = self.notices.try_send(Notice::Twins { member, addresses });
        }
    }

    /// Another process has this node's key. The caller says it once.
    pub(crate) fn key_elsewhere(&mut self, address: Option<String>) {
        tracing::error!(address, "another process has this node's key");
        let _ = self.notices.try_send(Notice::KeyElsewhere { address });
    }

    /// Returns whether a notice about this is due, which is then noted.
    fn is_worth(&mut self, about: NoticeSubject) -> bool {
        let now = Instant::now();
        if now - self.span.0 >= SPAN {
            self.span = (now, 0);
        }
        if self
            .seen
            .get(&about)
            .is_some_and(|last| now - *last < AGAIN)
            || self.span.1 >= NOTICES
        {
            return false;
        }
        if self.seen.len() >= NODES {
            self.seen.retain(|_, last| now - *last < AGAIN);
            if self.seen.len() >= NODES {
                return false;
            }
        }
        self.seen.insert(about, now);
        self.span.1 += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_node_is_named_seldom_and_many_nodes_a_few_times_a_minute() {
        let (mut knocks, mut notices) = NoticeFilter::new();
        let address: Multiaddr = "/ip4/192.0.2.7/tcp/4001".parse().expect("valid");
        let id = PeerId::random();
        knocks.stranger(&id, &address);
        knocks.stranger(&id, &address);
        assert!(matches!(notices.try_recv(), Ok(Notice::Stranger { .. })));
        assert!(notices.try_recv().is_err());
        for _ in 0..100 {
            knocks.stranger(&PeerId::random(), &address);
        }
        let named = std::iter::from_fn(|| notices.try_recv().ok()).count();
        assert_eq!(named, NOTICES - 1);
        tokio::time::advance(AGAIN).await;
        knocks.stranger(&id, &address);
        assert!(notices.try_recv().is_ok());
    }
}
