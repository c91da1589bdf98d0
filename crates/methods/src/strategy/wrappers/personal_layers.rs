//! Personal layers: a part of the model that stays with each silo (FedPer, Arivazhagan et al.
//! 2019; FedBN, Li et al. 2021; FedRep, Collins et al. 2021). Goes with every strategy.

use std::sync::Arc;

use crate::learner::{Capability, Job, LearnError, Learner, Update, Watch};
use crate::merging::OneLayer;
use crate::params::{Attached, Layer, Layout, Params, Role, TensorSpec, layers, layers_by_depth};
use crate::strategy::EquipError;
use crate::strategy::wrappers::learner_wrapper::{LearnerWrapper, WrappedLearner};
use crate::strategy::wrappers::standardise::SCALE;
use crate::strategy::wrappers::strategy_wrapper::StrategyWrapper;

/// The last layer in the order of depth that is no normalisation layer: weight and bias. Refused where
/// that order is not known.
pub const LAST_LAYER: &str = "last-layer";
/// Layers that normalise, and their statistics: those of which the layout [says so](Layout::norm), and where it
/// says nothing, layers with `norm` in their names, that begin with `bn`, or that have running variances.
pub const NORM_LAYERS: &str = "norm-layers";
/// The bias of that layer, also where it is the only one.
pub const INTERCEPT: &str = "intercept";

/// Name under which personal tensors are kept in the personal state.
const PERSONAL: &str = "personal";

/// The tensors of `model` with these names: [`LAST_LAYER`], [`NORM_LAYERS`], [`INTERCEPT`],
/// or else a tensor, or a layer with all its tensors.
///
/// # Errors
/// [`EquipError`] if a name matches nothing, the common scale, or all that is trained.
pub(crate) fn select(model: &Layout, names: &[String]) -> Result<Arc<Layout>, EquipError> {
    let personal = choose(model, names, "personal")?;
    if SCALE.iter().any(|name| personal.position(name).is_some()) {
        return Err(EquipError::Scale);
    }
    if personal.trained().tensors().len() == model.trained().tensors().len() {
        return Err(EquipError::NothingShared(names.join(", ")));
    }
    Ok(personal)
}

/// The tensors that an option of the strategy names in the same way.
///
/// # Errors
/// [`EquipError`] if a name matches nothing.
pub(crate) fn choose(
    model: &Layout,
    names: &[String],
    option: &'static str,
) -> Result<Arc<Layout>, EquipError> {
    let mut chosen = vec![false; model.tensors().len()];
    for name in names {
        let matched = named(model, name)?;
        if !matched.contains(&true) {
            return Err(EquipError::Nothing {
                option,
                name: name.clone(),
                has: model.describe(),
            });
        }
        for (chosen, matched) in chosen.iter_mut().zip(matched) {
            *chosen |= matched;
        }
    }
    let mut at = chosen.iter();
    Ok(model.select(|_| at.next() == Some(&true)))
}

/// Returns whether a layer of the model normalises, as the layout says of any of its tensors, or by its name. In a
/// PyTorch `Sequential` its name is a number.
pub(crate) fn is_norm(model: &Layout, layer: &str) -> bool {
    let of_layer = |tensor: &&TensorSpec| {
        let (own, _) = tensor.name.rsplit_once('.').unwrap_or(("", &tensor.name));
        own == layer
    };
    let tensors = model.tensors().iter().filter(of_layer);
    if let Some(said) = tensors.filter_map(|tensor| model.norm(&tensor.name)).next() {
        return said;
    }
    let own = layer.rsplit('.').next().unwrap_or_default();
    let varies = |part: &str| {
        let buffer = model.position(&format!("{layer}.{part}"));
        buffer.is_some_and(|at| model.tensors()[at].role == Role::Buffer)
    };
    own.contains("norm") || own.starts_with("bn") || varies("running_var") || varies("variance")
}

