//! Contributions, score rows and inclusions that are not what they should be.

use std::collections::BTreeMap;

use protocol::envelope::Opened;
use protocol::message::{Body, Content, Contribution, EntryFields, Kind, Message, Scores};
use protocol::{Hash, MemberIndex};

use super::{Act, Lie, Said, Who};

/// Contributes twice.
pub(super) struct DoubleContribution;

impl Lie for DoubleContribution {
    fn say(&mut self, who: &mut Who, said: &Said<'_>, act: &mut Act) -> bool {
        if let Some(message) = said.message
            && let Body::Contribution(contribution) = &message.body
        {
            let other = Contribution {
                nonce: who.random.bytes(),
                ..contribution.clone()
            };
            let body = Body::Contribution(other);
            act.say(said.to, who.seal(message.round, message.view, body));
            act.bad += 1;
        }
        false
    }
}

/// What the victim of this round sent to the lead that lies.
fn harmed<'a>(who: &Who, opened: &'a Opened) -> Option<&'a Message> {
    match opened {
        Opened::Message(message) if message.sender == who.victim(message.round) && who.leads() => {
            Some(message)
        }
        _ => None,
    }
}

/// Writes scores of its own into another's row.
pub(super) struct ForgedRow;

impl Lie for ForgedRow {
    fn hear(&mut self, who: &mut Who, opened: &Opened, act: &mut Act) -> bool {
        let Some(message) = harmed(who, opened) else {
            return false;
        };
        let Body::Scores(scores) = &message.body else {
            return false;
        };
        let mut forged = scores.clone();
        forged.losses.iter_mut().for_each(|(_, loss)| *loss += 1.0);
        act.inject.push(Opened::Message(Message {
            body: Body::Scores(forged),
            ..message.clone()
        }));
        act.bad += 1;
        true
    }
}

/// Gives a receipt and leaves the entry out.
pub(super) struct IgnoredReceipt;

impl Lie for IgnoredReceipt {
    fn hear(&mut self, who: &mut Who, opened: &Opened, act: &mut Act) -> bool {
        let Some(message) = harmed(who, opened) else {
            return false;
        };
        let Body::Contribution(own) = &message.body else {
            return false;
        };
        let entry = own.entry(&who.epoch.federation, message.round).id;
        let receipt = who.seal(0, who.view, Body::Receipt { entry });
        act.say(Some(message.sender), receipt);
        act.bad += 1;
        true
    }
}

/// Puts an entry of its own in another's place.
#[derive(Default)]
pub(super) struct Stuffed {
    /// Contributions invented in another's name, by round.
    invented: BTreeMap<u64, (MemberIndex, Contribution)>,
    /// Their models, which it claims to have.
    blobs: Vec<Hash>,
}

impl Lie for Stuffed {
    fn hear(&mut self, who: &mut Who, opened: &Opened, act: &mut Act) -> bool {
        let Some(message) = harmed(who, opened) else {
            return false;
        };
        let Body::Contribution(own) = &message.body else {
            return false;
        };
        let (blob, nonce) = (who.hash(), who.random.bytes());
        let invented = Contribution {
            fields: EntryFields {
                blob,
                ..own.fields.clone()
            },
            nonce,
            ..own.clone()
        };
        let place = self.invented.entry(message.round);
        let (_, invented) = place.or_insert((message.sender, invented));
        self.blobs.push(invented.fields.blob);
        act.inject.push(Opened::Message(Message {
            body: Body::Contribution(invented.clone()),
            ..message.clone()
        }));
        act.bad += 1;
        true
    }

    fn say(&mut self, who: &mut Who, said: &Said<'_>, act: &mut Act) -> bool {
        let Some(message) = said.message else {
            return false;
        };
        let round = match &message.body {
            Body::Proposal(proposal) => proposal.block.learning().map_or(0, |l| l.round),
            _ => message.round,
        };
        let Some((victim, invented)) = self.invented.get(&round) else {
            return false;
        };
        match &message.body {
            Body::Bundle(bundle) => {
                let blobs = bundle.entries.iter().map(|entry| entry.fields.blob);
                let mut losses: Vec<_> = blobs.map(|blob| (blob, 1.0)).collect();
                losses.sort_by_key(|&(blob, _)| blob);
                let entry = invented.entry(&who.epoch.federation, round).id;
                let body = Body::Scores(Scores { entry, losses });
                act.inject.push(pretend(who, *victim, round, body));
                false
            }
            Body::Sheet(sheet) => {
                let sheet = sheet.root();
                let body = Body::Inclusion { sheet };
                act.inject.push(pretend(who, *victim, round, body));
                false
            }
            Body::Proposal(proposal) => {
                let mut other = proposal.clone();
                if let Content::Learning(learning) = &mut other.block.content {
                    let signed = learning.inclusions.iter();
                    let others = signed.filter(|(member, _)| member != victim);
                    learning.inclusions = others.copied().collect();
                }
                act.say(said.to, who.seal(0, message.view, Body::Proposal(other)));
                act.bad += 1;
                true
            }
            _ => false,
        }
    }

    fn invents(&self, blob: &Hash) -> bool {
        self.blobs.contains(blob)
    }
}

/// A message as if another had said it; only its own member believes it.
fn pretend(who: &Who, sender: MemberIndex, round: u64, body: Body) -> Opened {
    let signature = who.key.sign(b"pretended");
    Opened::Message(Message {
        round,
        view: 0,
        sender,
        body,
        signature,
    })
}

/// Contributes, but keeps back its scores or its signature over the sheet.
pub(super) struct Unsigned {
    missing: Kind,
}

impl Unsigned {
    pub(super) fn new(who: &mut Who) -> Self {
        let scores = who.random.chance(0.5);
        let missing = if scores {
            Kind::Scores
        } else {
            Kind::Inclusion
        };
        Self { missing }
    }
}

impl Lie for Unsigned {
    fn say(&mut self, _: &mut Who, said: &Said<'_>, act: &mut Act) -> bool {
        let kind = said.message.map(|message| message.body.kind());
        let kept = kind == Some(self.missing);
        act.bad += u64::from(kept);
        kept
    }
}

/// Takes part in rounds whose plan does not name it.
pub(super) struct Uninvited;

impl Lie for Uninvited {
    fn invites(&self) -> bool {
        true
    }
}
