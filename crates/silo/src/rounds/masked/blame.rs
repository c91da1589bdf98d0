//! A final round with a sum that tells nothing, and what its authors' secrets show of them.

use bytes::Bytes;
use methods::strategy::{asked_in_vain, statistics_in_vain};
use privacy::masks::{
    CHECKS, ExamineError, Fixed, MaskDeviation, MaskError, MemberKeys, ReadyList, Secret,
    SentParts, Shape, examine,
};
use protocol::message::{MaskedEntry, MaskedManifest};
use protocol::privacy::Sum;
use protocol::work::{FinalMasked, MaskedList};
use protocol::{Epoch, Hash, MemberIndex};

use super::{authors, read_list, ready_of};
use crate::outcome::{Document, VoidSum};
use crate::rounds::sums::{may_disclose, reach};

/// Reason for which nobody can be blamed for a round.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotVoid {
    /// All sums told something, so the secrets of their authors are gone and stay secret.
    #[error(
        "its sum was opened and adopted: nobody has to disclose anything, and its secrets are gone"
    )]
    Adopted,
    /// A round in clear.
    #[error("it was a round in clear, in which no masks could be wrong")]
    Clear,
    /// Silos add noise.
    #[error(
        "silos of this federation add noise, and a disclosure would publish a vector with the noise of one \
         silo alone, for which no ledger has a line: this version refuses it"
    )]
    Noised,
    /// A round in which a question was asked.
    #[error(
        "a question was asked in it, and a disclosure would show the numbers of one institution, which agreed to show \
         sums alone: ask the question again, or leave out the institution that is suspected"
    )]
    Question,
    /// Statistics were added up in it.
    #[error(
        "statistics were added up in it, and a disclosure would show those of one institution, which agreed to show \
         sums alone: repeat the round, or leave out the institution that is suspected"
    )]
    Statistics,
    /// Its outcome is that of another round.
    #[error("the outcome that is kept for it does not fit its list")]
    Other,
    /// A blob is missing.
    #[error("its {0} is not kept here any more: ask a member that keeps more rounds")]
    Missing(&'static str),
    /// A list or manifest that cannot be used.
    #[error("{0}")]
    Damaged(String),
}

/// A final secure-aggregation round of which at least one sum told nothing.
pub struct VoidRound<'a> {
    epoch: &'a Epoch,
    round: u64,
    list: MaskedList,
    manifest: MaskedManifest,
    ready: ReadyList,
    void: Vec<(Sum, VoidSum)>,
}

impl<'a> VoidRound<'a> {
    /// Reads a final round of this epoch, whose certified outcome is in `document`; `blob` returns list and
    /// manifest by hash.
    ///
    /// # Errors
    /// [`NotVoid`]: nobody can be blamed for the round.
    pub fn read(
        epoch: &'a Epoch,
        of: &FinalMasked,
        document: &Document,
        blob: impl Fn(&Hash) -> Option<Bytes>,
    ) -> Result<Self, NotVoid> {
        let note = document.masked.as_ref().ok_or(NotVoid::Clear)?;
        if note.sums.iter().all(|sum| sum.void.is_none()) {
            return Err(NotVoid::Adopted);
        }
        if !may_disclose(&epoch.protocol.privacy) {
            return Err(NotVoid::Noised);
        }
        if asked_in_vain(&document.memory, document.round) {
            return Err(NotVoid::Question);
        }
        if statistics_in_vain(&document.memory) {
            return Err(NotVoid::Statistics);
        }
        let list = blob(&of.round.list).ok_or(NotVoid::Missing("list"))?;
        let list = read_list(&list, of.threshold).ok_or(NotVoid::Other)?;
        let manifest = blob(&of.round.manifest).ok_or(NotVoid::Missing("manifest"))?;
        let manifest = MaskedManifest::read(&manifest).ok_or(NotVoid::Other)?;
        let named = (list.root, list.round, manifest.root());
        if named != (of.round.list, document.round, of.round.manifest)
            || list.sums.len() != note.sums.len()
        {
            return Err(NotVoid::Other);
        }
        let sums = list.sums.iter().zip(&note.sums);
        let void = sums.filter_map(|(sum, note)| Some((sum.clone(), note.void?)));
        Ok(Self {
            epoch,
            round: list.round,
            void: void.collect(),
            ready: ready_of(&epoch.roster, &list).map_err(NotVoid::Damaged)?,
            list,
            manifest,
        })
    }

