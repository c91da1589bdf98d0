//! What members see of each other's contributions, as the table `[privacy]` of `federation.toml` says:
//! every model, or only sums of groups of institutions.
//!
//! An agreement without the table is in clear, with the same id as before the table existed.

mod refusals;

use std::collections::BTreeMap;

use protocol::charter::{Group, Masked, Privacy};
use protocol::roster::{faulty, quorum};

use crate::config_error::ConfigError;
use crate::file::{EntryNames, FederationFile, Mode, PrivacyTable};
use crate::source::TomlText;

pub use refusals::MaskedTask;

/// A file of groups.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupsFile {
    #[serde(default)]
    group: Vec<BTreeMap<String, u64>>,
}

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

    /// What members see where the members have these names; `shown` says whether entries carry them.
    pub fn privacy<'a>(&self, names: impl Iterator<Item = &'a str>, shown: bool) -> Privacy {
        match self.mode {
            Mode::Masked => Privacy::Masked(self.masked(&names.collect::<Vec<_>>())),
            Mode::Clear => Privacy::clear(shown),
        }
    }

    /// The first key that does not go with this table, by its path, and why.
    pub fn fault(&self, of: &MaskedTask<'_>) -> Option<(&'static str, String)> {
        match self.mode {
            Mode::Masked => refusals::first(of),
            Mode::Clear => idle(self),
        }
    }

    /// A table that asks for masked rounds of these groups, each the names of its members with their
    /// weights; none: one group of all members.
    pub fn of_groups(group: Vec<BTreeMap<String, u64>>) -> Self {
        Self {
            mode: Mode::Masked,
            colluders: None,
            smallest_sum: None,
            group,
        }
    }

    /// Reads a file of groups: tables `[[group]]`, as `[[privacy.group]]` of an agreement.
    ///
    /// # Errors
    /// [`ConfigError::At`]: the first error in the text.
    pub fn groups(file: &str, text: &str) -> Result<Self, ConfigError> {
        let source = TomlText { file, text };
        let read: GroupsFile = toml::from_str(text).map_err(|error| source.toml(&error))?;
        if read.group.is_empty() {
            let what = "is missing: write a table `[[group]]` for each group, with the name of each member \
                        and its weight, such as `\"Clinic A\" = 1`";
            return Err(source.key_of("group", what).into());
        }
        Ok(Self::of_groups(read.group))
    }

    /// Whether rounds are masked.
    pub fn is_masked(&self) -> bool {
        self.mode == Mode::Masked
    }

    /// The agreement on masked rounds, with the defaults of what the table leaves out.
    fn masked(&self, silos: &[&str]) -> Masked {
        let everyone = || silos.iter().map(|silo| ((*silo).to_owned(), 1)).collect();
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
    let shown = raw.charter.names == EntryNames::Shown;
    match &raw.privacy {
        Some(table) => table.privacy(raw.silo.iter().map(|silo| &silo.name[..]), shown),
        None => Privacy::clear(shown),
    }
}

/// Fewest contributions of a masked round where the charter does not say it: a quorum, of which every
/// other quorum has enough members to open the sums. `None` in clear.
pub(crate) fn min_contributions(raw: &FederationFile) -> Option<u16> {
    let table = raw.privacy.as_ref()?;
    table.is_masked().then(|| quorum(raw.silo.len()) as u16)
}

/// Whether task, strategy and rules of a file go with what it says of privacy.
///
/// # Errors
/// [`ConfigError::At`]: the first key that does not, with why and what to choose.
pub(crate) fn check(source: TomlText<'_>, raw: &FederationFile) -> Result<(), ConfigError> {
    let Some(table) = &raw.privacy else {
        return Ok(());
    };
    let of = MaskedTask {
        names_shown: raw.charter.names == EntryNames::Shown,
        max_model_norm: raw.charter.max_model_norm.is_some(),
        max_weight: raw.charter.max_weight.is_some(),
        continues: raw.continues.is_some(),
        task: &raw.task,
        strategy: &raw.strategy,
    };
    match table.fault(&of) {
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
