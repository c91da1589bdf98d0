//! The links of a chain, from the final blocks in a journal.

use std::collections::BTreeMap;
use std::sync::Arc;

use agreement::{Agreement, Changed};
use protocol::certificate::{Certificate, Verdict};
use protocol::identity::Strict;
use protocol::message::{Block, Content, MaskedRound, Passage, Recovery};
use protocol::privacy::{Group, Masked};
use protocol::rotation::Turns;
use protocol::{Epoch, Hash, MemberIndex};
use silo::JournalRecord;

use super::{ChainLink, MaskedLink, MissingBlocks, Who, before};
use formatting::numbers::plain;

/// Blocks that became final together, and the certificate of the last.
pub(super) type CertifiedBlocks = (Vec<Block>, Certificate);

/// The final blocks among the records of a journal. One that was lost while an epoch was under way has the
/// blocks of that epoch again, from its first.
pub(super) fn parts(records: Vec<JournalRecord>) -> Vec<CertifiedBlocks> {
    let mut parts: Vec<CertifiedBlocks> = Vec::new();
    let (mut epoch, mut lost) = (0, false);
    for record in records {
        match record {
            JournalRecord::Lost => lost = true,
            JournalRecord::Protocol(protocol::Record::Final { blocks, proof }) => {
                let parent = |part: &CertifiedBlocks| part.0.first().map(|block| block.parent);
                let before = parts.get(epoch).and_then(parent);
                let again = lost && before.is_some() && before == blocks.first().map(|b| b.parent);
                if again {
                    parts.truncate(epoch);
                }
                let over = Passage::among(&blocks, &proof).is_some();
                parts.push((blocks, proof));
                if over {
                    epoch = parts.len();
                }
            }
            _ => {}
        }
    }
    parts
}

/// The outcomes of secure-aggregation rounds that the records of a journal prove or name, by the hash of their block: by
/// a certificate, by the next round, or by the end of an epoch. The block itself does not name it.
pub(crate) fn certified_outcomes(records: &[JournalRecord]) -> BTreeMap<Hash, Hash> {
    let mut outcomes = BTreeMap::new();
    let mut last = None;
    for record in records {
        match record {
            JournalRecord::Protocol(protocol::Record::Certified(certificate)) => {
                if let Verdict::Outcome { block, outcome } = certificate.verdict {
                    outcomes.insert(block, outcome);
                }
            }
            JournalRecord::Protocol(protocol::Record::Final { blocks, .. }) => {
                for block in blocks {
                    let named = match &block.content {
                        Content::Masked(next) => last.map(|last| (last, next.state)),
                        Content::Change(change) => Some((change.after.block, change.after.outcome)),
                        Content::Recovery(recovery) => {
                            Some((recovery.after.block, recovery.after.outcome))
                        }
                        Content::Learning(_) | Content::Empty => None,
                    };
                    outcomes.extend(named);
                    last = match &block.content {
                        // Behind a change or a recovery the next round begins with what that one names.
                        Content::Change(_) | Content::Recovery(_) | Content::Learning(_) => None,
                        Content::Masked(_) => Some(block.hash()),
                        Content::Empty => last,
                    };
                }
            }
            _ => {}
        }
    }
    outcomes
}

