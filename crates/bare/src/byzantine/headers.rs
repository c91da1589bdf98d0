//! Messages with a wrong round, view or key.

use bytes::Bytes;
use protocol::SecretKey;
use protocol::envelope::sign;
use protocol::message::Kind;

use super::{Actions, Attacker, Deviation, OutgoingFrame};
use crate::invariants::kind;

/// Offsets of round and view in a frame, as `protocol::envelope` lays it out.
const NUMBERS: [usize; 2] = [65, 73];

/// Signs some messages with a key that is not in the roster.
pub(super) struct WrongKey;

impl Deviation for WrongKey {
    fn send(
        &mut self,
        attacker: &mut Attacker,
        outgoing: &OutgoingFrame<'_>,
        actions: &mut Actions,
    ) -> bool {
        let Some(message) = outgoing.message.filter(|_| attacker.random.chance(0.3)) else {
            return false;
        };
        let key = SecretKey::from_bytes(&attacker.random.bytes());
        let (round, view, body) = (message.round, message.view, message.body.clone());
        let (_, frame) = sign(&attacker.epoch, &key, round, view, attacker.me, body);
        actions.send(outgoing.to, frame);
        actions.misdeeds += 1;
        true
    }
}

/// Signs messages with a wrong round, a wrong view or both.
pub(super) struct WrongHeader {
    /// The kind of message; `None`: every kind.
    kind: Option<Kind>,
    /// Whether the round and whether the view is wrong.
    wrong: [bool; 2],
    /// True if the right message is sent too.
    beside: bool,
    chance: f64,
}

impl WrongHeader {
    pub(super) fn new(attacker: &mut Attacker) -> Self {
        let random = &mut attacker.random;
        let one = Kind::ALL[random.below(Kind::ALL.len())];
        let kind = random.chance(0.7).then_some(one);
        let wrong = [[true, false], [false, true], [true, true]][random.below(3)];
        Self {
            kind,
            wrong,
            beside: random.chance(0.3),
            chance: if random.chance(0.5) { 1.0 } else { 0.3 },
        }
    }

    /// A wrong number instead of `right`: the next, the previous, 0, or a far one.
    fn number(attacker: &mut Attacker, right: u64) -> u64 {
        let far = 1 << attacker.random.below(64);
        let choices = [right + 1, right.saturating_sub(1), 0, far, u64::MAX];
        let wrong = choices[attacker.random.below(choices.len())];
        if wrong == right { right + 2 } else { wrong }
    }
}

impl Deviation for WrongHeader {
    fn send(
        &mut self,
        attacker: &mut Attacker,
        outgoing: &OutgoingFrame<'_>,
        actions: &mut Actions,
    ) -> bool {
        let Some(kind) = kind(outgoing.frame) else {
            return false;
        };
        if self.kind.is_some_and(|one| one != kind) || !attacker.random.chance(self.chance) {
            return false;
        }
        let frame = match outgoing.message {
            Some(message) => {
                let [round, view] = self.wrong;
                let right = (message.round, message.view);
                let round = if round {
                    Self::number(attacker, right.0)
                } else {
                    right.0
                };
                let view = if view {
                    Self::number(attacker, right.1)
                } else {
                    right.1
                };
                attacker.sign(round, view, message.body.clone())
            }
            // Certificates and evidence have no signature of a sender: their headers can simply be
            // changed.
            None => {
                let mut bytes = outgoing.frame.to_vec();
                for (at, _) in NUMBERS.iter().zip(self.wrong).filter(|(_, wrong)| *wrong) {
                    let far = 1u64 << attacker.random.below(64);
                    bytes[*at..at + 8].copy_from_slice(&far.to_le_bytes());
                }
                Bytes::from(bytes)
            }
        };
        actions.send(outgoing.to, frame);
        actions.misdeeds += 1;
        !self.beside
    }
}
