//! The changes of the agreement that a bare run may have.

/// A change of the agreement, of a node's seat in it, or of the number of rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BareChange {
    /// One more round.
    Rounds,
    /// A new institution joins behind the others.
    Admit,
    /// A node leaves by itself.
    Leave(usize),
    /// The others exclude a faulty node.
    Evict(usize),
    /// A node gets another key.
    Rekey(usize),
}