/// The links of all blocks, after verifying that each follows the one before it, and its certificate;
/// and what is missing between them.
pub(super) fn links(
    parts: &[CertifiedBlocks],
    mut agreement: Option<Agreement>,
) -> Result<(Vec<ChainLink>, Vec<MissingBlocks>), String> {
    let mut epoch = agreement.as_ref().map(|first| first.epoch.clone());
    let mut parent = epoch.as_ref().map(|epoch| epoch.id);
    let (mut links, mut missing): (Vec<ChainLink>, Vec<MissingBlocks>) = (Vec::new(), Vec::new());
    let mut last = 0;
    let mut leads = epoch.clone().map(Leads::new);
    for (blocks, proof) in parts {
        let passage = Passage::among(blocks, proof);
        let count = blocks.len() - passage.as_ref().map_or(0, |passage| passage.blocks.len());
        for block in &blocks[..count] {
            if parent.is_some_and(|parent| parent != block.parent) {
                return Err(format!(
                    "the block of view {} does not follow the block before it",
                    block.view
                ));
            }
            parent = Some(block.hash());
            last = block.round().map_or(last, |of| of.round);
            let lead = leads
                .as_mut()
                .and_then(|leads| leads.of(block.view, authors(block).as_deref()));
            links.push(link(block, (epoch.as_deref(), &[]), lead));
        }
        if let Some(passage) = passage {
            // Empty blocks after the change only made it final. A member that was away lacks the
            // blocks before it.
            let change = &passage.blocks[0];
            let gap = before(&passage, parent, last, |by| who(epoch.as_deref(), by));
            // Who led is known without the rounds before only if it follows from the view alone.
            let known =
                |leads: &&Leads| gap.is_none() || !leads.epoch.protocol.rotation.follows_rounds();
            let leads_it = leads.as_ref().filter(known);
            let leads_it = leads_it.filter(|_| passage.recovery().is_none());
            let lead = leads_it.map(|leads| leads.turns.lead(&leads.epoch, change.view));
            missing.extend(gap);
            last = match (change.change(), change.recovery()) {
                (Some(change), _) => change.after.round,
                (_, Some(recovery)) => recovery.after.round,
                _ => last,
            };
            parent = Some(change.hash());
            let next = epoch.as_ref().map(|old| passage.verify(old, &Strict));
            let next = next.transpose().map_err(|error| error.to_string())?;
            let next = next.map(Arc::new);
            let now = agreement.as_ref().zip(next.clone());
            let now = now.and_then(|(old, next)| following(old, change, next));
            let keys = agreement.as_ref().zip(now.as_ref());
            let keys = keys.map_or(Vec::new(), |(old, now)| changed_keys(old, now));
            links.push(link(change, (epoch.as_deref(), &keys), lead));
            (epoch, agreement) = (next.or(epoch), now);
            leads = epoch.clone().map(Leads::new);
            continue;
        }
        if proof.verdict.block() != parent {
            return Err(format!(
                "the certificate of view {} is of another block",
                proof.view
            ));
        }
        if let Some(epoch) = &epoch {
            let verified = proof.verify(epoch, &Strict);
            verified.map_err(|error| error.to_string())?;
        }
    }
    Ok((links, missing))
}

/// The leads of an epoch's blocks, asked for in order from the first.
pub(crate) struct Leads {
    pub(crate) epoch: Arc<Epoch>,
    turns: Turns,
    /// Who led before the last learning block, if the block before was that one.
    before: Option<Turns>,
}

impl Leads {
    pub(crate) fn new(epoch: Arc<Epoch>) -> Self {
        Self {
            turns: epoch.turns(),
            epoch,
            before: None,
        }
    }

    /// The lead of a block of this view; `authors` are those of its round, if it is one. An empty block
    /// after a learning block was proposed before that one was known to be final; for one after an empty
    /// block the chain does not tell, unless the view alone does.
    pub(crate) fn of(&mut self, view: u64, authors: Option<&[MemberIndex]>) -> Option<MemberIndex> {
        let Some(authors) = authors else {
            let before = self.before.take();
            let turns = if self.epoch.protocol.rotation.follows_rounds() {
                before?
            } else {
                self.turns.clone()
            };
            return Some(turns.lead(&self.epoch, view));
        };
        let lead = self.turns.lead(&self.epoch, view);
        self.before = Some(self.turns.clone());
        self.turns.advance(&self.epoch, view, authors);
        Some(lead)
    }
}

/// Returns what a recovery says, a few words each.
fn recovered(epoch: Option<&Epoch>, recovery: &Recovery) -> Vec<String> {
    let name = |member: MemberIndex| match epoch {
        Some(epoch) => plain(epoch.roster.name(member)),
        None => format!("#{}", member.0),
    };
    let lost = recovery
        .lost
        .iter()
        .map(|lost| format!("lost {}", name(*lost)));
    let by: Vec<_> = recovery
        .standings
        .iter()
        .map(|signed| name(signed.by))
        .collect();
    let mut words: Vec<_> = lost.collect();
    words.push(format!(
        "without a quorum, signed by all remaining members ({}), after round {}",
        by.join(", "),
        recovery.after.round
    ));
    for round in recovery.rounds_lost() {
        words.push(format!(
            "round {round} was final, but none of the remaining members has its models"
        ));
    }
    if let Some(view) = recovery.notarised() {
        words.push(format!(
            "the block of view {view} was notarised and may be final for a lost member"
        ));
    }
    words
}

