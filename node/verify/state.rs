//! Verifies the state folder of a node: chain, certificates, what the silo signed and adopted, blobs,
//! and the rounds themselves, computed again.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use agreement::{Agreement, ConfigError};
use protocol::envelope::{self, OpenError as FrameError};
use protocol::identity::Strict;
use protocol::message::{Block, Content, MaskedRound, Message};
use protocol::verify::Known;
use protocol::work::FinalMasked;
use protocol::{Epoch, Hash, MemberIndex, PublicKey, privacy};
use serde::Serialize;
use silo::outcome::Document;
use silo::{Adopted, JournalRecord};

use super::chain::VerifiedChain;
use super::rounds::{self, CheckedRound, Computed, NotComputed};
use crate::chain::{MissingBlocks, certified_outcomes};
use crate::store::{self, AGREEMENT, Snapshot, StoreOpenError, StoredBlob};

/// Why a state folder was not verified, or what is wrong in it.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// No journal.
    #[error(
        "there is no journal in {}: the node has not run yet", .0.display()
    )]
    Nothing(PathBuf),
    /// The journal cannot be read.
    #[error(transparent)]
    Store(#[from] StoreOpenError),
    /// The agreement cannot be read.
    #[error("{0}: give the agreement with --federation")]
    Agreement(#[from] ConfigError),
    /// The agreement and the journal belong to different federations.
    #[error(
        "the journal in {} belongs to federation {journal}, and the agreement is that of {agreed}",
        folder.display()
    )]
    Federation {
        /// The folder.
        folder: PathBuf,
        /// The federation of the agreement.
        agreed: Hash,
        /// The federation of the journal.
        journal: Hash,
    },
    /// Something in it is wrong.
    #[error("the state in {} is not what was agreed: {what}", folder.display())]
    Wrong {
        /// The folder.
        folder: PathBuf,
        /// The first thing that is wrong.
        what: String,
    },
}

/// What was verified. All of it is as it has to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub struct Verified {
    /// The federation's name.
    pub federation_name: String,
    /// Id of the federation.
    pub federation: String,
    /// The silo whose journal it is.
    pub silo: String,
    /// Final blocks.
    pub blocks: usize,
    /// Final rounds in it.
    pub rounds: usize,
    /// What the chain lacks here, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingBlocks>,
    /// Certificates of a quorum that were verified.
    pub certificates: usize,
    /// Messages that the silo signed and the journal keeps, with their signatures.
    pub signed: usize,
    /// Blobs whose bytes have the hash that the journal names.
    pub blobs: usize,
    /// Blobs that the journal names and that are not here.
    pub missing_blobs: usize,
    /// Recoveries: changes without a quorum, signed by all members that were not lost. By the last
    /// round before each, the members that it declares lost.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub recoveries: BTreeMap<u64, Vec<String>>,
    /// Rounds that were computed again, with the agreed outcome.
    pub computed: Vec<u64>,
    /// All other rounds.
    pub not_computed: Vec<NotComputed>,
    /// By round, the members that the plan named and that are not in the round, where plans name
    /// some members only.
    pub left_out: BTreeMap<u64, Vec<String>>,
}

/// Verifies the state in `folder`, by the agreement in the file `federation` or the copy that the node
/// keeps. Needs no key and changes nothing; the node may run. `data` is the folder of data sets, for
/// the tasks of benchmarks.
///
/// # Errors
/// [`VerifyError`]: [`Wrong`](VerifyError::Wrong) with the first thing that is wrong.
pub fn verify(
    folder: &Path,
    federation: Option<&Path>,
    data: Option<&Path>,
) -> Result<Verified, VerifyError> {
    let (journal, agreement) = opened(folder, federation)?;
    let state = StateFolder {
        folder,
        agreement: &agreement,
        me: journal.member,
        key: journal.key,
    };
    let found = state.verify(journal.records, data);
    found.map_err(|what| VerifyError::Wrong {
        folder: folder.to_owned(),
        what,
    })
}

