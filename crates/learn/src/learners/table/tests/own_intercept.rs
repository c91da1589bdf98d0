//! A global model with an intercept of the silo's own.

use methods::Role;
use methods::serving::with_own_intercept;

use super::*;

/// The loss on training rows as if there were one row more of each class.
fn smoothed(learner: &TableLearner, model: &Params) -> f64 {
    let none = Params::empty();
    let own = learner as &dyn Learner;
    let outputs = own.outputs().unwrap();
    let values = outputs.outputs(model, &none, Split::Train).unwrap();
    let results = outputs
        .row_results(model, &none, &values, Split::Train)
        .unwrap();
    let (rows, classes) = (results.len() as f64, results.classes());
    let mut sum: f64 = results.scores["loss"].iter().sum();
    if classes > 1 {
        let all = results.probabilities.iter().map(|p| -p.ln() / rows);
        sum += all.sum::<f64>();
        return sum / (rows + classes as f64);
    }
    sum / rows
}

#[test]
fn only_the_intercept_moves_and_to_the_least_loss() {
    for (kind, classes) in [
        (LearnerKind::Absolute, false),
        (LearnerKind::Squared, false),
        (LearnerKind::Logistic, true),
        (LearnerKind::Mlp, true),
    ] {
        let learner = learner(kind, &table(60, 4, classes), Standardise::None);
        let start = learner.initial(3);
        let common = (start.clone(), Params::empty());
        let (own, _) = with_own_intercept(&learner, &common).unwrap();
        let least = smoothed(&learner, &own);
        assert!(least < smoothed(&learner, &start), "{least}");
        let moved: Vec<usize> = (0..start.values().len())
            .filter(|&at| start.values()[at] != own.values()[at])
            .collect();
        // The last of the layout are the biases of the last layer.
        let layout = learner.layout();
        let last = layout
            .tensors()
            .iter()
            .rposition(|tensor| tensor.role == Role::Bias);
        let range = layout.range(last.unwrap());
        assert!(moved.iter().all(|at| range.contains(at)), "{moved:?}");
        for at in range {
            for by in [-0.05, 0.05] {
                let mut values = own.values().to_vec();
                values[at] += by;
                let other = Params::from_values(&layout, &values);
                assert!(least <= smoothed(&learner, &other) + 1e-6);
            }
        }
        let again = with_own_intercept(&learner, &common).unwrap();
        assert_eq!(again.0, own);
    }
}

/// Rows that are all of one class say that it is frequent, and not that there is no other.
#[test]
fn rows_of_one_class_give_a_finite_intercept() {
    let mut rows = Table::new(vec!["x".into()]);
    for at in 0..10 {
        rows.push(&[f64::from(at % 3)], 1.0);
    }
    let learner = learner(LearnerKind::Logistic, &rows, Standardise::None);
    let start = learner.initial(0);
    let (own, _) = with_own_intercept(&learner, &(start, Params::empty())).unwrap();
    // By the rule of succession, at weights of 0.
    let expected = (learner.samples() as f64 + 1.0).ln();
    let bias = f64::from(own.tensor("bias").unwrap()[0]);
    assert!((bias - expected).abs() < 0.02, "{bias}");
}
