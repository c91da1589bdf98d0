//! Results of classifiers on held-out rows: confusion, calibration and ROC curve.

use methods::learner::RowResults;

use super::results::{Bin, ClassResults};

/// Bins of a calibration.
const BINS: usize = 10;
/// Most points of a ROC curve.
const POINTS: usize = 101;

/// The results of an adopted model, and the ROC curve of the silo's own; `None` without classes.
pub(super) fn class_results(
    adopted: &RowResults,
    local: Option<&RowResults>,
) -> Option<ClassResults> {
    let classes = adopted.classes();
    (classes > 0).then(|| ClassResults {
        confusion: confusion(adopted, classes),
        calibration: calibration(adopted, classes),
        roc: adopted.positive().map_or(Vec::new(), roc),
        roc_local: local.and_then(RowResults::positive).map_or(Vec::new(), roc),
    })
}

/// The class of the largest probability, the first of equals, of every row.
fn given(results: &RowResults, classes: usize) -> impl Iterator<Item = (usize, f64)> {
    results.probabilities.chunks_exact(classes).map(|row| {
        let better = |best: usize, class: usize| if row[class] > row[best] { class } else { best };
        let class = (0..row.len()).fold(0, better);
        (class, row[class])
    })
}

fn confusion(results: &RowResults, classes: usize) -> Vec<Vec<u64>> {
    let mut table = vec![vec![0; classes]; classes];
    for ((class, _), &truth) in given(results, classes).zip(&results.targets) {
        if let Some(row) = table.get_mut(truth as usize) {
            row[class] += 1;
        }
    }
    table
}

fn calibration(results: &RowResults, classes: usize) -> Vec<Bin> {
    let rows: Vec<(f64, bool)> = match results.positive() {
        Some(rows) => rows,
        None => given(results, classes)
            .zip(&results.targets)
            .map(|((class, p), &truth)| (p, truth as usize == class))
            .collect(),
    };
    let mut bins = [(0.0, 0.0, 0u64); BINS];
    for (p, truth) in rows.into_iter().filter(|(p, _)| p.is_finite()) {
        let bin = &mut bins[((p * BINS as f64) as usize).min(BINS - 1)];
        bin.0 += p;
        bin.1 += f64::from(u8::from(truth));
        bin.2 += 1;
    }
    let filled = bins.into_iter().filter(|(_, _, rows)| *rows > 0);
    filled
        .map(|(predicted, observed, rows)| Bin {
            predicted: predicted / rows as f64,
            observed: observed / rows as f64,
            rows,
        })
        .collect()
}

/// False and true positive rates by falling threshold.
fn roc(mut rows: Vec<(f64, bool)>) -> Vec<(f64, f64)> {
    let positives = rows.iter().filter(|(_, truth)| *truth).count() as f64;
    let negatives = rows.len() as f64 - positives;
    if positives == 0.0 || negatives == 0.0 || rows.iter().any(|(p, _)| !p.is_finite()) {
        return Vec::new();
    }
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (mut curve, mut ups, mut downs) = (vec![(0.0, 0.0)], 0.0, 0.0);
    for equal in rows.chunk_by(|a, b| a.0 == b.0) {
        let true_ones = equal.iter().filter(|(_, truth)| *truth).count() as f64;
        ups += true_ones;
        downs += equal.len() as f64 - true_ones;
        curve.push((downs / negatives, ups / positives));
    }
    thinned(curve)
}

/// At most [`POINTS`] points, both ends among them.
fn thinned(curve: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    if curve.len() <= POINTS {
        return curve;
    }
    let last = curve.len() - 1;
    (0..POINTS)
        .map(|at| curve[at * last / (POINTS - 1)])
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn rows(positive: &[(f64, u8)]) -> RowResults {
        RowResults {
            scores: [("loss".to_owned(), vec![0.0; positive.len()])].into(),
            targets: positive.iter().map(|(_, y)| f32::from(*y)).collect(),
            probabilities: positive.iter().flat_map(|(p, _)| [1.0 - p, *p]).collect(),
            ..RowResults::default()
        }
    }

    #[test]
    fn confusion_calibration_and_roc_count_rows() {
        let results =
            class_results(&rows(&[(0.9, 1), (0.8, 0), (0.3, 1), (0.1, 0)]), None).unwrap();
        assert_eq!(results.confusion, [[1, 1], [1, 1]]);
        let expected = [(0.0, 0.0), (0.0, 0.5), (0.5, 0.5), (0.5, 1.0), (1.0, 1.0)];
        assert_eq!(results.roc, expected);
        assert_eq!(results.calibration.len(), 4);
        assert_eq!(results.calibration[3].observed, 1.0);
        assert!(results.roc_local.is_empty());
    }

    #[test]
    fn one_class_has_no_roc_curve_and_numbers_have_nothing() {
        let one = class_results(&rows(&[(0.9, 1), (0.8, 1)]), None).unwrap();
        assert!(one.roc.is_empty());
        assert_eq!(one.confusion, [[0, 0], [0, 2]]);
        assert_eq!(class_results(&RowResults::default(), None), None);
    }

    #[test]
    fn several_classes_are_calibrated_by_the_class_that_is_given() {
        let results = RowResults {
            scores: [("loss".to_owned(), vec![0.0; 2])].into(),
            targets: vec![2.0, 0.0],
            probabilities: vec![0.1, 0.2, 0.7, 0.2, 0.75, 0.05],
            ..RowResults::default()
        };
        let results = class_results(&results, None).unwrap();
        assert_eq!(results.calibration.len(), 1);
        assert_eq!(
            (results.calibration[0].observed, results.calibration[0].rows),
            (0.5, 2)
        );
        assert_eq!(results.confusion[0], [0, 1, 0]);
        assert!(results.roc.is_empty());
    }

    #[test]
    fn long_curves_are_thinned_and_keep_their_ends() {
        let many: Vec<(f64, u8)> = (0..5000)
            .map(|at| (f64::from(at) / 5000.0, (at % 2) as u8))
            .collect();
        let curve = class_results(&rows(&many), None).unwrap().roc;
        assert_eq!(curve.len(), POINTS);
        assert_eq!((curve[0], curve[POINTS - 1]), ((0.0, 0.0), (1.0, 1.0)));
    }
}
