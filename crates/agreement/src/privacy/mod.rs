//! What members see of each other's contributions, as the table `[privacy]` of `federation.toml` says:
//! every model, or only sums of groups of institutions.
//!
//! An agreement without the table is in clear, with the same id as before the table existed.

mod refusals;

use std::collections::BTreeMap;

use protocol::charter::{Group, Masked, Privacy};
use protocol::roster::{faulty, quorum};

use crate::config_error::ConfigError;
use crate::file::{EntryNames, FederationFile, Mode, PrivacyTable, SiloTable};
use crate::source::TomlText;

/// Fewest authors of a sum where the file does not say it.
const SMALLEST_SUM: u16 = 3;

impl PrivacyTable {
    /// The table of an agreement; `None` for one in clear. It names the groups, also where they are those of
    /// a file without any: a newcomer must not become part of a group because the file said nothing.
    pub(crate) fn of(privacy: &Privacy) -> Option<Self> {
        let masked = privacy.masked()?;
        let groups = masked.groups.iter();
        Some(Self {
            mode: Mode::Masked,
            colluders: Some(masked.colluders),
            smallest_sum: Some(masked.smallest_sum),
            group: groups
                .map(|group| group.authors.iter().cloned().collect())
                .collect(),
        })
    }

    /// The agreement on masked rounds, with the defaults of what the table leaves out.
    fn masked(&self, silos: &[SiloTable]) -> Masked {
        let everyone = || silos.iter().map(|silo| (silo.name.clone(), 1)).collect();
        let groups = if self.group.is_empty() {
            vec![everyone()]
        } else {
            self.group.clone()
        };
        let group = |authors: BTreeMap<String, u64>| Group {
            authors: authors.into_iter().collect(),
        };
        let colluders = || faulty(silos.len()).max(1) as u16;
        Masked {
            colluders: self.colluders.unwrap_or_else(colluders),
            smallest_sum: self.smallest_sum.unwrap_or(SMALLEST_SUM),
            groups: groups.into_iter().map(group).collect(),
        }
    }
}

/// What the charter of a file says of privacy.
pub(crate) fn privacy_of(raw: &FederationFile) -> Privacy {
    match &raw.privacy {
        Some(table) if table.mode == Mode::Masked => Privacy::Masked(table.masked(&raw.silo)),
        _ => Privacy::clear(raw.charter.names == EntryNames::Shown),
    }
}

/// Fewest contributions of a masked round where the charter does not say it: a quorum, of which every
/// other quorum has enough members to open the sums. `None` in clear.
pub(crate) fn min_contributions(raw: &FederationFile) -> Option<u16> {
    let table = raw.privacy.as_ref()?;
    (table.mode == Mode::Masked).then(|| quorum(raw.silo.len()) as u16)
}

/// Whether task, strategy and rules of a file go with what it says of privacy.
///
/// # Errors
/// [`ConfigError::At`]: the first key that does not, with why and what to choose.
pub(crate) fn check(source: TomlText<'_>, raw: &FederationFile) -> Result<(), ConfigError> {
    let Some(table) = &raw.privacy else {
        return Ok(());
    };
    let fault = match table.mode {
        Mode::Masked => refusals::first(raw),
        Mode::Clear => idle(table),
    };
    match fault {
        Some((path, what)) => Err(ConfigError::At(source.key_of(path, what))),
        None => Ok(()),
    }
}

/// The first key that says nothing where rounds are in clear.
fn idle(table: &PrivacyTable) -> Option<refusals::KeyFault> {
    let keys = [
        ("privacy.colluders", table.colluders.is_some()),
        ("privacy.smallest-sum", table.smallest_sum.is_some()),
        ("privacy.group", !table.group.is_empty()),
    ];
    let (path, _) = keys.into_iter().find(|(_, present)| *present)?;
    let what = "is for masked rounds only: write `mode = \"masked\"`, or remove the key";
    Some((path, what.into()))
}

#[cfg(test)]
mod tests;
