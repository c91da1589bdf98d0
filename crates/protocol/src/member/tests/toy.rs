//! Toy mathematics of masked rounds for the table: hashes stand for vectors, shares and outcomes. Who may
//! learn what is checked by the simulations; here it is what members ask for, and when.

use super::prelude::*;
use super::table::TestFederation;
use crate::effects::{FinalMasked, WorkError};
use crate::message::{Blob, MaskedManifest, MaskedVector, PublicKeys};

/// What members keep of masked rounds.
#[derive(Default)]
pub(super) struct Toys {
    /// The manifests that were ever checked; who has one keeps it on its shelf.
    manifests: BTreeMap<Hash, Arc<MaskedManifest>>,
    /// Members whose machine computes another outcome.
    pub(super) strange: BTreeSet<usize>,
    /// Members that give false shares away.
    pub(super) false_shares: BTreeSet<usize>,
    /// Members whose transcripts are wrong.
    pub(super) wrong: BTreeSet<usize>,
    /// Members that lost vector and secret.
    pub(super) lost: BTreeSet<usize>,
}

/// The keys of a member for a round.
pub(super) fn public(i: usize, round: u64) -> PublicKeys {
    let key = |label| Hash::labelled(label, &[&[i as u8], &round.to_le_bytes()]).0;
    PublicKeys {
        exchange: key("exchange"),
        share: key("share"),
    }
}

/// The vector of a member, masked for a list.
pub(super) fn vector(i: usize, list: Hash) -> MaskedVector {
    let blob = |label| Blob {
        hash: Hash::labelled(label, &[&[i as u8], &list.0]),
        size: 32,
    };
    MaskedVector {
        list,
        vector: blob("vector"),
        transcript: blob("transcript"),
    }
}

/// The shares of a member for a final round.
pub(super) fn opening(i: usize, block: Hash) -> Vec<u8> {
    Hash::labelled("opening", &[&[i as u8], &block.0])
        .0
        .to_vec()
}

/// The outcome of a final round.
pub(super) fn outcome(of: &FinalMasked) -> Hash {
    Hash::labelled("masked outcome", &[&of.round.state.0, &of.round.manifest.0])
}

impl TestFederation {
    /// Does a piece of work of a masked round.
    pub(super) fn toy(&mut self, i: usize, request: Request) -> Answer {
        match request {
            Request::Prepare { round } => Answer::Prepared {
                round,
                result: Ok(public(i, round)),
            },
            Request::CheckKeys { round, from, .. } => Answer::KeysChecked {
                round,
                from,
                result: Ok(()),
            },
            Request::Mask { list } => {
                let masked = vector(i, list.root);
                self.shelves[i].extend([masked.vector.hash, masked.transcript.hash]);
                let lost = WorkError::Refused("the secret is lost".into());
                let result = if self.toys.lost.contains(&i) {
                    Err(lost)
                } else {
                    Ok(masked)
                };
                Answer::Masked {
                    list: list.root,
                    result,
                }
            }
            Request::Verify {
                list,
                manifest,
                holders,
            } => {
                let result = self.verify(i, &manifest, &holders);
                if result.is_ok() {
                    self.shelves[i].extend([list.root, manifest.root()]);
                    self.toys
                        .manifests
                        .insert(manifest.root(), manifest.clone());
                }
                Answer::Verified {
                    manifest: manifest.root(),
                    result,
                }
            }
            Request::Unmask { of, holders } => {
                let here = self.fetch(i, of.round.list, &holders);
                let shown = self.toys.false_shares.contains(&i);
                let block = if shown { Hash([0; 32]) } else { of.block };
                let opening = here
                    .then(|| opening(i, block))
                    .ok_or(WorkError::Unavailable);
                Answer::Unmasked {
                    block: of.block,
                    result: opening,
                }
            }
            Request::Combine {
                of,
                unmaskings,
                holders,
            } => self.combine(i, &of, unmaskings, &holders),
            other => panic!("{other:?} is no work of a secure-aggregation round"),
        }
    }

    fn verify(
        &mut self,
        i: usize,
        manifest: &MaskedManifest,
        holders: &[MemberIndex],
    ) -> Result<(), WorkError> {
        for entry in &manifest.entries {
            for blob in [entry.vector, entry.transcript] {
                if !self.fetch(i, blob.hash, holders) {
                    return Err(WorkError::Unavailable);
                }
            }
            if self.toys.wrong.contains(&entry.member.at()) {
                return Err(WorkError::Refused("a transcript is wrong".into()));
            }
        }
        Ok(())
    }

    fn combine(
        &mut self,
        i: usize,
        of: &FinalMasked,
        unmaskings: Vec<(MemberIndex, Vec<u8>)>,
        holders: &[MemberIndex],
    ) -> Answer {
        let right = |(by, shares): &(MemberIndex, Vec<u8>)| *shares == opening(by.at(), of.block);
        let (proven, unproven): (Vec<_>, Vec<_>) = unmaskings.into_iter().partition(right);
        let manifest = self.toys.manifests.get(&of.round.manifest).cloned();
        let here = self.fetch(i, of.round.manifest, holders)
            && manifest.is_some_and(|manifest| self.verify(i, &manifest, holders).is_ok());
        let mut computed = outcome(of);
        if self.toys.strange.contains(&i) {
            computed = Hash::labelled("strange", &[&computed.0]);
        }
        let enough = proven.len() >= of.threshold;
        if here && enough {
            self.shelves[i].insert(computed);
        }
        Answer::Combined {
            block: of.block,
            unproven: unproven.into_iter().map(|(by, _)| by).collect(),
            result: (here && enough)
                .then_some(computed)
                .ok_or(WorkError::Unavailable),
        }
    }
}
