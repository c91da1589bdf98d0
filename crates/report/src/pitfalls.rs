//! The page of the book on what makes a comparison say more than it knows: warnings name it.

/// Its path in the repository. Reports are read elsewhere, so that it is no link.
pub(crate) const PITFALLS: &str = "docs/not-to-fool-yourself.md";
/// The sentence that ends a warning.
pub(crate) const SEE: &str = "See docs/not-to-fool-yourself.md.";
