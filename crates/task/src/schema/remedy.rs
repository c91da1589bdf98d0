//! What helps where a cell is none of what is agreed.

/// The remedy for other words than the agreed ones.
pub(super) const TRANSLATE: &str = "; other words for them go into `codes`";
