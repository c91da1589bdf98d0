//! The noise of a federation's sums: what the keys of `[privacy]` say, and the parameter set's numbers for it.

use privacy::accountant::{Accountant, Bound, Delta, multiplier};
use privacy::least_squares::{RowNorms, RowNormsError};
use privacy::noise::{Authors, Multiplier};
use protocol::parameters::{Masked, Noise, ProtocolParameters, Real, Release, RoundMode, Unit};

use crate::file::{PrivacyTable, ReleaseName, UnitName};

use super::refusals::KeyFault;

/// C where the file does not say it.
const CLIP: f64 = 1.0;

/// Y where the file does not say it: the targets of two classes are −2 and 2.
pub(super) const CLASSES_WITHIN: f64 = 2.0;

/// δ where the file does not say it.
const DELTA: f64 = 1e-5;

impl PrivacyTable {
    /// The noise of so many rounds, with the defaults of what the table leaves out.
    ///
    /// # Errors
    /// A key that is missing or out of range.
    pub(super) fn noise(&self, rounds: u64) -> Result<Noise, KeyFault> {
        let delta = Delta::new(self.delta.unwrap_or(DELTA));
        let delta = delta.map_err(|error| ("privacy.delta", format!("is wrong: {error}")))?;
        let z = match (self.z, self.epsilon) {
            (Some(z), None) => {
                let z = Multiplier::new(z);
                z.map_err(|error| ("privacy.noise-multiplier", format!("is wrong: {error}")))?
            }
            (None, Some(epsilon)) => {
                let z = multiplier(epsilon, delta, rounds);
                z.map_err(|error| ("privacy.epsilon", format!("is wrong: {error}")))?
            }
            (None, None) => {
                let what = "is missing: write the bound that all rounds together keep to, such as \
                            `epsilon = 1.0`, or the noise of a round, such as `noise-multiplier = 24.0`";
                return Err(("privacy.epsilon", what.into()));
            }
            (Some(_), Some(_)) => {
                let what =
                    "says how much noise there is, and `epsilon` says it too: write one of them";
                return Err(("privacy.noise-multiplier", what.into()));
            }
        };
        let (release, clip) = match self.release {
            None | Some(ReleaseName::Steps) => self.steps()?,
            Some(ReleaseName::Once) => self.once()?,
        };
        Ok(Noise {
            release,
            unit: match &self.unit {
                None | Some(UnitName::Row) => Unit::Row,
                Some(UnitName::Person(column)) => Unit::Person(column.clone()),
            },
            clip: Real::new(clip),
            z: Real::new(z.value()),
            delta: Real::new(delta.value()),
        })
    }

    /// Gradients, and the norm to which they are clipped.
    fn steps(&self) -> Result<(Release, f64), KeyFault> {
        let keys = [
            ("privacy.max-row-norm", self.rows_norm),
            ("privacy.max-target", self.targets_within),
            ("privacy.ridge", self.ridge),
        ];
        if let Some((path, _)) = keys.into_iter().find(|(_, number)| number.is_some()) {
            let what = "is for models that are solved at once: write `mechanism = \"sufficient-statistics\"`, or remove the key. \
                        Gradients are clipped to `clipping-norm`";
            return Err((path, what.into()));
        }
        Ok((Release::Steps, self.clip.unwrap_or(CLIP)))
    }

    /// Sums of products, and the norm that those of a row cannot exceed.
    fn once(&self) -> Result<(Release, f64), KeyFault> {
        if self.clip.is_some() {
            let what = "is for gradients, and with `mechanism = \"sufficient-statistics\"` there are none: remove the key. Rows are \
                        shortened to `max-row-norm`, and targets are brought within `max-target`";
            return Err(("privacy.clipping-norm", what.into()));
        }
        let Some(rows) = self.rows_norm else {
            let what = "is missing: write the norm to which every row is shortened, with a 1 for the intercept, \
                        such as `max-row-norm = 2.0`. Choose it by what is known of the columns in general, not by \
                        own rows";
            return Err(("privacy.max-row-norm", what.into()));
        };
        let targets = self.targets_within.unwrap_or(CLASSES_WITHIN);
        let norms = RowNorms::new(rows, targets).map_err(|error| match error {
            RowNormsError::Rows(_) => ("privacy.max-row-norm", format!("is wrong: {error}")),
            RowNormsError::Targets(_) => ("privacy.max-target", format!("is wrong: {error}")),
        })?;
        let release = Release::Once {
            rows_norm: Real::new(rows),
            targets_within: Real::new(targets),
            ridge: self.ridge.map(Real::new),
        };
        Ok((release, norms.clip()))
    }

    /// This table with the keys of a noise.
    pub(super) fn with_noise(self, noise: &Noise) -> Self {
        let table = match noise.release {
            Release::Steps => Self {
                release: Some(ReleaseName::Steps),
                clip: Some(noise.clip.value()),
                ..self
            },
            Release::Once {
                rows_norm,
                targets_within,
                ridge,
            } => Self {
                release: Some(ReleaseName::Once),
                rows_norm: Some(rows_norm.value()),
                targets_within: Some(targets_within.value()),
                ridge: ridge.map(Real::value),
                ..self
            },
        };
        Self {
            unit: Some(match &noise.unit {
                Unit::Row => UnitName::Row,
                Unit::Person(column) => UnitName::Person(column.clone()),
            }),
            z: Some(noise.z.value()),
            delta: Some(noise.delta.value()),
            ..table
        }
    }
}

/// What the noise of all rounds of one parameter set bounds; `None` where a federation agrees on none. What was told under
/// another parameter set is not in it: an institution's pages count that, too.
pub fn bound(protocol: &ProtocolParameters) -> Option<Bound> {
    let (_, noise) = agreed(protocol)?;
    let delta = Delta::new(noise.delta.value()).ok()?;
    Some(spent(protocol)?.bound(delta))
}

/// The largest area under the curve that any test of membership of one unit can have after all agreed rounds;
/// `None` where a federation agrees on no noise.
pub fn most_auc(protocol: &ProtocolParameters) -> Option<f64> {
    Some(spent(protocol)?.most_auc())
}

/// The agreement on noise, where there is one.
fn agreed(protocol: &ProtocolParameters) -> Option<(&Masked, &Noise)> {
    match protocol.privacy.mode() {
        RoundMode::Noised(masked, noise) => Some((masked, noise)),
        RoundMode::Clear | RoundMode::Named | RoundMode::Masked(_) => None,
    }
}

/// Returns what all agreed rounds cost.
fn spent(protocol: &ProtocolParameters) -> Option<Accountant> {
    let (masked, noise) = agreed(protocol)?;
    // A parameter set with other numbers is refused.
    let z = Multiplier::new(noise.z.value()).ok()?;
    let authors = Authors::new(masked.smallest_sum, masked.colluders).ok()?;
    let mut accountant = Accountant::new();
    accountant.spend(z, authors, protocol.rounds);
    Some(accountant)
}
