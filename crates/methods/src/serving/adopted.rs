//! Models that the comparison takes from the last state of a federation.

use crate::learner::Learner;
use crate::params::Params;
use crate::params::weighted_mean;
use crate::strategy::SCALE;

/// Entries of a coalition in the last round, from the coalition of every entry.
pub fn members_of(assignment: &[u32], coalition: u32) -> usize {
    let own = |entry: &&u32| **entry == coalition;
    assignment.iter().filter(own).count()
}

/// The mean of all coalitions' models, by the number of their entries, where several have any.
pub fn mean_of_coalitions(models: &[Params], assignment: &[u32]) -> Option<Params> {
    let weighted: Vec<_> = (0..)
        .zip(models)
        .map(|(coalition, model)| (model, members_of(assignment, coalition) as f64))
        .filter(|(_, count)| *count > 0.0)
        .collect();
    (weighted.len() > 1)
        .then(|| weighted_mean(&weighted).ok())
        .flatten()
}

/// The model from which a silo trains alone: the initial one of its own family, on the scale that
/// the federation's model carries, where it carries one.
pub fn alone_start(plain: &dyn Learner, seed: u64, model: &Params) -> Params {
    let initial = plain.initial(seed);
    let scale = model
        .layout()
        .select(|tensor| SCALE.contains(&tensor.name.as_str()));
    let scale = Params::gather(&scale, &[model]).expect("tensors of this model");
    let layout = initial.layout().clone();
    Params::gather(&layout, &[&scale, &initial]).expect("the initial model has every tensor")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::learner::QuadraticLearner;
    use crate::params::{Layout, Role, TensorSpec};
    use crate::strategy::{DEVIATION, MEAN};

    fn model(value: f32) -> Params {
        let layout = Layout::new(vec![TensorSpec::new("w", [1], Role::Weight)]).unwrap();
        Params::from_values(&layout, &[value])
    }

    #[test]
    fn the_mean_of_coalitions_weighs_them_by_their_entries() {
        let models = [model(1.0), model(4.0), model(100.0)];
        let mean = mean_of_coalitions(&models, &[0, 1, 1]).unwrap();
        assert_eq!(mean.values(), [3.0]);
        assert_eq!(mean_of_coalitions(&models, &[1, 1]), None);
        assert_eq!(members_of(&[0, 1, 1], 1), 2);
    }

    #[test]
    fn a_silo_alone_starts_initially_on_the_scale_of_the_federation() {
        let spec = |name: &str, role| TensorSpec::new(name, [1], role);
        let scale = [spec(MEAN, Role::Buffer), spec(DEVIATION, Role::Buffer)];
        let [mean, deviation] = scale;
        let layout = Layout::new(vec![mean, deviation, spec("w", Role::Weight)]).unwrap();
        let plain = QuadraticLearner::with_layout(&layout, &[5.0]);
        let trained = Params::from_values(&layout, &[3.0, 2.0, 9.0]);
        let start = alone_start(&plain, 1, &trained);
        let initial = plain.initial(1);
        assert_eq!(start.tensor("w"), initial.tensor("w"));
        assert_eq!(start.tensor(MEAN), trained.tensor(MEAN));
        assert_eq!(start.tensor(DEVIATION), trained.tensor(DEVIATION));
    }
}
