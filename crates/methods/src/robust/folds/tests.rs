#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::robust::tests::rows;

/// Rows that can be told apart by their feature.
fn numbered(labels: &[bool]) -> Samples {
    let features: Vec<[f64; 1]> = (0..labels.len()).map(|row| [row as f64]).collect();
    let labels: Vec<f64> = labels
        .iter()
        .map(|up| if *up { 1.0 } else { -1.0 })
        .collect();
    rows(&features, &labels)
}

proptest! {
    #[test]
    fn folds_divide_the_rows_evenly(
        labels in prop::collection::vec(any::<bool>(), 2..30),
        share in 0.0..1.0f64,
        seed in any::<u64>(),
        stratify in any::<bool>(),
    ) {
        let n = labels.len();
        let folds = 2 + (share * (n - 1) as f64) as usize;
        let data = numbered(&labels);
        let loss = if stratify { RowLoss::Logistic } else { RowLoss::Absolute };
        let partition = Folds::new(&data, loss, folds, seed).unwrap();
        prop_assert_eq!(&partition, &Folds::new(&data, loss, folds, seed).unwrap());
        let splits = partition.splits(&data);
        prop_assert_eq!(splits.len(), folds);

        let mut left_out = vec![0; n];
        for (outside, own) in &splits {
            prop_assert_eq!(outside.len() + own.len(), n);
            prop_assert!(own.len() == n / folds || own.len() == n.div_ceil(folds));
            for (x, _) in own.iter() {
                left_out[x[0] as usize] += 1;
                prop_assert!(outside.iter().all(|(other, _)| other != x));
            }
        }
        prop_assert!(left_out.iter().all(|&times| times == 1));

        let count = |rows: &Samples| rows.targets().iter().filter(|y| **y > 0.0).count();
        let positives = splits.iter().map(|(_, own)| count(own));
        let spread = positives.clone().max().unwrap() - positives.min().unwrap();
        prop_assert!(!stratify || spread <= 1);
    }
}

#[test]
fn another_seed_gives_other_folds() {
    let data = numbered(&[true; 20]);
    let divide = |seed| Folds::new(&data, RowLoss::Absolute, 4, seed).unwrap();
    assert_ne!(divide(1), divide(2));
}

#[test]
fn impossible_numbers_of_folds_are_refused() {
    let data = numbered(&[true, false, true]);
    for folds in [0, 1, 4] {
        let error = Folds::new(&data, RowLoss::Logistic, folds, 1).unwrap_err();
        assert_eq!(error, FoldsError { folds, rows: 3 });
    }
    assert!(Folds::new(&data, RowLoss::Logistic, 3, 1).is_ok());
}

#[test]
fn rows_of_a_group_share_a_fold_and_folds_have_as_many_groups() {
    let labels: Vec<bool> = (0..60).map(|row| row % 4 < 2).collect();
    let group = |row: usize| (row * 7 % 12) as u32;
    let groups: Vec<u32> = (0..60).map(group).collect();
    let data = numbered(&labels).with_groups(&groups);
    let splits = Folds::new(&data, RowLoss::Logistic, 4, 3)
        .unwrap()
        .splits(&data);
    let of = |rows: &Samples| -> std::collections::BTreeSet<u32> {
        rows.iter().map(|(x, _)| group(x[0] as usize)).collect()
    };
    for (outside, own) in &splits {
        assert!(of(outside).is_disjoint(&of(own)));
        assert_eq!((of(own).len(), own.together().len()), (3, 3));
    }
    let error = Folds::new(&data, RowLoss::Absolute, 13, 3).unwrap_err();
    assert_eq!(
        error,
        FoldsError {
            folds: 13,
            rows: 12
        }
    );
    // Other targets are of the same rows.
    let other = data.with_targets(vec![1.0; 60]).unwrap();
    assert_eq!(other.together(), data.together());
}
