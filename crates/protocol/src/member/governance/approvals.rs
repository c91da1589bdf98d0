//! Approvals of amendments by members: the last word of each about each counts.

use std::collections::BTreeMap;

use crate::change::TEXT;
use crate::hash::Hash;
use crate::identity::Signature;
use crate::member::ByMember;
use crate::message::Approval;
use crate::roster::MemberIndex;

/// Most amendments of one member that are kept in an epoch, and most approvals.
pub const KEPT: usize = 4;

/// Most bytes of the amendments of one member that are kept in an epoch: fewer than four of the longest texts have,
/// with their members and rules.
pub(in crate::member) const KEPT_BYTES: usize = 4 * TEXT;

/// A member's signed word about an amendment.
#[derive(Debug, Clone, Copy)]
pub(in crate::member) struct ApprovalWord {
    /// Counts up with every word about the amendment.
    pub(in crate::member) number: u64,
    /// `true` if the member approves it.
    pub(in crate::member) stands: bool,
    pub(in crate::member) signature: Signature,
}

/// Most withdrawals of one member that are kept.
const WITHDRAWN: usize = 16;

/// The last words of members about amendments: of each member the [`KEPT`] newest approvals, and the
/// [`WITHDRAWN`] newest withdrawals.
#[derive(Default)]
pub(in crate::member) struct Approvals(ByMember<ApprovalWords>);

#[derive(Default)]
struct ApprovalWords {
    last: BTreeMap<Hash, ApprovalWord>,
    /// The highest number of a word that was dropped to make room. An older one about an unknown
    /// amendment may have been withdrawn.
    dropped: Option<u64>,
}

impl Approvals {
    /// The last word of a member about an amendment.
    pub(in crate::member) fn last(
        &self,
        by: MemberIndex,
        amendment: &Hash,
    ) -> Option<ApprovalWord> {
        self.0.get(&by)?.last.get(amendment).copied()
    }

    /// All words of a member.
    pub(in crate::member) fn words_of(
        &self,
        by: MemberIndex,
    ) -> impl Iterator<Item = (Hash, ApprovalWord)> {
        let words = self.0.get(&by).into_iter().flat_map(|words| &words.last);
        words.map(|(hash, word)| (*hash, *word))
    }

    /// Returns true if a member can approve one more, so that nothing which it approves is forgotten.
    pub(in crate::member) fn has_room(&self, by: MemberIndex) -> bool {
        self.words_of(by).filter(|(_, word)| word.stands).count() < KEPT
    }

    /// The approvals of an amendment that stand, ascending.
    pub(in crate::member) fn standing(&self, amendment: &Hash) -> Vec<Approval> {
        let all = self.0.iter();
        let words = all.filter_map(|(by, words)| Some((*by, words.last.get(amendment)?)));
        let words = words.filter(|(_, word)| word.stands);
        words
            .map(|(by, word)| Approval {
                by,
                number: word.number,
                signature: word.signature,
            })
            .collect()
    }

    /// Keeps a word; false if it is no news: a later one is known, or may have been dropped.
    pub(in crate::member) fn add(
        &mut self,
        by: MemberIndex,
        amendment: Hash,
        word: ApprovalWord,
    ) -> bool {
        let words = self.0.entry(by).or_default();
        let old = match words.last.get(&amendment) {
            Some(last) => last.number >= word.number,
            None => words.dropped.is_some_and(|dropped| dropped >= word.number),
        };
        if old {
            return false;
        }
        words.last.insert(amendment, word);
        let (limit, alike) = if word.stands {
            (KEPT, true)
        } else {
            (WITHDRAWN, false)
        };
        let alike = words.last.iter().filter(|(_, word)| word.stands == alike);
        let alike: Vec<_> = alike.map(|(hash, word)| (word.number, *hash)).collect();
        if alike.len() > limit
            && let Some((number, least)) = alike.into_iter().min()
        {
            words.last.remove(&least);
            words.dropped = words.dropped.max(Some(number));
        }
        true
    }
}
