//! Statements of a node about itself to members that ask.

use std::fmt;
use std::sync::Arc;

use protocol::MemberIndex;

/// Largest document of an answer, in bytes.
pub const DOCUMENT: usize = 64 << 10;

type Say = dyn Fn(MemberIndex) -> Option<Vec<u8>> + Send + Sync;

/// Answer of a node to a member that asks: a document of at most [`DOCUMENT`] bytes, or nothing.
#[derive(Clone)]
pub struct Tells(Arc<Say>);

impl Tells {
    /// `say` makes the document for a member, or gives `None` to tell it nothing.
    pub fn new(say: impl Fn(MemberIndex) -> Option<Vec<u8>> + Send + Sync + 'static) -> Self {
        Self(Arc::new(say))
    }

    /// The document for this member, if it is told anything.
    pub(crate) fn to(&self, member: MemberIndex) -> Option<Vec<u8>> {
        self.0(member)
    }
}

impl Default for Tells {
    /// Tells nobody anything.
    fn default() -> Self {
        Self::new(|_| None)
    }
}

impl fmt::Debug for Tells {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tells")
    }
}
