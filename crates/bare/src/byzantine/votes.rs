//! Votes that contradict each other.

use protocol::Hash;
use protocol::certificate::Checked;
use protocol::message::Body;

use super::{Actions, Attacker, Deviation, OutgoingFrame};

/// Sends conflicting votes: Notarize for two blocks, Finalize before there is a certificate, and
/// Nullify.
#[derive(Default)]
pub(super) struct DoubleVote {
    voted: Option<Hash>,
}

impl Deviation for DoubleVote {
    fn send(
        &mut self,
        attacker: &mut Attacker,
        outgoing: &OutgoingFrame<'_>,
        actions: &mut Actions,
    ) -> bool {
        let Some(message) = outgoing.message else {
            return false;
        };
        let view = message.view;
        match (&message.body, self.voted) {
            (&Body::Notarize { block, checked }, _) => {
                self.voted = Some(block);
                let other = attacker.random_hash();
                let other = Body::Notarize {
                    block: other,
                    checked,
                };
                for body in [other, Body::Finalize { block }, Body::Nullify] {
                    actions.send(None, attacker.sign(0, view, body));
                }
                actions.misdeeds += 1;
            }
            (Body::Nullify, Some(block)) => {
                let checked = Checked::Structure;
                for body in [Body::Finalize { block }, Body::Notarize { block, checked }] {
                    actions.send(None, attacker.sign(0, view, body));
                }
                actions.misdeeds += 1;
            }
            _ => {}
        }
        false
    }
}