/// The journal in a state folder, and the first agreement of its federation.
///
/// # Errors
/// [`VerifyError`]: one of them cannot be read, or they do not belong together.
pub(super) fn opened(
    folder: &Path,
    federation: Option<&Path>,
) -> Result<(Snapshot, Agreement), VerifyError> {
    if std::fs::symlink_metadata(folder.join("journal.redb")).is_err() {
        return Err(VerifyError::Nothing(folder.to_owned()));
    }
    let journal = store::snapshot(folder)?;
    let kept = folder.join(AGREEMENT);
    let agreement = Agreement::load_kept(federation.unwrap_or(&kept))?;
    let agreed = agreement.epoch.federation;
    if agreed != journal.federation {
        return Err(VerifyError::Federation {
            folder: folder.to_owned(),
            agreed,
            journal: journal.federation,
        });
    }
    Ok((journal, agreement))
}

/// Does something with each epoch of a chain: with its agreement and its blocks.
pub(super) fn each_epoch(
    first: &Agreement,
    chain: &VerifiedChain,
    mut each: impl FnMut(&Agreement, &[&(Hash, Block)]) -> Result<(), String>,
) -> Result<(), String> {
    let mut agreement = first.clone();
    for (nth, epoch) in chain.epochs.iter().enumerate() {
        let blocks = chain.blocks.iter();
        let of_it: Vec<_> = blocks
            .filter(|(_, block)| block.epoch == epoch.id)
            .collect();
        each(&agreement, &of_it)?;
        let ends =
            |block: &Block| matches!(block.content, Content::Change(_) | Content::Recovery(_));
        let end = of_it.iter().rev().find(|(_, block)| ends(block));
        if let (Some((_, end)), Some(next)) = (end, chain.epochs.get(nth + 1)) {
            let after = agreement.following(end, next.clone(), learn::stand_in);
            agreement = after.map_err(|why| why.to_string())?;
        }
    }
    Ok(())
}

/// A final secure-aggregation round of an epoch, with the hash of its block.
pub(super) fn final_masked(epoch: &Epoch, block: Hash, round: &MaskedRound) -> FinalMasked {
    FinalMasked {
        block,
        threshold: privacy::threshold(&epoch.roster, round.ready.len()),
        round: round.clone(),
    }
}

struct StateFolder<'a> {
    folder: &'a Path,
    agreement: &'a Agreement,
    /// The silo's place in the first agreement, or behind all members.
    me: MemberIndex,
    /// The key that the journal says is its owner's.
    key: PublicKey,
}