/// The agreement that a block at the end of an epoch brings into force, as far as it can be read.
fn following(old: &Agreement, block: &Block, next: Arc<Epoch>) -> Option<Agreement> {
    match block.change() {
        Some(change) => old.after(&change.amendment, next).ok(),
        None => old.following(block, next, learn::stand_in).ok(),
    }
}

/// Most keys of a change that are named one by one.
const KEYS: usize = 6;

/// The keys in which an agreement differs from the one before it, with both values; not those of members and what
/// follows from their number, and not the number of rounds.
fn changed_keys(old: &Agreement, new: &Agreement) -> Vec<String> {
    let changes = old.difference(new).changes;
    let (before, after) = (&old.epoch, &new.epoch);
    let follows = before
        .protocol
        .for_members(before.roster.len(), after.roster.len());
    let told = |change: &&Changed| match &*change.key {
        "rounds" => false,
        "protocol.min-contributions" => {
            follows.min_contributions != after.protocol.min_contributions
        }
        "protocol.view-timeout" => follows.view_timeout != after.protocol.view_timeout,
        key => !key.starts_with("member"),
    };
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "not set".into());
    let line = |change: &Changed| {
        let (before, after) = (value(&change.before), value(&change.after));
        plain(&format!("{} {before} → {after}", change.key))
    };
    let mut keys: Vec<String> = changes.iter().filter(told).map(line).collect();
    let more = keys.len().saturating_sub(KEYS);
    if more > 1 {
        keys.truncate(KEYS);
        keys.push(format!("{more} more keys"));
    }
    keys
}

/// Returns what a change changes, a few words each. `keys` are those that differ, where they are known.
fn changed(
    epoch: Option<&Epoch>,
    change: &protocol::message::Change,
    keys: &[String],
) -> Vec<String> {
    let Some(epoch) = epoch else {
        return Vec::new();
    };
    let (old, new) = (epoch.roster.silos(), &change.amendment.silos);
    let mut words = Vec::new();
    for silo in new {
        match old.iter().find(|before| before.name == silo.name) {
            None => words.push(format!("admits {}", plain(&silo.name))),
            Some(before) if before.key != silo.key => {
                words.push(format!("another key of {}", plain(&silo.name)));
            }
            Some(_) => {}
        }
    }
    let gone = old
        .iter()
        .filter(|before| new.iter().all(|silo| silo.name != before.name));
    words.extend(gone.map(|silo| format!("without {}", plain(&silo.name))));
    let (before, after) = (&epoch.protocol, &change.amendment.protocol);
    if before.rounds != after.rounds {
        words.push(format!("{} rounds", after.rounds));
    }
    words.extend(keys.iter().cloned());
    if !keys.is_empty() {
        return words;
    }
    if before.work != after.work && before.rounds == after.rounds {
        words.push("other options".into());
    }
    let rounds = protocol::ProtocolParameters {
        rounds: after.rounds,
        // Holds the number of rounds too.
        work: after.work.clone(),
        ..before.for_members(old.len(), new.len())
    };
    if rounds != *after {
        words.push("other rules".into());
    }
    if words.is_empty() {
        words.push("other addresses".into());
    }
    words
}

/// A member of an epoch.
fn who(epoch: Option<&Epoch>, member: MemberIndex) -> Who {
    match epoch {
        Some(epoch) => Who::Name(epoch.roster.name(member).to_owned()),
        None => Who::Position(member.0),
    }
}

/// The members whose contributions are in the round of a block; `None` for other blocks.
pub(crate) fn authors(block: &Block) -> Option<Vec<MemberIndex>> {
    Some(block.round()?.members())
}

/// The members that approved a change, or signed a recovery.
fn approved(block: &Block) -> Vec<MemberIndex> {
    match &block.content {
        Content::Change(change) => change.approvals.iter().map(|signed| signed.by).collect(),
        Content::Recovery(recovery) => recovery.standings.iter().map(|signed| signed.by).collect(),
        Content::Learning(_) | Content::Masked(_) | Content::Empty => Vec::new(),
    }
}

