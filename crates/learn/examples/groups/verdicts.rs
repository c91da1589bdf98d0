//! HCCT's groups in the number that is found, on all planted kinds: is it ever worse than silos alone,
//! and is it as good as the best of the other methods that form groups?

use std::error::Error;
use std::ops::RangeInclusive;

use super::planted::{KINDS, PlantedKind};
use super::tables::MethodTable;
use super::{ExampleRun, runs};

/// Silos alone, by steps and by exact fits; the better counts.
const ALONE: [&str; 2] = [
    r#"{"name":"local"}"#,
    r#"{"name":"local","fit":"exact","rounds":1}"#,
];
const DEFAULT: &str = r#"{"name":"hcct"}"#;
const FOUND: &str = r#"{"name":"hcct","groups":"auto"}"#;
const CS_RCFL: &str = r#"{"name":"cs-rcfl","coalitions":"auto"}"#;

/// Standard errors that count as noise.
const NOISE: f64 = 2.0;
/// Least difference that three digits show: two ways to the same groups differ by rounding.
const SHOWN: f64 = 0.000_5;

/// Prints a row of Markdown for every kind, and in how many the two bars are met.
pub(crate) fn planted(
    table: &MethodTable,
    seeds: &RangeInclusive<u64>,
) -> Result<(), Box<dyn Error>> {
    println!(
        "| | alone | `groups = 0` | `groups = \"auto\"` | `cs-rcfl`, `\"auto\"` | `ifca`, true number | auto − alone | auto − best other | groups found |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let (mut alone, mut best) = (0, 0);
    for kind in &KINDS {
        let (safe, as_good) = row(table, kind, seeds)?;
        alone += usize::from(safe);
        best += usize::from(as_good);
    }
    println!(
        "\nNot worse than alone in {alone} of {0}, as good as the best other in {best} of {0}.",
        KINDS.len()
    );
    Ok(())
}

/// Returns whether it is not worse than alone, and not worse than the best other, on one kind.
fn row(
    table: &MethodTable,
    kind: &PlantedKind,
    seeds: &RangeInclusive<u64>,
) -> Result<(bool, bool), Box<dyn Error>> {
    let losses = |method: &str| -> Result<Vec<f64>, Box<dyn Error>> {
        let runs = runs(table, kind.name, method, seeds)?;
        Ok(runs.iter().map(|run: &ExampleRun| run.last).collect())
    };
    let better = |a: Vec<f64>, b: Vec<f64>| if mean(&a) <= mean(&b) { a } else { b };
    let alone = better(losses(ALONE[0])?, losses(ALONE[1])?);
    let default = losses(DEFAULT)?;
    let found = runs(table, kind.name, FOUND, seeds)?;
    let right = found.iter().filter(|run| run.found == Some(true)).count();
    let found: Vec<f64> = found.iter().map(|run| run.last).collect();
    let cs_rcfl = losses(CS_RCFL)?;
    let truths = kind.truths();
    let ifca = losses(&format!(r#"{{"name":"ifca","models":{truths}}}"#))?;
    let [over_alone, over_best] = [alone.clone(), better(cs_rcfl.clone(), ifca.clone())]
        .map(|other| LossDifference::of(&found, &other));
    println!(
        "| {} | {:.3} | {:.3} | {:.3} | {:.3} | {:.3} | {over_alone} | {over_best} | {right} of {} |",
        kind.name,
        mean(&alone),
        mean(&default),
        mean(&found),
        mean(&cs_rcfl),
        mean(&ifca),
        found.len(),
    );
    Ok((over_alone.is_noise_or_less(), over_best.is_noise_or_less()))
}

/// A mean paired difference and its standard error.
struct LossDifference {
    mean: f64,
    error: f64,
}

impl LossDifference {
    fn of(a: &[f64], b: &[f64]) -> Self {
        let each: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
        let (mean, count) = (mean(&each), each.len() as f64);
        let squares = each.iter().map(|one| (one - mean).powi(2)).sum::<f64>();
        Self {
            mean,
            error: (squares / (count - 1.0).max(1.0) / count).sqrt(),
        }
    }

    /// Not larger than 0 by more than noise, and by so much that it shows.
    fn is_noise_or_less(&self) -> bool {
        self.mean <= (NOISE * self.error).max(SHOWN)
    }
}

impl std::fmt::Display for LossDifference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let worse = if self.is_noise_or_less() {
            ""
        } else {
            ", worse"
        };
        write!(f, "{:+.3} ± {:.3}{worse}", self.mean, NOISE * self.error)
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}