impl StateFolder<'_> {
    fn epoch(&self) -> &Epoch {
        &self.agreement.epoch
    }

    fn verify(&self, records: Vec<JournalRecord>, data: Option<&Path>) -> Result<Verified, String> {
        let epoch = self.epoch();
        let outcomes = certified_outcomes(&records);
        let mut chain = VerifiedChain::new(self.agreement.epoch.clone());
        let mut me = None::<MemberIndex>;
        let mut adoptions: Vec<Adopted> = Vec::new();
        let (mut signed, mut certificates) = (0, 0);
        for record in records {
            if let JournalRecord::Protocol(record) = &record
                && let Some(message) = record.signed()
            {
                let of = match me {
                    Some(of) => of,
                    None => self.position(&chain.epoch())?,
                };
                me = Some(of);
                Self::signed(&chain.epoch(), of, message)?;
                signed += 1;
            }
            match record {
                // This record starts the journal again.
                JournalRecord::Lost => {
                    chain.lose();
                    me = None;
                    adoptions.clear();
                }
                JournalRecord::Adopted(adopted) => adoptions.push(adopted),
                JournalRecord::Trained { .. }
                | JournalRecord::Prepared { .. }
                | JournalRecord::Begun => {}
                JournalRecord::Protocol(record) => match record {
                    protocol::Record::Final { blocks, proof } => {
                        let before = chain.epochs.len();
                        chain.add(blocks, &proof)?;
                        if chain.epochs.len() > before {
                            me = None;
                        }
                    }
                    protocol::Record::Certified(certificate) => {
                        let verified = certificate.verify(&chain.epoch(), &Strict);
                        verified.map_err(|why| why.to_string())?;
                        certificates += 1;
                    }
                    protocol::Record::Vote(_)
                    | protocol::Record::Proposed(_)
                    | protocol::Record::Contributed(_)
                    | protocol::Record::Standing(_)
                    | protocol::Record::Confirmed(_)
                    | protocol::Record::Block(_)
                    | protocol::Record::Applied { .. }
                    | protocol::Record::Circle(_)
                    | protocol::Record::Outdated(_) => {}
                },
            }
        }
        self.adoptions(&chain, &outcomes, &adoptions)?;
        let (blobs, missing_blobs) = self.blobs(&adoptions)?;
        let Computed {
            again,
            not,
            left_out,
        } = self.rounds(&chain, &outcomes, &adoptions, data)?;
        Ok(Verified {
            federation_name: epoch.protocol.name.clone(),
            federation: format!("{:#}", epoch.federation),
            silo: self.name(&chain),
            blocks: chain.blocks.len(),
            rounds: chain.rounds(),
            missing: chain.missing.clone(),
            certificates: certificates + chain.certificates,
            signed,
            blobs,
            missing_blobs,
            recoveries: recoveries(&chain),
            computed: again,
            not_computed: not,
            left_out,
        })
    }

    /// Computes the rounds of every epoch again.
    fn rounds(
        &self,
        chain: &VerifiedChain,
        outcomes: &BTreeMap<Hash, Hash>,
        adopted: &[Adopted],
        data: Option<&Path>,
    ) -> Result<Computed, String> {
        let mut all = Computed::default();
        each_epoch(self.agreement, chain, |agreement, blocks| {
            let rounds = blocks
                .iter()
                .filter_map(|(hash, block)| match &block.content {
                    Content::Learning(learning) => Some(CheckedRound::Clear(*hash, learning)),
                    Content::Masked(round) => Some(CheckedRound::Masked {
                        of: Box::new(final_masked(&agreement.epoch, *hash, round)),
                        outcome: outcomes.get(hash).copied(),
                    }),
                    Content::Change(_) | Content::Recovery(_) | Content::Empty => None,
                });
            let rounds: Vec<_> = rounds.collect();
            let config = rounds::config(agreement, self.me, self.folder, data);
            let computed = match config {
                Ok(config) => rounds::compute(&config, self.folder, &rounds, adopted)?,
                Err(why) => nothing(&rounds, &why),
            };
            all.add(computed);
            Ok(())
        })?;
        Ok(all)
    }

    /// The silo's position in an epoch.
    fn position(&self, epoch: &Epoch) -> Result<MemberIndex, String> {
        let found = epoch.roster.position(&self.key);
        found.ok_or_else(|| {
            format!(
                "the journal is that of the key {}, which no member has in an epoch in which it signed",
                self.key
            )
        })
    }

    /// The silo's name, as the newest agreement has it that names its key.
    fn name(&self, chain: &VerifiedChain) -> String {
        let named = chain.epochs.iter().rev().find_map(|epoch| {
            let member = epoch.roster.position(&self.key)?;
            Some(epoch.roster.name(member).to_owned())
        });
        named.unwrap_or_else(|| format!("the silo with the key {}", self.key))
    }

    /// Checks a message that the silo signed in an epoch.
    fn signed(epoch: &Epoch, me: MemberIndex, message: &Message) -> Result<(), String> {
        let frame = envelope::reseal(epoch, message);
        let kind = message.body.kind();
        let place = match message.view {
            0 => format!("round {}", message.round),
            view => format!("view {view}"),
        };
        let wrong = |why: FrameError| format!("{place}: the {kind:?} of this silo: {why}");
        if message.sender != me {
            return Err(format!("{place}: the {kind:?} is not of this silo"));
        }
        let opened = envelope::open(epoch, &Strict, &Known::default(), &frame);
        opened.map(|_| ()).map_err(wrong)
    }

    /// Checks that the silo adopted what the chain says.
    fn adoptions(
        &self,
        chain: &VerifiedChain,
        outcomes: &BTreeMap<Hash, Hash>,
        adoptions: &[Adopted],
    ) -> Result<(), String> {
        // The round of the last one, and the number of its epoch.
        let (mut last, mut before) = (0, 0);
        for adopted in adoptions {
            let round = adopted.round;
            let mut blocks = chain.blocks.iter();
            let block = blocks.find(|(hash, _)| hash.0 == adopted.block);
            let of = block.and_then(|(_, block)| block.round());
            let of = of.filter(|of| of.round == round);
            // A change of the agreement names the round before it.
            let named = chain.epochs.iter().find(|epoch| {
                let began = epoch.began;
                (began.round, began.block.0) == (round, adopted.block)
            });
            let certified = || outcomes.get(&Hash(adopted.block)).copied();
            let agreed = of.and_then(|of| of.outcome.or_else(certified));
            let agreed = agreed.or(named.map(|epoch| epoch.began.outcome));
            let agreed = agreed.ok_or_else(|| {
                format!("round {round}: the silo adopted it with a block that is not in the chain")
            })?;
            let outcome = Hash(adopted.outcome);
            if outcome != agreed {
                return Err(format!(
                    "round {round}: agreed outcome {agreed}, and the silo adopted {outcome}"
                ));
            }
            let found = block.filter(|_| of.is_some()).map(|(_, block)| block.epoch);
            let epoch = found.or(named.map(|epoch| epoch.id));
            let epoch = chain.epochs.iter().position(|of| Some(of.id) == epoch);
            let epoch = epoch.unwrap_or(before);
            // What was adopted before a recovery may be done again after it.
            if round <= last && !recovered(chain, before..epoch) {
                return Err(format!(
                    "round {round}: the silo adopted round {last} before it"
                ));
            }
            (last, before) = (round, epoch);
        }
        Ok(())
    }

    /// Checks the bytes of all blobs that are kept. Gives how many there are, and how many are not
    /// here.
    fn blobs(&self, adoptions: &[Adopted]) -> Result<(usize, usize), String> {
        let keep = self.epoch().protocol.keep_rounds as usize;
        let (mut good, mut missing) = (BTreeSet::new(), BTreeSet::new());
        for adopted in adoptions.iter().rev().take(keep).rev() {
            let personal = adopted.personal;
            for &hash in adopted.blobs.iter().chain([&personal]) {
                match store::found(self.folder, &Hash(hash)) {
                    StoredBlob::Good(_) => good.insert(hash),
                    // The initial personal state is no file, and earlier ones are not kept.
                    StoredBlob::Missing if hash == personal => false,
                    StoredBlob::Missing => missing.insert(hash),
                    StoredBlob::Damaged(found) => {
                        return Err(format!(
                            "round {}: {} is damaged: the file blobs/{:#} has the hash {found:#}",
                            adopted.round,
                            self.role(adopted, hash),
                            Hash(hash),
                        ));
                    }
                };
            }
        }
        Ok((good.len(), missing.len()))
    }

    /// Returns what a blob is in its round.
    fn role(&self, adopted: &Adopted, hash: [u8; 32]) -> String {
        if hash == adopted.outcome {
            return "the outcome".into();
        }
        if hash == adopted.personal {
            return "the personal state".into();
        }
        let document = store::blob(self.folder, &Hash(adopted.outcome));
        let document = document.and_then(|document| Document::read(&document).ok());
        let Some(document) = document else {
            return "a blob".into();
        };
        let at = |list: &[Hash]| list.iter().position(|other| other.0 == hash);
        if let Some(at) = at(&document.models) {
            return format!("the model of coalition {}", at + 1);
        }
        if let Some(at) = at(&document.entries) {
            let what = if document.masked.is_some() {
                "masked vector"
            } else {
                "contributed model"
            };
            return format!("the {what} of entry {}", at + 1);
        }
        let other = document.all_models().any(|other| other.0 == hash);
        if other {
            "a model that the strategy keeps"
        } else if document.masked.is_some() {
            "the list, the sheet, a transcript or the unmaskings"
        } else {
            "the sheet"
        }
        .into()
    }
}

