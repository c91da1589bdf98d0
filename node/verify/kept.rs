//! The secure-aggregation rounds of a state folder: its chain, verified, and the sums of the rounds that are kept,
//! opened again.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use agreement::Agreement;
use protocol::message::Content;
use protocol::work::FinalMasked;
use protocol::{Epoch, Hash, MemberIndex, PublicKey};
use serde::Serialize;
use silo::rounds::read_unmaskings;
use silo::{Adopted, JournalRecord, Replay, SiloConfig};

use super::chain::VerifiedChain;
use super::rounds::{self, NotComputed};
use super::state::{VerifyError, each_epoch, final_masked, opened};
use crate::chain::certified_outcomes;
use crate::store;

/// A state folder with its chain, verified.
pub(crate) struct KeptChain {
    /// The first agreement.
    agreement: Agreement,
    /// The silo's place in it.
    me: MemberIndex,
    /// The silo's key.
    pub(crate) key: PublicKey,
    /// The records of the journal.
    pub(crate) records: Vec<JournalRecord>,
    chain: VerifiedChain,
    outcomes: BTreeMap<Hash, Hash>,
}

impl KeptChain {
    /// Reads the chain in a folder, by the agreement in the file `federation` or the copy in the folder.
    ///
    /// # Errors
    /// [`VerifyError`].
    pub(crate) fn read(folder: &Path, federation: Option<&Path>) -> Result<Self, VerifyError> {
        let (journal, agreement) = opened(folder, federation)?;
        let mut chain = VerifiedChain::new(agreement.epoch.clone());
        for record in &journal.records {
            match record {
                JournalRecord::Lost => chain.lose(),
                JournalRecord::Protocol(protocol::Record::Final { blocks, proof }) => {
                    let added = chain.add(blocks.clone(), proof);
                    added.map_err(|what| VerifyError::Wrong {
                        folder: folder.to_owned(),
                        what,
                    })?;
                }
                _ => {}
            }
        }
        Ok(Self {
            agreement,
            me: journal.member,
            key: journal.key,
            outcomes: certified_outcomes(&journal.records),
            records: journal.records,
            chain,
        })
    }

    /// The federation's name.
    pub(crate) fn federation(&self) -> &str {
        &self.agreement.epoch.protocol.name
    }

    /// The secure-aggregation round of this number, with its epoch and the outcome that a quorum has certified, if that
    /// is known. After a recovery a number may be there again; it is the last one.
    pub(crate) fn masked(&self, round: u64) -> Option<(Arc<Epoch>, FinalMasked, Option<Hash>)> {
        let mut blocks = self.chain.blocks.iter().rev();
        blocks.find_map(|(hash, block)| {
            let masked = block.masked().filter(|masked| masked.round == round)?;
            let mut epochs = self.chain.epochs.iter();
            let epoch = epochs.find(|epoch| epoch.id == block.epoch)?;
            let of = final_masked(epoch, *hash, masked);
            Some((epoch.clone(), of, self.outcomes.get(hash).copied()))
        })
    }

    /// Returns whether there is a round of this number, of any kind.
    pub(crate) fn has(&self, round: u64) -> bool {
        let mut blocks = self.chain.blocks.iter();
        blocks.any(|(_, block)| block.round().is_some_and(|of| of.round == round))
    }
}

/// The sums of secure-aggregation rounds that a node can open again.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub struct ReopenedSums {
    /// The federation's name.
    pub federation_name: String,
    /// Final rounds in clear.
    pub clear: usize,
    /// Final secure-aggregation rounds.
    pub masked: usize,
    /// The secure-aggregation rounds whose sums were opened again.
    pub opened: Vec<ReopenedRound>,
    /// The other secure-aggregation rounds.
    pub not_opened: Vec<NotComputed>,
}

/// A secure-aggregation round whose sums were opened again.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub struct ReopenedRound {
    /// The round.
    pub round: u64,
    /// Its sums.
    pub sums: Vec<ReopenedSum>,
}

/// An opened sum.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub struct ReopenedSum {
    /// Names of the authors.
    pub authors: Vec<String>,
    /// The weighted sum of their vectors; `None` if it tells nothing.
    pub values: Option<Vec<i64>>,
    /// With noise, the standard deviation of that of one author in each coordinate.
    pub sigma: Option<f64>,
}

/// Opens the sums of the secure-aggregation rounds that the node with this state folder has kept, as `rota verify`
/// does. Needs no key and changes nothing; the node may run. `data` is the folder of data sets, for the
/// tasks of benchmarks.
///
/// # Errors
/// [`VerifyError`].
pub fn kept_sums(
    folder: &Path,
    federation: Option<&Path>,
    data: Option<&Path>,
) -> Result<ReopenedSums, VerifyError> {
    let kept = KeptChain::read(folder, federation)?;
    let adopted = kept.records.iter().filter_map(|record| match record {
        JournalRecord::Adopted(adopted) => Some((adopted.block, adopted)),
        _ => None,
    });
    let adopted: BTreeMap<_, _> = adopted.collect();
    let mut found = ReopenedSums {
        federation_name: kept.federation().to_owned(),
        clear: 0,
        masked: 0,
        opened: Vec::new(),
        not_opened: Vec::new(),
    };
    let each = each_epoch(&kept.agreement, &kept.chain, |agreement, blocks| {
        let config = rounds::config(agreement, kept.me, folder, data);
        for (hash, block) in blocks {
            let of = match &block.content {
                Content::Learning(_) => {
                    found.clear += 1;
                    continue;
                }
                Content::Masked(round) => final_masked(&agreement.epoch, *hash, round),
                Content::Change(_) | Content::Recovery(_) | Content::Empty => continue,
            };
            found.masked += 1;
            let config = config.as_ref().map_err(Clone::clone);
            let adopted = adopted.get(&hash.0).copied();
            match config.and_then(|config| open(config, folder, &of, adopted)) {
                Ok(round) => found.opened.push(round),
                Err(why) => NotComputed::add(&mut found.not_opened, of.round.round, &why),
            }
        }
        Ok(())
    });
    each.map_err(|what| VerifyError::Wrong {
        folder: folder.to_owned(),
        what,
    })?;
    Ok(found)
}

/// Opens the sums of a round.
///
/// # Errors
/// Why that is not possible here, as a sentence.
fn open(
    config: &SiloConfig,
    folder: &Path,
    of: &FinalMasked,
    adopted: Option<&Adopted>,
) -> Result<ReopenedRound, String> {
    let blob = |hash: &Hash| store::blob(folder, hash);
    let mut all = adopted.into_iter().flat_map(|adopted| &adopted.blobs);
    let unmaskings = all.find_map(|hash| read_unmaskings(&blob(&Hash(*hash))?));
    let gone = "masked vectors and unmaskings are not kept here any more, or this silo did not open the sums";
    let unmaskings = unmaskings.ok_or(gone)?;
    let epoch = &config.member.epoch;
    let first = epoch.number == 0 && of.round.state == epoch.protocol.start;
    let state = if first {
        Replay::new(config)
    } else {
        let state = Replay::after(config, &of.round.state, blob);
        state.map_err(|_| rounds::NO_STATE.to_owned())?
    };
    let name = |by: MemberIndex| epoch.roster.name(by).to_owned();
    let sums = state.sums(of, &unmaskings, blob)?.into_iter();
    Ok(ReopenedRound {
        round: of.round.round,
        sums: sums
            .map(|sum| ReopenedSum {
                authors: sum.authors.iter().map(|(by, _)| name(*by)).collect(),
                values: sum.values,
                sigma: sum.sigma,
            })
            .collect(),
    })
}
