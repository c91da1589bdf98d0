//! Rounds, views and signatures that do not belong to what is said.

use bytes::Bytes;
use protocol::SecretKey;
use protocol::envelope::seal;
use protocol::message::Kind;

use super::{Act, Lie, Said, Who};
use crate::invariants::kind;

/// Where round and view stand in a frame; the layout is `protocol::envelope`'s.
const NUMBERS: [usize; 2] = [65, 73];

/// Signs with a key of its own making, now and then.
pub(super) struct WrongKey;

impl Lie for WrongKey {
    fn say(&mut self, who: &mut Who, said: &Said<'_>, act: &mut Act) -> bool {
        let Some(message) = said.message.filter(|_| who.random.chance(0.3)) else {
            return false;
        };
        let key = SecretKey::from_bytes(&who.random.bytes());
        let (round, view, body) = (message.round, message.view, message.body.clone());
        let (_, frame) = seal(&who.epoch, &key, round, view, who.me, body);
        act.say(said.to, frame);
        act.bad += 1;
        true
    }
}

/// Signs under a round, a view or both that the message does not belong to.
pub(super) struct Misheaded {
    /// One kind; every kind if none.
    kind: Option<Kind>,
    /// Which of round and view are wrong.
    wrong: [bool; 2],
    /// Whether the right message goes out too.
    beside: bool,
    chance: f64,
}

impl Misheaded {
    pub(super) fn new(who: &mut Who) -> Self {
        let random = &mut who.random;
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

    /// Another number in place of `right`: the next, the one before, none, or far away.
    fn number(who: &mut Who, right: u64) -> u64 {
        let far = 1 << who.random.below(64);
        let choices = [right + 1, right.saturating_sub(1), 0, far, u64::MAX];
        let wrong = choices[who.random.below(choices.len())];
        if wrong == right { right + 2 } else { wrong }
    }
}

impl Lie for Misheaded {
    fn say(&mut self, who: &mut Who, said: &Said<'_>, act: &mut Act) -> bool {
        let Some(kind) = kind(said.frame) else {
            return false;
        };
        if self.kind.is_some_and(|one| one != kind) || !who.random.chance(self.chance) {
            return false;
        }
        let frame = match said.message {
            Some(message) => {
                let [round, view] = self.wrong;
                let right = (message.round, message.view);
                let round = if round {
                    Self::number(who, right.0)
                } else {
                    right.0
                };
                let view = if view {
                    Self::number(who, right.1)
                } else {
                    right.1
                };
                who.seal(round, view, message.body.clone())
            }
            // What stands alone is signed by nobody: its header can just be changed.
            None => {
                let mut bytes = said.frame.to_vec();
                for (at, _) in NUMBERS.iter().zip(self.wrong).filter(|(_, wrong)| *wrong) {
                    let far = 1u64 << who.random.below(64);
                    bytes[*at..at + 8].copy_from_slice(&far.to_le_bytes());
                }
                Bytes::from(bytes)
            }
        };
        act.say(said.to, frame);
        act.bad += 1;
        !self.beside
    }
}
