//! S6: a final manifest holds no more entries of faulty origin than faulty members signed for it (so
//! at most f, and at most as many as take part), none twice, and no row that its author did not
//! send.
//!
//! The lead sees all contributions and could invent some, include some twice, or make up scores. It
//! cannot, because every entry needs the signature of a distinct member over the whole manifest, and
//! an honest member signs only where its own entry and row stand unchanged.

use std::collections::BTreeSet;

use protocol::MemberIndex;
use protocol::message::{Learning, RoundManifest};

use super::Property;
use super::ledger::{Fact, Ledger};

/// Checks the manifest of every final learning block.
pub(super) struct FaithfulManifests;

impl Property for FaithfulManifests {
    fn name(&self) -> &'static str {
        "S6 (final sheets hold what their authors sent)"
    }

    fn check(&mut self, fact: &Fact<'_>, ledger: &Ledger) -> Result<(), String> {
        let Fact::Final { block, .. } = fact else {
            return Ok(());
        };
        let Some(learning) = ledger.blocks.get(block).and_then(|block| block.learning()) else {
            return Ok(());
        };
        let round = learning.round;
        let Some((manifest, senders)) = ledger.manifests.get(&learning.manifest) else {
            return Err(format!(
                "the sheet of the final round {round} was never sent"
            ));
        };
        entries(manifest, learning, ledger)?;
        rows(manifest, senders, round, ledger)
    }
}

fn entries(manifest: &RoundManifest, learning: &Learning, ledger: &Ledger) -> Result<(), String> {
    let round = learning.round;
    let (mut seen, mut foreign) = (BTreeSet::new(), 0);
    for entry in &manifest.entries {
        let author = ledger.authors.get(&entry.id).filter(|(_, of)| *of == round);
        if !author.is_some_and(|&(author, _)| ledger.honest(author)) {
            foreign += 1;
        }
        if author.is_some_and(|&(author, _)| !seen.insert(author)) {
            return Err(format!(
                "the final sheet of round {round} holds two entries of one member"
            ));
        }
    }
    let signed = learning.inclusions.iter().map(|&(member, _)| member);
    let most = signed.filter(|&member| !ledger.honest(member)).count();
    if foreign > most {
        return Err(format!(
            "the final sheet of round {round} holds {foreign} entries of faulty origin, and {most} \
             faulty members signed for it"
        ));
    }
    Ok(())
}

fn rows(
    manifest: &RoundManifest,
    senders: &BTreeSet<MemberIndex>,
    round: u64,
    ledger: &Ledger,
) -> Result<(), String> {
    let Some(rows) = &manifest.scores else {
        return Ok(());
    };
    for (entry, row) in manifest.entries.iter().zip(rows) {
        let Some(&(author, _)) = ledger.authors.get(&entry.id) else {
            continue;
        };
        // A lead publishes its own row by sending the manifest.
        if !ledger.honest(author) || senders.contains(&author) {
            continue;
        }
        let published = ledger.scores.get(&(author, round)).into_iter().flatten();
        if !published
            .filter_map(|scores| scores.row(&manifest.entries))
            .any(|sent| sent == *row)
        {
            return Err(format!(
                "the final sheet of round {round} holds a row that its author {} never sent",
                ledger.name(author)
            ));
        }
    }
    Ok(())
}
