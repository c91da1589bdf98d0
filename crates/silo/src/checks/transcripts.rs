//! Transcripts of secure-aggregation rounds that hold, so that none is checked twice.

use std::collections::BTreeMap;
use std::sync::Mutex;

use bytes::Bytes;
use privacy::masks::{ReadyList, Root, Transcript, TranscriptError};
use protocol::{Hash, MemberIndex};

use super::cache::locked;

/// The transcripts of one list that hold, by author and hash. Those of another list take their place: few
/// lists are needed at a time, and a lead that makes many cannot fill the memory.
#[derive(Debug, Default)]
pub(crate) struct HeldTranscripts(Mutex<Option<OfList>>);

#[derive(Debug)]
struct OfList {
    root: Root,
    held: BTreeMap<(MemberIndex, Hash), Transcript>,
}

impl HeldTranscripts {
    /// Checks the transcript of a member, unless it is known to hold.
    ///
    /// # Errors
    /// It does not hold. It is checked again each time.
    pub(crate) fn check(
        &self,
        ready: &ReadyList,
        author: MemberIndex,
        hash: Hash,
        bytes: &Bytes,
    ) -> Result<Transcript, TranscriptError> {
        if let Some(held) = self.known(ready.root(), (author, hash)) {
            return Ok(held);
        }
        let held = Transcript::check(ready, author.0, bytes)?;
        self.insert(ready.root(), (author, hash), held.clone());
        Ok(held)
    }

    fn known(&self, root: Root, key: (MemberIndex, Hash)) -> Option<Transcript> {
        let of_list = locked(&self.0);
        let held = of_list.as_ref().filter(|of| of.root == root)?;
        held.held.get(&key).cloned()
    }

    fn insert(&self, root: Root, key: (MemberIndex, Hash), held: Transcript) {
        let mut of_list = locked(&self.0);
        match &mut *of_list {
            Some(of) if of.root == root => {
                of.held.insert(key, held);
            }
            other => {
                let held = BTreeMap::from([(key, held)]);
                *other = Some(OfList { root, held });
            }
        }
    }
}
