//! The settings with noise that all federations get whose scenario says nothing else. They depend on no row.

use agreement::NOISED;
use toml::{Table, Value};

/// The mode of federations with noise.
pub(super) const MODE: &str = "differential-privacy";
/// The model that the settings are for.
pub(super) const MODEL: &str = "logistic";

/// Settings of a release in rounds with noise.
pub(super) struct ReleaseSettings {
    /// Its name, as in `mechanism` of `[privacy]`.
    pub(super) name: &'static str,
    rounds: i64,
    /// Further keys of `[privacy]`.
    keys: &'static [(&'static str, f64)],
    /// The learning rate, where there are steps.
    rate: f64,
}

/// Every kind of release. The settings are for features in agreed ranges, moved and divided so that they lie
/// between −0.5 and 0.5. Of a grid they lose least in the worst case of two public tables; `just table-noised`
/// measures how much that is.
pub(super) const RELEASES: &[ReleaseSettings] = &[
    ReleaseSettings {
        name: "gradients",
        rounds: NOISED.rounds as i64,
        keys: &[("clipping-norm", NOISED.clip)],
        rate: NOISED.rate,
    },
    ReleaseSettings {
        name: "sufficient-statistics",
        rounds: 1,
        keys: &[("max-row-norm", 2.0)],
        rate: NOISED.rate,
    },
];

impl ReleaseSettings {
    /// The strategy.
    pub(super) fn strategy(&self) -> Table {
        let optimiser = table([("name", "sgd".into()), ("rate", self.rate.into())]);
        let training = table([
            ("epochs", 1.into()),
            ("batch", 0.into()),
            ("optimiser", optimiser.into()),
        ]);
        table([
            ("name", "fedavg".into()),
            ("weight", "equal".into()),
            ("training", training.into()),
        ])
    }

    /// Returns what it changes in the scenario, at this ε.
    pub(super) fn set(&self, epsilon: f64) -> Table {
        let mut privacy = table([
            ("mode", MODE.into()),
            ("mechanism", self.name.into()),
            ("epsilon", epsilon.into()),
        ]);
        privacy.extend(table_of(self.keys));
        table([("rounds", self.rounds.into()), ("privacy", privacy.into())])
    }
}

/// The label of a federation with noise: short, because tables have many columns.
pub(super) fn label(mechanism: &str, epsilon: f64) -> String {
    let short = match mechanism {
        "gradients" => "steps",
        "sufficient-statistics" => "once",
        other => other,
    };
    format!("{short}, epsilon {epsilon}")
}

fn table_of(keys: &[(&str, f64)]) -> Table {
    let keys = keys.iter();
    keys.map(|(key, value)| ((*key).to_owned(), (*value).into()))
        .collect()
}

fn table<const N: usize>(keys: [(&str, Value); N]) -> Table {
    let keys = keys.into_iter();
    keys.map(|(key, value)| (key.to_owned(), value)).collect()
}