/// A block of an epoch. `keys` are those that its change changes, where they are known.
fn link(
    block: &Block,
    (epoch, keys): (Option<&Epoch>, &[String]),
    lead: Option<MemberIndex>,
) -> ChainLink {
    let who = |member| who(epoch, member);
    let of = block.round();
    let signers = authors(block).unwrap_or_default();
    let left_out = epoch.filter(|_| of.is_some()).map(|epoch| {
        let others = epoch
            .roster
            .members()
            .filter(|other| !signers.contains(other));
        others.map(who).collect()
    });
    ChainLink {
        round: of.map(|of| of.round),
        change: match &block.content {
            Content::Change(change) => Some(changed(epoch, change, keys)),
            Content::Recovery(recovery) => Some(recovered(epoch, recovery)),
            Content::Learning(_) | Content::Masked(_) | Content::Empty => None,
        },
        approved: approved(block).into_iter().map(who).collect(),
        recovery: block.recovery().is_some(),
        view: block.view,
        lead: lead.map(who),
        block: format!("{:#}", block.hash()),
        parent: format!("{:#}", block.parent),
        outcome: of.and_then(|of| of.outcome.map(|outcome| format!("{outcome:#}"))),
        included: signers.iter().copied().map(who).collect(),
        left_out,
        others: None,
        masked: block.masked().map(|of| masked(epoch, of)),
    }
}

/// Returns what is known of a secure-aggregation round from its block alone.
fn masked(epoch: Option<&Epoch>, of: &MaskedRound) -> MaskedLink {
    let agreed = epoch.and_then(|epoch| Some((epoch, epoch.protocol.privacy.masked()?)));
    let missing = |epoch: &Epoch, masked: &Masked| {
        let ready = |name: &str| of.ready.iter().any(|by| epoch.roster.name(*by) == name);
        let groups = masked.groups().iter();
        let incomplete = groups.filter(|group| !group.authors.iter().all(|(name, _)| ready(name)));
        incomplete.map(group_names).collect()
    };
    MaskedLink {
        sat_out: agreed.map(|(epoch, masked)| missing(epoch, masked)),
        void: Vec::new(),
        search: None,
    }
}

/// The members of a group, with commas between them.
pub(super) fn group_names(group: &Group) -> String {
    let names = group.authors.iter().map(|(name, _)| plain(name));
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use protocol::message::{Amendment, Change};

    use super::*;
    use crate::fixture::North;

    #[test]
    fn a_change_of_rounds_and_of_an_option_names_both() {
        let old = North::agreement(&[]);
        let new = North::agreement(&[
            ("rounds = 6", "rounds = 200"),
            ("rate = 0.02", "rate = 0.5"),
        ]);
        let change = Change {
            amendment: Amendment {
                silos: old.epoch.roster.silos().to_vec(),
                protocol: new.epoch.protocol.clone(),
                ..Amendment::leaving(&old.epoch, MemberIndex(0))
            },
            after: old.epoch.began,
            approvals: [].into(),
        };
        let said = changed(Some(&old.epoch), &change, &changed_keys(&old, &new));
        let rate = "strategy.training.optimiser.rate 0.02 → 0.5";
        assert_eq!(said, ["200 rounds", rate]);
        // Only what is known is said.
        assert_eq!(changed(Some(&old.epoch), &change, &[]), ["200 rounds"]);
    }

    #[test]
    fn many_keys_are_counted_and_none_of_the_protocol_is_left_out() {
        let old = North::agreement(&[]);
        let new = North::agreement(&[
            ("epochs = 10", "epochs = 11"),
            ("batch = 8", "batch = 9"),
            ("straggler-timeout = 12", "straggler-timeout = 13"),
            ("keep-rounds = 3", "keep-rounds = 4"),
            ("view-timeout = 29", "view-timeout = 30"),
            ("folds = 5", "folds = 6"),
            ("max-model-norm = 1000.0", "max-model-norm = 99.0"),
            ("blob-limit = 392", "blob-limit = 393"),
        ]);
        let keys = changed_keys(&old, &new);
        assert_eq!((keys.len(), &*keys[KEYS]), (KEYS + 1, "2 more keys"));
        let one = North::agreement(&[("keep-rounds = 3", "keep-rounds = 4")]);
        assert_eq!(changed_keys(&old, &one), ["protocol.keep-rounds 3 → 4"]);
    }
}
