//! Visibility of contributions to other members, as the table `[privacy]` of `federation.toml` sets it:
//! every model, only sums of groups of institutions, or only sums with noise.
//!
//! An agreement without the table is in clear, with the same id as before the table existed.

mod delta;
mod fit;
mod noise;
mod noised;
mod refusals;

use std::collections::{BTreeMap, BTreeSet};

use methods::strategy::{StrategyConfig, StrategyView};
use protocol::parameters::{Group, Masked, Privacy, Sums};
use protocol::roster::{faulty, quorum};
use task::TaskConfig;

use crate::config_error::ConfigError;
use crate::file::{EntryNames, FederationFile, Mode, PrivacyTable, UnitName};
use crate::source::TomlText;

pub use delta::DeltaDoubt;
pub use fit::{NOISED, NoisedSettings};
pub use noise::{bound, most_auc};
pub(crate) use noised::split::fault as split_fault;
pub use refusals::MaskedTask;

/// A file of groups.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupsFile {
    #[serde(default)]
    group: Vec<BTreeMap<String, u64>>,
}

/// Values besides its table from which the privacy of a federation follows.
pub struct PrivacyOf<'a> {
    /// Names of the members.
    pub members: Vec<&'a str>,
    /// True if entries carry the names of their authors.
    pub names_shown: bool,
    /// Learning rounds.
    pub rounds: u64,
    /// Fewest contributions of a round.
    pub min_contributions: u16,
}

/// Fewest authors of a sum where the file does not say it.
const SMALLEST_SUM: u16 = 3;

impl PrivacyTable {
    /// The table of an agreement; `None` for one in clear. It names the groups, also where they are those of
    /// a file without any: a newcomer must not become part of a group because the file said nothing.
    pub(crate) fn of(privacy: &Privacy) -> Option<Self> {
        let masked = privacy.masked()?;
        let (colluders, fewest) = (Some(masked.colluders), Some(masked.smallest_sum));
        Some(match &masked.sums {
            Sums::Groups(groups) => Self {
                colluders,
                smallest_sum: fewest,
                group: groups.iter().map(authors).collect(),
                shows: masked.shows.clone(),
                ..Self::in_mode(Mode::Masked)
            },
            Sums::Noised(noise) => Self {
                colluders,
                fewest_authors: fewest,
                ..Self::in_mode(Mode::MaskedNoised)
            }
            .with_noise(noise),
        })
    }

    /// A table that says nothing but the mode.
    fn in_mode(mode: Mode) -> Self {
        Self {
            mode,
            colluders: None,
            smallest_sum: None,
            group: Vec::new(),
            shows: Vec::new(),
            fewest_authors: None,
            release: None,
            unit: None,
            clip: None,
            rows_norm: None,
            targets_within: None,
            ridge: None,
            z: None,
            epsilon: None,
            delta: None,
        }
    }

    /// Returns what members see of each other's contributions.
    ///
    /// # Errors
    /// A key of the table that is missing or out of range, by its path, and why.
    pub fn privacy(&self, of: &PrivacyOf<'_>) -> Result<Privacy, (&'static str, String)> {
        Ok(match self.mode {
            Mode::Clear => Privacy::clear(of.names_shown),
            Mode::Masked => Privacy::Masked(self.masked(&of.members)),
            Mode::MaskedNoised => Privacy::Masked(Masked {
                colluders: self.colluders_of(of.members.len()),
                shows: Vec::new(),
                smallest_sum: self.fewest_authors.unwrap_or(of.min_contributions),
                sums: Sums::Noised(self.noise(of.rounds)?),
            }),
        })
    }

