//! A model of the silo's own in its personal state, which personalised methods train beside the common one.

use crate::learner::Learner;
use crate::params::{Attached, LayoutError, Params};
use crate::strategy::wrappers::standardise::without_scale;

/// A whole model in the personal state, buffers such as running statistics included, and what the
/// learner keeps beside it (personal layers), which the training of the global model must not change.
/// Only the scale that the federation agreed on is the global model's.
pub(super) struct PersonalModel(Attached);

/// State of a silo under a method with a model of its own.
pub(super) struct OwnAndBeside {
    /// State of the learner beside the global model.
    pub(super) rest: Params,
    /// The local model, in the layout of the common one.
    pub(super) own: Params,
    /// State of the learner beside the local model.
    pub(super) beside: Params,
}

impl PersonalModel {
    /// Keeps the model and what is beside it under these names.
    pub(super) fn new(inner: &dyn Learner, names: [&str; 2]) -> Result<Self, LayoutError> {
        let rest = inner.initial_personal(0).layout().clone();
        let [own, beside] = names;
        let kept = [(own, &without_scale(&inner.layout())), (beside, &rest)];
        Attached::new(&rest, &kept).map(Self)
    }

    /// The personal state before the first round: the local model is the one that the learner starts with.
    pub(super) fn initial(&self, inner: &dyn Learner, seed: u64) -> Params {
        let rest = inner.initial_personal(seed);
        self.write(&rest, (&inner.initial(seed), &rest))
    }

    /// Returns what the personal state holds beside the global model.
    pub(super) fn rest(&self, personal: &Params) -> Params {
        self.0.split(personal).0
    }

    /// Returns what the personal state holds.
    pub(super) fn read(&self, model: &Params, personal: &Params) -> OwnAndBeside {
        let (rest, kept) = self.0.split(personal);
        let own = Params::gather(model.layout(), &[&kept[0], model]);
        OwnAndBeside {
            rest,
            own: own.expect("tensors of this model"),
            beside: kept[1].clone(),
        }
    }

    /// The personal state with the local model and what is kept beside it.
    pub(super) fn write(&self, rest: &Params, (own, beside): (&Params, &Params)) -> Params {
        let own = Params::gather(self.0.part(0), &[own]);
        let own = own.expect("tensors of this model");
        self.0.join(rest, &[&own, beside])
    }
}

/// `a + share·(b − a)` in the trained tensors, in `f64`, with the buffers of `b`. Both have one layout.
pub(super) fn between(a: &Params, b: &Params, share: f64) -> Params {
    let layout = b.layout();
    Params::build(layout, |into| {
        into.copy_from_slice(b.values());
        for at in layout.trained_ranges().flatten() {
            let (from, to) = (f64::from(a.values()[at]), f64::from(b.values()[at]));
            into[at] = (from + share * (to - from)) as f32;
        }
    })
}
