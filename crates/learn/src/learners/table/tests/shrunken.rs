//! A fit to the silo's own rows that is shrunken towards a global model.

use methods::serving::{Adaptation, Candidate, shrunken};

use super::*;

/// Squared distance of the weights of two models.
fn apart(one: &Params, other: &Params) -> f64 {
    let pairs = one.tensor("weight").unwrap().iter();
    let pairs = pairs.zip(other.tensor("weight").unwrap());
    pairs.map(|(a, b)| f64::from(a - b).powi(2)).sum()
}

/// A model whose weights are all this far from those of another.
fn moved(model: &Params, by: f32) -> Params {
    let layout = model.layout();
    let values: Vec<f32> = model.values().iter().map(|value| value + by).collect();
    Params::from_values(layout, &values)
}

#[test]
fn a_global_model_that_fits_is_kept_and_another_is_left() {
    for (kind, classes) in [(LearnerKind::Squared, false), (LearnerKind::Logistic, true)] {
        let rows = table(60, 4, classes);
        let learner = learner(kind, &rows, Standardise::None);
        let with = |centre: &Params| {
            let (own, _) = shrunken(&learner, &(centre.clone(), Params::empty())).unwrap();
            own
        };
        // What the rows themselves say, nearly without a ridge.
        let own = with(&learner.initial(3));
        let from_own = with(&own);
        // Around a model that is far off, rows that tell a lot pull back.
        let far = moved(&own, 3.0);
        let from_far = with(&far);
        assert!(apart(&from_own, &own) < apart(&from_far, &far));
        assert!(apart(&from_far, &own) < apart(&far, &own));
        assert_eq!(with(&far), from_far);
    }
}

#[test]
fn a_model_without_exact_fits_is_not_shrunken() {
    let learner = learner(LearnerKind::Mlp, &table(60, 4, true), Standardise::None);
    let model = (learner.initial(0), Params::empty());
    let failed = Adaptation::Shrunken.adapt(&learner, &model);
    let failed = failed.unwrap_err().to_string();
    assert!(failed.contains("no exact fits"), "{failed}");
    assert!(Adaptation::OwnIntercept.adapt(&learner, &model).is_ok());
    let candidates = Adaptation::ALL.map(Adaptation::candidate);
    assert_eq!(candidates, [Candidate::OwnIntercept, Candidate::Shrunken]);
}
