//! The noise of a federation's sums: what the keys of `[privacy]` say, and the charter's numbers for it.

use privacy::accountant::{Accountant, Bound, Delta, multiplier};
use privacy::noise::{Authors, Multiplier};
use protocol::charter::{Charter, Noise, Real, Release, Unit};

use crate::file::{PrivacyTable, ReleaseName, UnitName};

use super::refusals::KeyFault;

/// C where the file does not say it.
const CLIP: f64 = 1.0;

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
                z.map_err(|error| ("privacy.z", format!("is wrong: {error}")))?
            }
            (None, Some(epsilon)) => {
                let z = multiplier(epsilon, delta, rounds);
                z.map_err(|error| ("privacy.epsilon", format!("is wrong: {error}")))?
            }
            (None, None) => {
                let what = "is missing: write the bound that all rounds together keep to, such as \
                            `epsilon = 1.0`, or the noise of a round, such as `z = 24.0`";
                return Err(("privacy.epsilon", what.into()));
            }
            (Some(_), Some(_)) => {
                let what =
                    "says how much noise there is, and `epsilon` says it too: write one of them";
                return Err(("privacy.z", what.into()));
            }
        };
        let ReleaseName::Steps = self.release.unwrap_or(ReleaseName::Steps);
        Ok(Noise {
            release: Release::Steps,
            unit: match &self.unit {
                None | Some(UnitName::Row) => Unit::Row,
                Some(UnitName::Person(column)) => Unit::Person(column.clone()),
            },
            clip: Real::new(self.clip.unwrap_or(CLIP)),
            z: Real::new(z.value()),
            delta: Real::new(delta.value()),
        })
    }

    /// This table with the keys of a noise.
    pub(super) fn with_noise(self, noise: &Noise) -> Self {
        let Release::Steps = noise.release;
        Self {
            release: Some(ReleaseName::Steps),
            unit: Some(match &noise.unit {
                Unit::Row => UnitName::Row,
                Unit::Person(column) => UnitName::Person(column.clone()),
            }),
            clip: Some(noise.clip.value()),
            z: Some(noise.z.value()),
            delta: Some(noise.delta.value()),
            ..self
        }
    }
}

/// What the noise of all agreed rounds bounds; `None` where a federation agrees on none.
pub fn bound(charter: &Charter) -> Option<Bound> {
    let noise = charter.privacy.masked()?.noise()?;
    let delta = Delta::new(noise.delta.value()).ok()?;
    Some(spent(charter)?.bound(delta))
}

/// The largest area under the curve that any test of membership of one unit can have after all agreed rounds;
/// `None` where a federation agrees on no noise.
pub fn most_auc(charter: &Charter) -> Option<f64> {
    Some(spent(charter)?.most_auc())
}

/// What all agreed rounds cost.
fn spent(charter: &Charter) -> Option<Accountant> {
    let masked = charter.privacy.masked()?;
    let noise = masked.noise()?;
    // A charter with other numbers is refused.
    let z = Multiplier::new(noise.z.value()).ok()?;
    let authors = Authors::new(masked.smallest_sum, masked.colluders).ok()?;
    let mut accountant = Accountant::new();
    accountant.spend(z, authors, charter.rounds);
    Some(accountant)
}
