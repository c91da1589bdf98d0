//! True evidence without end, and false evidence.

use std::collections::BTreeMap;

use protocol::MemberIndex;
use protocol::certificate::Checked;
use protocol::envelope::{Opened, seal, seal_evidence};
use protocol::evidence::{Evidence, Signed};
use protocol::message::{Body, Message};

use super::{Act, Lie, Who};

/// Pieces of evidence of one beat.
const MANY: usize = 6;

/// Proves its own guilt again and again, with ever new messages.
pub(super) struct Confess;

impl Lie for Confess {
    fn beat(&mut self, who: &mut Who, act: &mut Act) {
        for _ in 0..MANY {
            let view = 1 + who.random.below(1 << 20) as u64;
            let mut sign = || {
                let body = Body::Notarize {
                    block: who.hash(),
                    checked: Checked::Structure,
                };
                let (message, frame) = seal(&who.epoch, &who.key, 0, view, who.me, body);
                who.oracle.sealed(&who.epoch, who.me, &frame);
                message
            };
            let (first, second) = (sign(), sign());
            if let Some(evidence) = Evidence::of(&first, &second) {
                act.say(None, seal_evidence(&who.epoch, &evidence));
                act.bad += 1;
            }
        }
    }
}

/// Accuses honest members of what they did not do.
#[derive(Default)]
pub(super) struct FalseEvidence {
    /// Something that each member signed.
    heard: BTreeMap<MemberIndex, Vec<Message>>,
}

impl Lie for FalseEvidence {
    fn hear(&mut self, who: &mut Who, opened: &Opened, _: &mut Act) -> bool {
        if let Opened::Message(message) = opened {
            let heard = self.heard.entry(message.sender).or_default();
            if heard.len() < 8 {
                heard.push(message.clone());
            } else {
                let at = who.random.below(8);
                heard[at] = message.clone();
            }
        }
        false
    }

    fn beat(&mut self, who: &mut Who, act: &mut Act) {
        let member = who.somebody();
        let Some(heard) = self.heard.get(&member) else {
            return;
        };
        let one = &heard[who.random.below(heard.len())];
        let other = &heard[who.random.below(heard.len())];
        let block = who.hash();
        let signed = |message: &Message, round, view, body| Signed {
            round,
            view,
            body,
            signature: message.signature,
        };
        let invented = [block, who.hash()].map(|block| Body::Notarize {
            block,
            checked: Checked::Structure,
        });
        let view = one.view.max(1);
        let evidence = if who.random.chance(0.5) {
            // Two messages that it did sign, and that may stand beside each other.
            Evidence {
                member,
                first: signed(one, one.round, one.view, one.body.clone()),
                second: signed(other, other.round, other.view, other.body.clone()),
            }
        } else {
            // Two that conflict, and that it did not sign.
            let [first, second] = invented;
            Evidence {
                member,
                first: signed(one, 0, view, first),
                second: signed(other, 0, view, second),
            }
        };
        act.say(None, seal_evidence(&who.epoch, &evidence));
        act.bad += 1;
    }
}