/// No round can be computed again.
fn nothing(learnings: &[CheckedRound<'_>], why: &str) -> Computed {
    let mut computed = Computed::default();
    if let (Some(first), Some(last)) = (learnings.first(), learnings.last()) {
        computed.not.push(NotComputed {
            from: first.round(),
            to: last.round(),
            why: why.to_owned(),
        });
    }
    computed
}

/// Returns whether a recovery ended one of these epochs.
fn recovered(chain: &VerifiedChain, epochs: Range<usize>) -> bool {
    let ended: Vec<_> = epochs.map(|at| chain.epochs[at].id).collect();
    let mut blocks = chain.blocks.iter();
    blocks.any(|(_, block)| block.recovery().is_some() && ended.contains(&block.epoch))
}

/// The recoveries in a chain.
fn recoveries(chain: &VerifiedChain) -> BTreeMap<u64, Vec<String>> {
    let mut found = BTreeMap::new();
    for epoch in &chain.epochs {
        let of_it = chain
            .blocks
            .iter()
            .filter(|(_, block)| block.epoch == epoch.id);
        for recovery in of_it.filter_map(|(_, block)| block.recovery()) {
            let lost = recovery.lost.iter();
            let names = lost.map(|member| epoch.roster.name(*member).to_owned());
            found.insert(recovery.after.round, names.collect());
        }
    }
    found
}