/// The layers that do not normalise, in the order of depth, for an option that asks for the last.
///
/// # Errors
/// [`EquipError::Depth`] where there are several and their order is not known.
pub(crate) fn without_norms(model: &Layout, asked: &str) -> Result<Vec<Layer>, EquipError> {
    let own = |layer: &Layer| !is_norm(model, &layer.name);
    let (all, by_depth) = (layers(model), layers_by_depth(model));
    let several = all.iter().filter(|layer| own(layer)).count() > 1;
    let unknown = || EquipError::Depth {
        asked: asked.into(),
        layers: quoted(all.iter().map(|layer| layer.name.as_str())),
    };
    let known = match by_depth {
        Some(by_depth) => by_depth,
        None if several => return Err(unknown()),
        None => all,
    };
    Ok(known.into_iter().filter(own).collect())
}

/// Names in an error.
pub(crate) fn quoted<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.map(|name| format!("{name:?}")).collect();
    names.join(", ")
}

/// Returns which tensors a name matches.
fn named(model: &Layout, name: &str) -> Result<Vec<bool>, EquipError> {
    let each =
        |matches: &dyn Fn(&TensorSpec) -> bool| model.tensors().iter().map(matches).collect();
    let layer = |tensor: &TensorSpec| {
        let (layer, _) = tensor.name.rsplit_once('.').unwrap_or(("", &tensor.name));
        layer.to_owned()
    };
    Ok(match name {
        LAST_LAYER => {
            let mut dense = without_norms(model, name)?;
            let layers = dense.len();
            let head = dense.pop().filter(|_| layers > 1);
            let head = head.ok_or(OneLayer { layers })?;
            each(&|tensor| tensor.role != Role::Buffer && layer(tensor) == head.name)
        }
        INTERCEPT => {
            let last = without_norms(model, name)?.pop().map(|layer| layer.name);
            let is_last = |tensor: &TensorSpec| Some(layer(tensor)) == last;
            each(&|tensor| tensor.role == Role::Bias && is_last(tensor))
        }
        NORM_LAYERS => each(&|tensor| is_norm(model, &layer(tensor))),
        name => each(&|tensor| tensor.name == name || (!name.is_empty() && layer(tensor) == name)),
    })
}

/// The wrapper that leaves the named tensors with the silos.
pub(crate) struct PersonalLayers(pub(crate) Vec<String>);

impl StrategyWrapper for PersonalLayers {
    fn equip(&self, inner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
        let full = inner.layout();
        let own = select(&full, &self.0)?;
        let shared = full.select(|tensor| own.position(&tensor.name).is_none());
        let rest = inner.initial_personal(0).layout().clone();
        let personal = Attached::new(&rest, &[(PERSONAL, &own)])?;
        let by = Parted {
            full,
            shared,
            own,
            personal,
        };
        Ok(WrappedLearner::equip(inner, by)?)
    }
}

/// A learner of the shared part of its model.
struct Parted {
    full: Arc<Layout>,
    shared: Arc<Layout>,
    own: Arc<Layout>,
    personal: Attached,
}

/// The tensors of `layout`, which is a part of the layout of `full`.
pub(crate) fn part(layout: &Arc<Layout>, full: &Params) -> Params {
    Params::gather(layout, &[full]).expect("a part of the learner's layout")
}

impl Parted {
    /// Returns what others see of an update of the whole model.
    fn parted(&self, update: Update) -> Update {
        let own = part(&self.own, &update.shared);
        Update {
            shared: part(&self.shared, &update.shared),
            personal: self.personal.join(&update.personal, &[&own]),
            ..update
        }
    }
}