    /// The keys that do not go with this table, by their paths, and why.
    pub fn faults(&self, of: &MaskedTask<'_>) -> Vec<(&'static str, String)> {
        let mut faults = idle(self);
        let (noised, masked) = match (self.mode, self.noise(of.rounds)) {
            (Mode::Clear, _) => return faults,
            (Mode::Masked, _) => (self.statistics_faults(of.strategy), refusals::all(of)),
            (Mode::MaskedNoised, Ok(noise)) => (noised::all(of, &noise, self), refusals::all(of)),
            (Mode::MaskedNoised, Err(fault)) => (vec![fault], refusals::all(of)),
        };
        faults.extend(noised);
        // What noise says of a key goes further than what masks say of it.
        for (path, what) in masked {
            if !faults.iter().any(|(known, _)| *known == path) {
                faults.push((path, what));
            }
        }
        faults
    }

    /// Groups that do not go with a strategy that opens sums of statistics: every silo counts once, in one sum.
    fn statistics_faults(&self, strategy: &StrategyConfig) -> Vec<(&'static str, String)> {
        if strategy.method.sees() != StrategyView::Statistics {
            return Vec::new();
        }
        let name = strategy.name();
        let fault = match &self.group[..] {
            [] => None,
            [group] => {
                let first = group.values().next();
                let equal = group.values().all(|weight| Some(weight) == first);
                (!equal).then(|| {
                    format!("must give all members the same weight: {name} counts every silo once")
                })
            }
            groups => Some(format!(
                "must be one table: {name} opens one sum of all its silos, and there are {} groups",
                groups.len()
            )),
        };
        fault
            .map(|what| ("privacy.group", what))
            .into_iter()
            .collect()
    }

    /// Returns the reason for which the bound of differentially private rounds does not hold for how a scenario
    /// holds out rows, and what to write.
    pub fn split_fault(&self, task: &TaskConfig) -> Option<(&'static str, String)> {
        match task {
            TaskConfig::Table(task) if self.is_noised() => {
                let rows = !matches!(self.unit, Some(UnitName::Person(_)));
                noised::split::fault(task, task.is_by_unit(), rows)
            }
            _ => None,
        }
    }

