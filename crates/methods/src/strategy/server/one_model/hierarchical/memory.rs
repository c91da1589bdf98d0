//! Memory of the members from round to round: the estimates of every model, in double precision.

use crate::matrix::Matrix;
use crate::mixed::{MixedProgress, MixedSettings, Varying};
use crate::strategy::{Kept, Memory};

/// Names of the values of one model, each after the name of the model.
const MEAN: &str = "mean";
const STRENGTHS: &str = "strengths";
const NOISE: &str = "noise";
const PRECISION: &str = "precision";
const PREDICTIVE: &str = "predictive";
const DIAGONAL: &str = "diagonal";
const PATTERN: &str = "pattern";
const POWERS: &str = "powers";
const ABOVE: &str = "above";
const DONE: &str = "done";

/// The place of the model that weighs most among those of the agreement, once all are done.
pub(super) const CHOSEN: &str = "hierarchical.chosen";
/// The weight of every model of the agreement in what silos are served, in the order there.
pub(super) const WEIGHTS: &str = "hierarchical.weights";
/// Sites, losses of chosen and alone, and squared differences, summed over the sites.
pub(super) const LOSSES: &str = "hierarchical.losses";
/// Numbers that every site has contributed so far.
pub(super) const OPENED: &str = "hierarchical.opened";
/// Rows of all silos, where they are opened before all else.
pub(super) const ROWS: &str = "hierarchical.rows";
/// Silos that refused, by the number of the rule.
pub(super) const REFUSED: &str = "hierarchical.refused";
/// Count of 1 once all is done.
pub(super) const ENDED: &str = "hierarchical.ended";

fn name(varying: Varying, of: &str) -> String {
    format!("hierarchical.{}.{of}", varying.name())
}

/// `length` finite numbers.
fn numbers(memory: &Memory, name: &str, length: usize) -> Option<Vec<f64>> {
    match memory.get(name)? {
        Kept::Numbers(all) if all.len() == length && all.iter().all(|n| n.is_finite()) => {
            Some(all.clone())
        }
        _ => None,
    }
}

/// Returns what is kept of one model of `width` coefficients; before the first round, and for what is unusable, its
/// start.
pub(super) fn read(
    memory: &Memory,
    varying: Varying,
    width: usize,
    settings: &MixedSettings,
) -> MixedProgress {
    read_all(memory, varying, width)
        .unwrap_or_else(|| MixedProgress::start(varying, width, settings))
}

fn read_all(memory: &Memory, varying: Varying, width: usize) -> Option<MixedProgress> {
    let list = |of, length| numbers(memory, &name(varying, of), length);
    let number = |of| memory.number(&name(varying, of));
    let positive = |of| number(of).filter(|value| value.is_finite() && *value > 0.0);
    let groups = varying.groups(width).len();
    let powers = memory.counts(&name(varying, POWERS), groups)?;
    let above = memory.counts(&name(varying, ABOVE), groups)?;
    let pattern = list(PATTERN, width * width)?;
    let strengths = list(STRENGTHS, width)?;
    let holds = strengths.iter().all(|&strength| strength >= 0.0) && powers.iter().all(|&p| p <= 5);
    holds.then_some(())?;
    Some(MixedProgress {
        varying,
        mean: list(MEAN, width)?,
        strengths,
        noise: positive(NOISE)?,
        precision: positive(PRECISION)?,
        pattern: Some(Matrix::from_fn(width, width, |row, column| {
            pattern[row * width + column]
        })),
        diagonal: list(DIAGONAL, width)?,
        powers: powers
            .iter()
            .zip(above)
            .map(|(&power, &above)| (power, above == 1))
            .collect(),
        predictive: number(PREDICTIVE).filter(|value| value.is_finite())?,
        done: memory.count(&name(varying, DONE))? == 1,
    })
}

/// Keeps a model after a round.
pub(super) fn write(memory: &mut Memory, progress: &MixedProgress) {
    let mut keep = |of, value| memory.insert(name(progress.varying, of), value);
    let pattern = progress.pattern.as_ref();
    let pattern = pattern.map_or(Vec::new(), |pattern| pattern.values().to_vec());
    let powers = progress.powers.iter();
    let above = powers.clone().map(|(_, above)| u64::from(*above)).collect();
    keep(MEAN, Kept::Numbers(progress.mean.clone()));
    keep(STRENGTHS, Kept::Numbers(progress.strengths.clone()));
    keep(NOISE, Kept::Number(progress.noise));
    keep(PRECISION, Kept::Number(progress.precision));
    keep(PREDICTIVE, Kept::Number(progress.predictive));
    keep(DIAGONAL, Kept::Numbers(progress.diagonal.clone()));
    keep(PATTERN, Kept::Numbers(pattern));
    keep(
        POWERS,
        Kept::Counts(powers.map(|(power, _)| *power).collect()),
    );
    keep(ABOVE, Kept::Counts(above));
    keep(DONE, Kept::Count(progress.done.into()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_again_and_what_is_unusable_is_the_start() {
        let settings = MixedSettings::default();
        for varying in Varying::ALL {
            let start = MixedProgress::start(varying, 3, &settings);
            let mut memory = Memory::default();
            assert_eq!(read(&memory, varying, 3, &settings), start);
            let kept = MixedProgress {
                mean: vec![0.1, 0.2, 0.3],
                noise: 0.7,
                pattern: Some(Matrix::from_fn(3, 3, |row, column| (row + column) as f64)),
                diagonal: vec![3.0, 2.0, 1.0],
                powers: vec![(3, true); start.powers.len()],
                predictive: -12.5,
                done: true,
                ..start.clone()
            };
            write(&mut memory, &kept);
            assert_eq!(read(&memory, varying, 3, &settings), kept);
            assert_eq!(read(&memory, varying, 4, &settings).width(), 4);
            for (of, value) in [
                (MEAN, Kept::Numbers(vec![f64::NAN; 3])),
                (NOISE, Kept::Number(-1.0)),
                (STRENGTHS, Kept::Numbers(vec![-1.0; 3])),
            ] {
                let mut forged = memory.clone();
                forged.insert(name(varying, of), value);
                assert_eq!(read(&forged, varying, 3, &settings), start);
            }
        }
    }
}
