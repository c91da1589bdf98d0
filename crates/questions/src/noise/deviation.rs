//! Standard deviation of the noise of a sum, and what it lets be told.

use privacy::noise::{Authors, Multiplier};
use privacy::sensitivity::Sensitivity;
use serde::{Deserialize, Serialize};

use crate::algebra::Symmetric;
use crate::{QuestionError, QuestionStopped};

/// Least eigenvalue of an information in standard deviations of its noise, times the root of its rows: the noise of a
/// symmetric matrix has eigenvalues up to 2·√rows, so that less than half of the information may be noise.
const DETERMINED: f64 = 4.0;

/// The noise that every site adds to its numbers, as agreed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SumNoise {
    /// Standard deviation of the noise of a sum, for each unit of what one row changes.
    pub multiplier: f64,
    /// The fewest authors of a sum.
    pub min_authors: u16,
    /// Members who may collude, whose noise the others do not count on.
    pub colluders: u16,
}

impl SumNoise {
    /// L and Δ of sums of so many numbers.
    ///
    /// # Errors
    /// If there are none, or too many.
    pub fn sensitivity(numbers: usize) -> Result<Sensitivity, QuestionError> {
        let sensitivity = Sensitivity::fine(numbers as u64);
        sensitivity.map_err(|error| QuestionError::Other(error.to_string()))
    }

    /// Standard deviation of the noise in each of the `numbers` of a sum of so many sites, which one row changes by `norm`
    /// at most.
    ///
    /// # Errors
    /// If no such noise can be drawn.
    pub fn deviation(self, norm: f64, numbers: usize, sites: f64) -> Result<f64, QuestionError> {
        let wrong = |error: &dyn std::fmt::Display| QuestionError::Other(error.to_string());
        let sensitivity = Self::sensitivity(numbers)?;
        let multiplier = Multiplier::new(self.multiplier).map_err(|error| wrong(&error))?;
        let authors = Authors::new(self.min_authors, self.colluders);
        let authors = authors.map_err(|error| wrong(&error))?;
        let gaussian = authors.gaussian(multiplier, sensitivity);
        let sigma = gaussian.map_err(|error| wrong(&error))?.sigma() as f64;
        Ok(sigma * sites.max(0.0).sqrt() / sensitivity.whole_steps(norm))
    }
}

/// Checks that an information whose entries have noise of this standard deviation determines its coefficients.
///
/// # Errors
/// It does not; the sentence says which coefficients, and about how many rows would do.
pub(crate) fn determined(
    information: &Symmetric,
    deviation: f64,
    (rows, names): (f64, &[String]),
) -> Result<(), QuestionStopped> {
    let eigen = information.eigen();
    let (least, vector) = match eigen.pairs.first() {
        Some((least, vector)) => (*least, vector),
        None => return Ok(()),
    };
    let unit = deviation * (names.len() as f64).sqrt();
    let needed = DETERMINED * unit;
    if least > needed {
        return Ok(());
    }
    let largest = vector
        .iter()
        .fold(0.0_f64, |most, entry| most.max(entry.abs()));
    let loud = vector.iter().zip(names);
    let loud = loud.filter(|(entry, _)| entry.abs() > 0.5 * largest);
    let loud: Vec<String> = loud.map(|(_, name)| format!("\"{name}\"")).collect();
    let remedy = "narrower agreed ranges, fewer terms, or a smaller `noise-multiplier`";
    Err(QuestionStopped::Other(format!(
        "not determined under this noise: its standard deviation of {deviation:.1} hides what the rows tell of {}. {}",
        loud.join(", "),
        more_rows(rows, (needed, least.max(unit)), remedy)
    )))
}

/// Says that so many rows would do where a sum of `rows` rows is `found` and should be more than `needed`, or what else
/// would.
pub(crate) fn more_rows(rows: f64, (needed, found): (f64, f64), remedy: &str) -> String {
    let factor = needed / found;
    let rows = rows.max(1.0) * factor;
    if !rows.is_finite() {
        return format!("Ask more sites, with {remedy}");
    }
    // Two digits: the sum itself has noise.
    let mut unit = 1.0;
    while rows / unit >= 100.0 {
        unit *= 10.0;
    }
    let rows = (rows / unit).ceil() * unit;
    format!("About {rows} rows or more would do, or {remedy}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn noise_grows_with_the_norm_and_the_root_of_sites() {
        let noise = SumNoise {
            multiplier: 20.0,
            min_authors: 3,
            colluders: 1,
        };
        let of = |norm: f64, sites: f64| noise.deviation(norm, 7, sites).unwrap();
        // 20 shared by two of three authors, in the sum of four.
        let one = 20.0 * (4.0_f64 / 2.0).sqrt();
        assert!((of(1.0, 4.0) / one - 1.0).abs() < 1e-4, "{}", of(1.0, 4.0));
        assert!((of(3.0, 16.0) / (6.0 * one) - 1.0).abs() < 1e-4);
        for wrong in [
            SumNoise {
                multiplier: 0.0,
                ..noise
            },
            SumNoise {
                colluders: 3,
                ..noise
            },
            SumNoise {
                multiplier: 1e6,
                ..noise
            },
        ] {
            assert!(wrong.deviation(1.0, 7, 4.0).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn what_noise_hides_is_named_with_the_rows_that_would_do() {
        let information = Symmetric::of_triangle(2, &[900.0, 0.0, 50.0]);
        let names = ["age".to_owned(), "sex = f".to_owned()];
        assert_eq!(determined(&information, 5.0, (1000.0, &names)), Ok(()));
        let why = determined(&information, 10.0, (1000.0, &names)).unwrap_err();
        let why = why.to_string();
        // 4·√2·10 is 56.6 and 1.13 times what there is.
        assert!(
            why.contains("of \"sex = f\". About 1200 rows or more"),
            "{why}"
        );
        assert!(!why.contains("age"), "{why}");
        let none = Symmetric::zeros(2);
        assert!(determined(&none, 0.0, (1000.0, &names)).is_err());
    }
}
