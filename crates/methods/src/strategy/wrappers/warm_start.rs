//! Wraps a learner to start from a given model instead of the initial one.

use std::sync::Arc;

use crate::learner::{Capability, Job, LearnError, Learner, Update, Watch};
use crate::params::{Layout, Params};
use crate::strategy::wrappers::learner_wrapper::{LearnerWrapper, WrappedLearner};

/// Reason for which a model cannot be the start of another federation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WarmStartError {
    /// A tensor that the task's model does not have.
    #[error(
        "the start model has a tensor {tensor:?} {shape:?}, which the agreed model does not have ({has}): \
         agree on the model that it was trained as"
    )]
    Unknown {
        /// The tensor.
        tensor: String,
        /// Shape of the tensor.
        shape: Vec<usize>,
        /// The tensors of the agreed model.
        has: String,
    },
    /// A tensor of another shape.
    #[error(
        "the start model's tensor {tensor:?} is {found:?}, that of the agreed model is {expected:?}: \
         agree on the model that it was trained as"
    )]
    Shape {
        /// The tensor.
        tensor: String,
        /// Shape of the tensor in the start model.
        found: Vec<usize>,
        /// Shape of the tensor in the agreed model.
        expected: Vec<usize>,
    },
    /// No tensor at all.
    #[error("the start model has no tensor")]
    Empty,
    /// The agreed model carries a scale, and the start model has none.
    #[error(
        "the agreed task has a common scale (`standardise = \"federation\"`), and the start model carries \
         none: agree on the task that it was trained for"
    )]
    NoScale,
}

/// The part of a federation's model that belongs to this family, without what a strategy attached
/// to it: what another federation can start from.
pub fn shared_part(family: &Arc<Layout>, model: &Params) -> Params {
    let fits = |name: &str, len: usize| model.tensor(name).is_some_and(|own| own.len() == len);
    let layout = family.select(|tensor| fits(&tensor.name, tensor.len()));
    Params::gather(&layout, &[model]).expect("tensors of this model")
}

/// A learner whose initial model is `start`. Tensors that `start` lacks, such as personal layers that
/// never left the silos, stay as they are initially.
///
/// # Errors
/// [`WarmStartError`]: a model of another family.
pub fn warm_started(
    learner: Arc<dyn Learner>,
    start: &Params,
) -> Result<Arc<dyn Learner>, WarmStartError> {
    let layout = learner.layout();
    if start.layout().is_empty() {
        return Err(WarmStartError::Empty);
    }
    for tensor in start.layout().tensors() {
        let Some(at) = layout.position(&tensor.name) else {
            return Err(WarmStartError::Unknown {
                tensor: tensor.name.clone(),
                shape: tensor.shape.clone(),
                has: layout.describe(),
            });
        };
        let expected = &layout.tensors()[at].shape;
        if *expected != tensor.shape {
            return Err(WarmStartError::Shape {
                tensor: tensor.name.clone(),
                found: tensor.shape.clone(),
                expected: expected.clone(),
            });
        }
    }
    let scale = [super::standardise::MEAN, super::standardise::DEVIATION];
    let lacks = |name: &&str| layout.position(name).is_some() && start.tensor(name).is_none();
    if scale.iter().any(lacks) {
        return Err(WarmStartError::NoScale);
    }
    let by = WarmStart(start.clone());
    Ok(WrappedLearner::equip(learner, by).expect("it needs no capability"))
}

/// Starts from this model.
struct WarmStart(Params);

impl LearnerWrapper for WarmStart {
    fn needs(&self) -> &'static [Capability] {
        &[]
    }

    fn uses_up(&self) -> &'static [Capability] {
        &[]
    }

    fn initial(&self, inner: &dyn Learner, seed: u64) -> Params {
        let initial = inner.initial(seed);
        let layout = initial.layout().clone();
        Params::gather(&layout, &[&self.0, &initial]).expect("the initial model has every tensor")
    }

    fn learn(
        &self,
        inner: &dyn Learner,
        job: Job<'_>,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        job.run(inner, progress)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::learner::QuadraticLearner;
    use crate::params::{Role, TensorSpec};

    fn family() -> Arc<dyn Learner> {
        let spec = |name: &str, len: usize| TensorSpec::new(name, [len], Role::Weight);
        let layout = Layout::new(vec![spec("body", 2), spec("head", 1)]).unwrap();
        Arc::new(QuadraticLearner::with_layout(&layout, &[1.0, 2.0, 3.0]))
    }

    fn of(tensors: &[(&str, &[f32])]) -> Params {
        let specs = tensors
            .iter()
            .map(|(name, values)| TensorSpec::new(*name, [values.len()], Role::Weight));
        let layout = Layout::new(specs.collect()).unwrap();
        let values: Vec<f32> = tensors
            .iter()
            .flat_map(|(_, values)| *values)
            .copied()
            .collect();
        Params::from_values(&layout, &values)
    }

    #[test]
    fn a_learner_starts_from_given_tensors_and_initial_others() {
        let plain = family();
        let start = of(&[("body", &[7.0, 8.0])]);
        let warm = warm_started(plain.clone(), &start).unwrap();
        let initial = warm.initial(3);
        assert_eq!(initial.tensor("body"), Some([7.0, 8.0].as_slice()));
        assert_eq!(initial.tensor("head"), plain.initial(3).tensor("head"));
        assert_eq!(warm.layout(), plain.layout());
    }

    #[test]
    fn a_model_of_another_family_is_refused() {
        let refused = |start: Params| warm_started(family(), &start).err().unwrap().to_string();
        assert!(refused(of(&[("tail", &[1.0])])).contains("a tensor \"tail\" [1]"));
        assert!(refused(of(&[("body", &[1.0])])).contains("\"body\" is [1]"));
        assert!(refused(Params::empty()).contains("no tensor"));
    }

    #[test]
    fn what_a_strategy_attached_is_no_part_of_the_shared_model() {
        let whole = of(&[("body", &[1.0, 2.0]), ("control.body", &[5.0, 6.0])]);
        let shared = shared_part(&family().layout(), &whole);
        assert_eq!(shared, of(&[("body", &[1.0, 2.0])]));
    }
}