impl LearnerWrapper for Parted {
    fn needs(&self) -> &'static [Capability] {
        &[]
    }

    fn uses_up(&self) -> &'static [Capability] {
        &[]
    }

    fn layout(&self, _: &dyn Learner) -> Arc<Layout> {
        self.shared.clone()
    }

    fn initial(&self, inner: &dyn Learner, seed: u64) -> Params {
        part(&self.shared, &inner.initial(seed))
    }

    fn initial_personal(&self, inner: &dyn Learner, seed: u64) -> Params {
        let own = part(&self.own, &inner.initial(seed));
        self.personal.join(&inner.initial_personal(seed), &[&own])
    }

    fn inside(&self, model: &Params, personal: &Params) -> (Params, Params) {
        let (rest, own) = self.personal.split(personal);
        let full = Params::gather(&self.full, &[model, &own[0]]);
        (full.expect("shared and personal tensors are all"), rest)
    }

    fn learn(
        &self,
        inner: &dyn Learner,
        job: Job<'_>,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        let (start, rest) = self.inside(job.start, job.personal);
        let inside = Job {
            start: &start,
            personal: &rest,
            ..job
        };
        Ok(self.parted(inside.run(inner, progress)?))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn norm_layers_with_numbers_for_names_are_known_by_statistics() {
        let trained = ["0.weight", "0.bias", "10.weight", "11.weight", "11.bias"];
        let buffers = ["11.running_mean", "11.running_var", "scale.mean"];
        let tensor = |role| move |name: &str| TensorSpec::new(name, [2], role);
        let tensors = trained.iter().copied().map(tensor(Role::Weight));
        let tensors = tensors.chain(buffers.iter().copied().map(tensor(Role::Buffer)));
        let model = Layout::by_depth(tensors.collect()).unwrap();
        let names = |word: &str| {
            let chosen = choose(&model, &[word.to_owned()], "personal").unwrap();
            let names = chosen.tensors().iter().map(|tensor| tensor.name.clone());
            names.collect::<Vec<_>>()
        };
        let norm = ["11.bias", "11.running_mean", "11.running_var", "11.weight"];
        assert_eq!(names(NORM_LAYERS), norm);
        assert_eq!(names(LAST_LAYER), ["10.weight"]);
    }

    #[test]
    fn what_a_layout_states_of_its_norms_comes_before_names() {
        let tensor = |name: &&str| TensorSpec::new(*name, [2], Role::Weight);
        let names = [
            "norm_proj.weight",
            "ln.weight",
            "bneck.weight",
            "head.weight",
        ];
        let model = Layout::by_depth(names.iter().map(tensor).collect()).unwrap();
        let personal = |model: &Layout| {
            let chosen = choose(model, &[NORM_LAYERS.to_owned()], "personal").unwrap();
            chosen.describe()
        };
        assert_eq!(personal(&model), "bneck.weight [2], norm_proj.weight [2]");
        let said = [
            ("norm_proj.weight", false),
            ("ln.weight", true),
            ("bneck.weight", false),
        ];
        let said = said.map(|(name, norm)| (name.to_owned(), norm)).into();
        let model = model.with_norms(said);
        assert_eq!(personal(&model), "ln.weight [2]");
        // A part of the model, and the model with more attached, say the same.
        assert_eq!(
            personal(&model.select(|tensor| !tensor.name.starts_with("head"))),
            "ln.weight [2]"
        );
        let more = Layout::new(vec![TensorSpec::new("rows", [1], Role::Buffer)]).unwrap();
        let whole = Attached::new(&model, &[("more", &more)]).unwrap();
        assert_eq!(personal(whole.whole()), "ln.weight [2]");
    }

    #[test]
    fn the_last_layer_is_the_last_in_depth_whatever_its_name() {
        let model = |names: &[&str], known: bool| {
            let tensors = names.iter().flat_map(|name| {
                [("weight", Role::Weight), ("bias", Role::Bias)]
                    .map(|(part, role)| TensorSpec::new(format!("{name}.{part}"), [2], role))
            });
            if known {
                Layout::by_depth(tensors.collect())
            } else {
                Layout::new(tensors.collect())
            }
            .unwrap()
        };
        // As torchvision names the layers of ResNet-18 and AlexNet.
        for (names, last) in [
            (
                &["conv1", "bn1", "layer1.0.conv1", "layer4.1.conv2", "fc"][..],
                "fc",
            ),
            (
                &["features.0", "features.10", "classifier.6"],
                "classifier.6",
            ),
        ] {
            let chosen = |known, word: &str| {
                let chosen = select(&model(names, known), &[word.to_owned()])?;
                Ok::<_, EquipError>(chosen.describe())
            };
            let all = format!("{last}.bias [2], {last}.weight [2]");
            assert_eq!(chosen(true, LAST_LAYER).unwrap(), all);
            assert_eq!(chosen(true, INTERCEPT).unwrap(), format!("{last}.bias [2]"));
            for word in [LAST_LAYER, INTERCEPT] {
                let refused = chosen(false, word).unwrap_err().to_string();
                assert!(refused.contains("name it"), "{refused}");
                assert!(refused.contains(&format!("{last:?}")), "{refused}");
            }
            // By its name it can be chosen in any case.
            assert_eq!(chosen(false, last).unwrap(), all);
        }
    }
}
