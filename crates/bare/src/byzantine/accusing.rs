//! Floods of true evidence, and false evidence.

use std::collections::BTreeMap;

use protocol::MemberIndex;
use protocol::certificate::Checked;
use protocol::envelope::{Opened, sign_evidence};
use protocol::evidence::{Evidence, Signed};
use protocol::message::{Body, Message};

use super::{Actions, Attacker, Deviation};

/// Pieces of evidence per heartbeat.
const MANY: usize = 6;

/// Floods with true evidence against itself, ever new.
pub(super) struct SelfEvidence;

impl Deviation for SelfEvidence {
    fn heartbeat(&mut self, attacker: &mut Attacker, actions: &mut Actions) {
        for _ in 0..MANY {
            let view = 1 + attacker.random.below(1 << 20) as u64;
            let mut sign = || {
                let body = Body::Notarize {
                    block: attacker.random_hash(),
                    checked: Checked::Structure,
                };
                attacker.sign(0, view, body).0
            };
            let (first, second) = (sign(), sign());
            if let Some(evidence) = Evidence::of(&first, &second) {
                actions.send(None, sign_evidence(&attacker.epoch, &evidence));
                actions.misdeeds += 1;
            }
        }
    }
}

/// Sends false evidence against honest members.
#[derive(Default)]
pub(super) struct FalseEvidence {
    /// Some messages that each member signed.
    received: BTreeMap<MemberIndex, Vec<Message>>,
}

impl Deviation for FalseEvidence {
    fn receive(&mut self, attacker: &mut Attacker, opened: &Opened, _: &mut Actions) -> bool {
        if let Opened::Message(message) = opened {
            let received = self.received.entry(message.sender).or_default();
            if received.len() < 8 {
                received.push(message.clone());
            } else {
                let at = attacker.random.below(8);
                received[at] = message.clone();
            }
        }
        false
    }

    fn heartbeat(&mut self, attacker: &mut Attacker, actions: &mut Actions) {
        let member = attacker.random_other();
        let Some(received) = self.received.get(&member) else {
            return;
        };
        let one = &received[attacker.random.below(received.len())];
        let other = &received[attacker.random.below(received.len())];
        let block = attacker.random_hash();
        let signed = |message: &Message, round, view, body| Signed {
            round,
            view,
            body,
            signature: message.signature,
        };
        let invented = [block, attacker.random_hash()].map(|block| Body::Notarize {
            block,
            checked: Checked::Structure,
        });
        let view = one.view.max(1);
        let evidence = if attacker.random.chance(0.5) {
            // Two messages that the member did sign and that do not conflict.
            Evidence {
                member,
                first: signed(one, one.round, one.view, one.body.clone()),
                second: signed(other, other.round, other.view, other.body.clone()),
            }
        } else {
            // Two messages that conflict and that the member did not sign.
            let [first, second] = invented;
            Evidence {
                member,
                first: signed(one, 0, view, first),
                second: signed(other, 0, view, second),
            }
        };
        actions.send(None, sign_evidence(&attacker.epoch, &evidence));
        actions.misdeeds += 1;
    }
}
