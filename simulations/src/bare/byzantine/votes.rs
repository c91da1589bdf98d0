//! Votes that contradict each other.

use protocol::Hash;
use protocol::certificate::Checked;
use protocol::message::Body;

use super::{Act, Lie, Said, Who};

/// Votes for everything at once: two blocks, finality before there is a certificate, and against
/// the view all the same.
#[derive(Default)]
pub(super) struct DoubleVote {
    voted: Option<Hash>,
}

impl Lie for DoubleVote {
    fn say(&mut self, who: &mut Who, said: &Said<'_>, act: &mut Act) -> bool {
        let Some(message) = said.message else {
            return false;
        };
        let view = message.view;
        match (&message.body, self.voted) {
            (&Body::Notarize { block, checked }, _) => {
                self.voted = Some(block);
                let other = who.hash();
                let other = Body::Notarize {
                    block: other,
                    checked,
                };
                for body in [other, Body::Finalize { block }, Body::Nullify] {
                    act.say(None, who.seal(0, view, body));
                }
                act.bad += 1;
            }
            (Body::Nullify, Some(block)) => {
                let checked = Checked::Structure;
                for body in [Body::Finalize { block }, Body::Notarize { block, checked }] {
                    act.say(None, who.seal(0, view, body));
                }
                act.bad += 1;
            }
            _ => {}
        }
        false
    }
}