    /// The sums that told nothing, and why.
    pub fn sums(&self) -> &[(Sum, VoidSum)] {
        &self.void
    }

    /// The sum that told nothing and has this author.
    fn sum(&self, author: MemberIndex) -> Result<&Sum, String> {
        let found = self.void.iter().find(|(sum, _)| sum.has(author));
        let name = self.epoch.roster.name(author);
        found
            .map(|(sum, _)| sum)
            .ok_or_else(|| format!("{name} is no author of a void sum of this round"))
    }

    /// Returns whether this is the secret behind an author's keys in the list.
    ///
    /// # Errors
    /// It is not, or the member is no author of a sum that told nothing; a sentence.
    pub fn keys(&self, author: MemberIndex, secret: &Secret) -> Result<MemberKeys, String> {
        self.sum(author)?;
        let epoch = &self.epoch.id.0;
        let keys = MemberKeys::derive(secret.clone(), epoch, self.round, author.0);
        let keys = keys.map_err(|error| error.to_string())?;
        let listed = self.list.keys.ready.iter();
        let mut listed = listed.filter(|ready| ready.member == author);
        match listed.next() {
            Some(ready) if ready.keys.public == super::public(keys.public()) => Ok(keys),
            _ => Err(self.foreign(author)),
        }
    }

    fn foreign(&self, author: MemberIndex) -> String {
        format!(
            "this is not the secret of {} in round {}: the keys that it signed do not follow from it",
            self.epoch.roster.name(author),
            self.round
        )
    }

    /// Compares what an author sent with what follows from its secret; `blob` returns its vector and its
    /// transcript by hash. `None`: all that it sent is right.
    ///
    /// # Errors
    /// Reason for which the author cannot be examined, as a sentence.
    pub fn examine(
        &self,
        author: MemberIndex,
        secret: &Secret,
        blob: impl Fn(&Hash) -> Option<Bytes>,
    ) -> Result<Option<MaskDeviation>, String> {
        let keys = self.keys(author, secret)?;
        let sum = self.sum(author)?;
        let mut entries = self.manifest.entries.iter();
        let entry = entries.find(|entry| entry.member == author);
        let name = self.epoch.roster.name(author);
        let entry = entry.ok_or_else(|| format!("{name} is not on the manifest of the round"))?;
        let part = |hash: &Hash, what: &str| {
            blob(hash).ok_or_else(|| {
                format!("the {what} of {name} is not kept here any more: ask another member")
            })
        };
        let vector = part(&entry.vector.hash, "vector")?;
        let transcript = part(&entry.transcript.hash, "transcript")?;
        let authors = authors(&self.ready, sum)?;
        let mut weights = sum.authors.iter().filter(|(by, _)| *by == author);
        let sent = SentParts {
            weight: weights.next().map_or(0, |(_, weight)| *weight),
            transcript: &transcript,
            vector: &vector,
        };
        let shape = (self.shape(sum)?, Fixed::MODEL);
        examine(&self.ready, &authors, shape, &keys, sent).map_err(|error| match error {
            ExamineError::Mask(MaskError::Keys(_)) => self.foreign(author),
            other => other.to_string(),
        })
    }

    /// The shape of a sum's vectors. All voters have checked their sizes, so they are in the manifest.
    fn shape(&self, sum: &Sum) -> Result<Shape, String> {
        let reach = reach(sum)?;
        let entries = self.manifest.entries.iter();
        let of_sum = entries.filter(|entry| sum.has(entry.member));
        let mut sizes: Vec<_> = of_sum
            .map(|entry: &MaskedEntry| entry.vector.size)
            .collect();
        sizes.sort_unstable();
        let size = sizes.get(sizes.len() / 2).copied().unwrap_or_default();
        let words = (size / reach.width().bytes()) as usize;
        let coordinates = words.saturating_sub(CHECKS);
        Shape::new(coordinates, reach).map_err(|error| error.to_string())
    }
}
