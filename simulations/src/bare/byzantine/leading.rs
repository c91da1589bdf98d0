//! A lead that is silent, stalls, contradicts itself, or decides wrongly.

use bytes::Bytes;
use protocol::envelope::Opened;
use protocol::message::{Body, Content, Kind, Proposal};

use super::{Act, Lie, Said, Who};

/// Says nothing while it leads.
pub(super) struct Silent {
    /// But that it makes progress.
    pub(super) stalling: bool,
}

impl Lie for Silent {
    fn say(&mut self, who: &mut Who, said: &Said<'_>, act: &mut Act) -> bool {
        let kind = said.message.map(|message| message.body.kind());
        let passes = self.stalling && kind == Some(Kind::Progress);
        let silent = kind.is_some() && who.leads() && !passes;
        act.bad += u64::from(silent);
        silent
    }
}

/// As a lead it speaks to some members only, others in every view.
pub(super) struct Partial {
    view: u64,
    some: Vec<bool>,
}

impl Partial {
    pub(super) fn new(who: &mut Who) -> Self {
        Self {
            view: 0,
            some: who.some(),
        }
    }
}

impl Lie for Partial {
    fn say(&mut self, who: &mut Who, said: &Said<'_>, act: &mut Act) -> bool {
        if said.message.is_none() || !who.leads() {
            return false;
        }
        if self.view != who.view {
            self.view = who.view;
            self.some = who.some();
        }
        let readers = who.others().filter(|member| self.some[member.at()]);
        for to in readers.filter(|&member| said.to.is_none_or(|to| to == member)) {
            act.say(Some(to), said.frame.clone());
        }
        act.bad += 1;
        true
    }
}

/// A lead's own proposal of a round, to be changed.
pub(super) fn learning(said: &Said<'_>) -> Option<(u64, Proposal)> {
    let message = said.message?;
    let Body::Proposal(proposal) = &message.body else {
        return None;
    };
    proposal.block.learning()?;
    Some((message.view, (**proposal).clone()))
}

/// Proposes one thing to some and another to the others, or the other to whoever has voted for the
/// one. Both are good.
pub(super) struct DoubleProposal {
    /// Whether the second goes to voters for the first.
    late: bool,
    second: Option<(u64, Bytes)>,
}

impl DoubleProposal {
    pub(super) fn new(who: &mut Who) -> Self {
        Self {
            late: who.random.chance(0.5),
            second: None,
        }
    }
}

impl Lie for DoubleProposal {
    fn hear(&mut self, _: &mut Who, opened: &Opened, act: &mut Act) -> bool {
        if let (Opened::Message(message), Some((view, second))) = (opened, &self.second)
            && message.body.kind() == Kind::Notarize
            && message.view == *view
            && self.late
        {
            act.say(Some(message.sender), second.clone());
            act.bad += 1;
        }
        false
    }

    fn say(&mut self, who: &mut Who, said: &Said<'_>, act: &mut Act) -> bool {
        let Some((view, mut other)) = learning(said) else {
            return false;
        };
        if let Content::Learning(learning) = &mut other.block.content {
            learning.decision.push(1);
        }
        let other = who.seal(0, view, Body::Proposal(Box::new(other)));
        self.second = Some((view, other.clone()));
        if self.late {
            return false;
        }
        let to = said.to;
        for member in who
            .others()
            .filter(|&member| to.is_none_or(|to| to == member))
        {
            let half = if member.0 % 2 == 0 {
                said.frame
            } else {
                &other
            };
            act.say(Some(member), half.clone());
        }
        act.bad += 1;
        true
    }
}

/// Claims an outcome that nobody computes.
pub(super) struct BadOutcome;

impl Lie for BadOutcome {
    fn say(&mut self, who: &mut Who, said: &Said<'_>, act: &mut Act) -> bool {
        let Some((view, mut other)) = learning(said) else {
            return false;
        };
        if let Content::Learning(learning) = &mut other.block.content {
            learning.outcome = who.hash();
        }
        let frame = who.seal(0, view, Body::Proposal(Box::new(other)));
        act.say(said.to, frame);
        act.bad += 1;
        true
    }
}

/// Decides what no check accepts.
pub(super) struct BadDecision;

impl Lie for BadDecision {
    fn decide(&mut self, who: &mut Who, _: Vec<u8>) -> Vec<u8> {
        who.random.bytes().to_vec()
    }
}
