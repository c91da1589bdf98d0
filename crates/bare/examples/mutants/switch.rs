//! Switches that break a rule on purpose, in this copy alone.
//!
//! One member breaks a rule by `Config::breaking`. All members and functions of a process break the one
//! that the environment variable `ROTA_MUTATION` names.

use std::sync::OnceLock;

/// A name that is one of a mutant.
pub(crate) fn known(name: &'static str) -> &'static str {
    assert!(NAMES.contains(&name), "there is no mutant {name:?}");
    name
}

/// Returns true if a rule is broken everywhere in this process.
pub(crate) fn broken(rule: &str) -> bool {
    static EVERYWHERE: OnceLock<Option<&'static str>> = OnceLock::new();
    let read = || {
        let name = std::env::var("ROTA_MUTATION").ok()?;
        let found = NAMES.iter().find(|one| **one == name).copied();
        assert!(found.is_some(), "ROTA_MUTATION: there is no mutant {name:?}");
        found
    };
    *EVERYWHERE.get_or_init(read) == Some(rule)
}