    /// A table that asks for secure-aggregation rounds of these groups, each the names of its members with their
    /// weights; none: one group of all members.
    pub fn of_groups(group: Vec<BTreeMap<String, u64>>) -> Self {
        Self {
            group,
            ..Self::in_mode(Mode::Masked)
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

    /// Returns whether rounds are masked.
    pub fn is_masked(&self) -> bool {
        self.mode != Mode::Clear
    }

    /// Returns whether silos add noise to what they send.
    pub fn is_noised(&self) -> bool {
        self.mode == Mode::MaskedNoised
    }

    /// Returns whether all members are one group.
    pub fn is_one_group(&self) -> bool {
        self.group.is_empty()
    }

    fn colluders_of(&self, members: usize) -> u16 {
        self.colluders.unwrap_or(faulty(members).max(1) as u16)
    }

    /// The agreement on secure-aggregation rounds, with the defaults of what the table leaves out.
    fn masked(&self, silos: &[&str]) -> Masked {
        let everyone = || silos.iter().map(|silo| ((*silo).to_owned(), 1)).collect();
        let groups = if self.group.is_empty() {
            vec![everyone()]
        } else {
            self.group.clone()
        };
        Masked {
            colluders: self.colluders_of(silos.len()),
            shows: BTreeSet::from_iter(self.shows.clone())
                .into_iter()
                .collect(),
            smallest_sum: self.smallest_sum.unwrap_or(SMALLEST_SUM),
            sums: Sums::Groups(groups.into_iter().map(group).collect()),
        }
    }
}

/// A group as it is written.
pub(crate) fn authors(group: &Group) -> BTreeMap<String, u64> {
    group.authors.iter().cloned().collect()
}

/// A group that is written like this.
pub(crate) fn group(authors: BTreeMap<String, u64>) -> Group {
    Group {
        authors: authors.into_iter().collect(),
    }
}

/// Returns the privacy that a file agrees on, with rounds of `min_contributions` contributions or more.
///
/// # Errors
/// [`ConfigError::At`]: a key of the table that is missing or out of range.
pub(crate) fn privacy_of(
    source: TomlText<'_>,
    raw: &FederationFile,
    min_contributions: u16,
) -> Result<Privacy, ConfigError> {
    let names_shown = raw.protocol.names == EntryNames::Shown;
    let Some(table) = &raw.privacy else {
        return Ok(Privacy::clear(names_shown));
    };
    let of = PrivacyOf {
        members: raw.silo.iter().map(|silo| &silo.name[..]).collect(),
        names_shown,
        rounds: raw.rounds,
        min_contributions,
    };
    let privacy = table.privacy(&of);
    privacy.map_err(|(path, what)| ConfigError::At(source.key_of(path, what)))
}

/// Fewest contributions of a secure-aggregation round where the parameter set does not say it: a quorum, of which every
/// other quorum has enough members to open the sums. `None` in clear.
pub(crate) fn min_contributions(raw: &FederationFile) -> Option<u16> {
    let table = raw.privacy.as_ref()?;
    table.is_masked().then(|| quorum(raw.silo.len()) as u16)
}

/// Returns whether task, strategy and rules of a file go with what it says of privacy.
///
/// # Errors
/// [`ConfigError::At`]: the first key that does not, with why and what to choose.
pub(crate) fn check(source: TomlText<'_>, raw: &FederationFile) -> Result<(), ConfigError> {
    let Some(table) = &raw.privacy else {
        return Ok(());
    };
    let of = MaskedTask {
        names_shown: raw.protocol.names == EntryNames::Shown,
        max_model_norm: raw.protocol.max_model_norm.is_some(),
        max_weight: raw.protocol.max_weight.is_some(),
        continues: raw.continues.is_some(),
        rounds: raw.rounds,
        task: &raw.task,
        strategy: &raw.strategy,
    };
    source.keys_of(&table.faults(&of)).map_err(ConfigError::At)
}

/// The keys that say nothing in the mode of a table.
fn idle(table: &PrivacyTable) -> Vec<refusals::KeyFault> {
    let masked = "is for secure-aggregation rounds only: write `mode = \"secure-aggregation\"`, or remove the key";
    let groups = "is for secure-aggregation rounds without noise only: write `mode = \"secure-aggregation\"`, or remove the key. With \
                  noise one sum of all ready members is opened, of at least `min-authors`";
    let noise =
        "is for rounds with noise only: write `mode = \"differential-privacy\"`, or remove the key";
    let (clear, noised) = (table.mode == Mode::Clear, table.is_noised());
    let without_noise = if clear { masked } else { groups };
    let keys = [
        (
            "privacy.colluders",
            table.colluders.is_some(),
            clear,
            masked,
        ),
        (
            "privacy.min-sum-size",
            table.smallest_sum.is_some(),
            clear || noised,
            without_noise,
        ),
        (
            "privacy.group",
            !table.group.is_empty(),
            clear || noised,
            without_noise,
        ),
        (
            "privacy.shows",
            !table.shows.is_empty(),
            clear || noised,
            without_noise,
        ),
        (
            "privacy.min-authors",
            table.fewest_authors.is_some(),
            !noised,
            noise,
        ),
        ("privacy.mechanism", table.release.is_some(), !noised, noise),
        ("privacy.privacy-unit", table.unit.is_some(), !noised, noise),
        (
            "privacy.clipping-norm",
            table.clip.is_some(),
            !noised,
            noise,
        ),
        (
            "privacy.max-row-norm",
            table.rows_norm.is_some(),
            !noised,
            noise,
        ),
        (
            "privacy.max-target",
            table.targets_within.is_some(),
            !noised,
            noise,
        ),
        ("privacy.ridge", table.ridge.is_some(), !noised, noise),
        (
            "privacy.noise-multiplier",
            table.z.is_some(),
            !noised,
            noise,
        ),
        ("privacy.epsilon", table.epsilon.is_some(), !noised, noise),
        ("privacy.delta", table.delta.is_some(), !noised, noise),
    ];
    let keys = keys.into_iter();
    let keys = keys.filter(|(_, present, idle, _)| *present && *idle);
    keys.map(|(path, _, _, what)| (path, what.into())).collect()
}

#[cfg(test)]
pub(crate) mod tests;
