//! A task whose models are trained and measured by programs: the agreed tensors.

mod trial;

use std::collections::BTreeMap;
use std::sync::Arc;

use methods::{Layout, Params, Role, TensorSpec};
use serde::{Deserialize, Serialize};

use crate::data::DataError;
use crate::metrics::MetricName;
use crate::random::{stream, uniform};

pub use trial::{Compared, OUTPUTS, Trial, made_up};

/// A model that programs of the institutions train and measure, on rows that they read themselves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ExternalTask {
    /// The tensors of the model: all that is shared, in the order of depth, from input to output, by
    /// which the last layer is found. `rota learner describe` prints those of a program.
    pub tensors: Vec<TensorConfig>,
    /// Where the model before the first round comes from: `"proposer"`, from what the proposer's
    /// program holds, `"tensors"`, whose `initial` values say it, or `"learner"`, from the programs,
    /// which must all give the same. In an agreement the default is `"tensors"`; in a scenario it is
    /// `"proposer"` where the program gives the model that it holds, and otherwise `"tensors"`.
    #[serde(default, skip_serializing_if = "is_tensors")]
    pub start: Option<StartFrom>,
    /// With `start = "proposer"`: the hash of the model that the proposer's program held, 64
    /// hexadecimal digits. `rota federation new` writes it; in a scenario it may be missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Digest of the tensors that the programs have besides and do not train, such as those of a
    /// model that is fine-tuned: they never travel and must be the same at every member. A SHA-256 in
    /// hexadecimal digits, which `rota learner describe` prints; none by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frozen: Option<String>,
    /// A short digest of each of these tensors, by name, so that an error names the one that differs; none
    /// by default. `rota federation new` writes those of the proposer's program, where they are 300 at
    /// most.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub held: BTreeMap<String, String>,
    /// Names of the columns of the programs' rows, in the order in which the models take them; empty
    /// where they have none. `rota federation new` writes those of the proposer's program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// Labels of the classes that the programs' models tell apart, in the order of the outputs; empty where
    /// they are not known by name. `rota federation new` writes those of the proposer's program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<String>,
    /// What the proposer's program computes for a made-up batch, for comparison with the others; none
    /// by default. `rota federation new` writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<Trial>,
    /// The metric that reports compare, which every program measures; `"loss"` by default.
    #[serde(default = "loss")]
    pub metric: MetricName,
    /// Unit of the metric, for reports; none by default.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
}

/// Where the model before the first round comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StartFrom {
    /// From the program of whoever proposes the federation: of the first silo in a simulation. The
    /// others get a copy of it, whatever their own programs begin with.
    Proposer,
    /// From the `initial` values of the tensors and the federation's seed.
    Tensors,
    /// From the programs, such as weights that were trained on public data. They must all give the
    /// same bits.
    Learner,
}

/// Agreements that were made before there was another default do not say it, and keep their ids.
fn is_tensors(start: &Option<StartFrom>) -> bool {
    matches!(start, None | Some(StartFrom::Tensors))
}

/// A tensor of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TensorConfig {
    /// Its name, as in safetensors files.
    pub name: String,
    /// Its dimensions; `[]` is a single number.
    pub shape: Vec<usize>,
    /// What it is for.
    pub role: TensorRole,
    /// Its values before the first round; 0 by default. `"program"` where no number describes them and
    /// only a program has them.
    #[serde(default, skip_serializing_if = "Initial::is_zero")]
    pub initial: Initial,
    /// Whether its layer normalises, as batch normalisation does: what `personal = ["norm-layers"]` means.
    /// Where it is missing, the name of the layer tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub norm: Option<bool>,
}

/// What a tensor is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TensorRole {
    /// Trained, subject to weight decay, counted in norms and similarities.
    Weight,
    /// Trained, without weight decay.
    Bias,
    /// Averaged with the model but not trained: scalings, running statistics.
    Buffer,
}

/// The values of a tensor before the first round.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(
    untagged,
    expecting = "a number, { uniform = bound }, or \"program\" is needed"
)]
pub enum Initial {
    /// All this number.
    Constant(f32),
    /// Drawn at random.
    Drawn(Drawn),
    /// Neither: values such as those of a positional table, which only a program has.
    Held(Held),
}

/// Values that no number describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Held {
    /// A program has them.
    Program,
}

/// Values drawn at random.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Drawn {
    /// Uniform between minus and plus this, from the federation's seed.
    #[schemars(range(min = 0))]
    pub uniform: f64,
}

impl Default for Initial {
    fn default() -> Self {
        Self::Constant(0.0)
    }
}

impl Initial {
    fn is_zero(&self) -> bool {
        *self == Self::default()
    }

    fn is_finite(self) -> bool {
        match self {
            Self::Constant(value) => value.is_finite(),
            Self::Drawn(Drawn { uniform }) => uniform.is_finite() && uniform >= 0.0,
            Self::Held(Held::Program) => true,
        }
    }
}

impl From<TensorRole> for Role {
    fn from(role: TensorRole) -> Self {
        match role {
            TensorRole::Weight => Self::Weight,
            TensorRole::Bias => Self::Bias,
            TensorRole::Buffer => Self::Buffer,
        }
    }
}

impl From<Role> for TensorRole {
    fn from(role: Role) -> Self {
        match role {
            Role::Weight => Self::Weight,
            Role::Bias => Self::Bias,
            Role::Buffer => Self::Buffer,
        }
    }
}

fn loss() -> MetricName {
    MetricName::Loss
}

/// The layout of tensors that come in the order of depth.
///
/// # Errors
/// A clause: two of one name, or shapes that are too large.
pub fn layout_of(tensors: &[TensorConfig]) -> Result<Arc<Layout>, String> {
    let specs = tensors.iter().map(|tensor| {
        TensorSpec::new(
            tensor.name.clone(),
            tensor.shape.clone(),
            tensor.role.into(),
        )
    });
    let layout = Layout::by_depth(specs.collect()).map_err(|error| error.to_string())?;
    let norms = tensors.iter();
    let norms = norms.filter_map(|tensor| Some((tensor.name.clone(), tensor.norm?)));
    Ok(layout.with_norms(norms.collect()))
}

/// A layout as tensors, which start at 0.
pub fn tensors_of(layout: &Layout) -> Vec<TensorConfig> {
    let tensor = |tensor: &TensorSpec| TensorConfig {
        name: tensor.name.clone(),
        shape: tensor.shape.clone(),
        role: tensor.role.into(),
        initial: Initial::default(),
        norm: layout.norm(&tensor.name),
    };
    layout.tensors().iter().map(tensor).collect()
}

impl ExternalTask {
    /// A task with these tensors, and nothing agreed besides.
    pub fn of_tensors(tensors: Vec<TensorConfig>) -> Self {
        Self {
            tensors,
            start: None,
            model: None,
            frozen: None,
            held: BTreeMap::new(),
            columns: Vec::new(),
            classes: Vec::new(),
            trial: None,
            metric: loss(),
            unit: String::new(),
        }
    }

    /// The layout of its models.
    ///
    /// # Errors
    /// [`DataError::Config`]: tensors that cannot be laid out, none that is trained, an initial value
    /// that is not finite, or a digest of frozen tensors or a hash of the start that is none.
    pub fn layout(&self) -> Result<Arc<Layout>, DataError> {
        let wrong = |what: String| DataError::Config(format!("`external.tensors`: {what}"));
        let layout = layout_of(&self.tensors).map_err(wrong)?;
        if layout.trained().is_empty() {
            return Err(wrong("none of them is trained".into()));
        }
        let digits = |(key, text, who): (&str, &Option<String>, &str)| {
            let digit = |digit: u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
            match text {
                Some(text) if !(text.len() == 64 && text.bytes().all(digit)) => {
                    Err(DataError::Config(format!(
                        "`external.{key}` must be 64 hexadecimal digits in lower case, as {who}"
                    )))
                }
                _ => Ok(()),
            }
        };
        let (frozen, model) = (&self.frozen, &self.model);
        digits(("frozen", frozen, "`rota learner describe` prints them"))?;
        digits(("model", model, "`rota federation new` writes them"))?;
        if let (Some(_), Some(StartFrom::Tensors | StartFrom::Learner)) = (model, self.start) {
            return Err(DataError::Config(
                "`external.model` is the hash of what the proposer's program held, and goes with `start \
                 = \"proposer\"`: remove one of the two"
                    .into(),
            ));
        }
        let held = |tensor: &&TensorConfig| tensor.initial == Initial::Held(Held::Program);
        if self.start == Some(StartFrom::Tensors)
            && let Some(tensor) = self.tensors.iter().find(held)
        {
            return Err(wrong(format!(
                "nothing describes the values of {:?} (`initial = \"program\"`), so they cannot be drawn: \
                 write `start = \"proposer\"`, or an `initial` value",
                tensor.name
            )));
        }
        match self
            .tensors
            .iter()
            .find(|tensor| !tensor.initial.is_finite())
        {
            Some(tensor) => Err(wrong(format!(
                "the initial values of {:?} must be finite, and a bound at least 0",
                tensor.name
            ))),
            None => Ok(layout),
        }
    }

    /// Returns where the model before the first round comes from, as an agreement says it.
    pub fn start(&self) -> StartFrom {
        match (self.start, &self.model) {
            (Some(start), _) => start,
            (None, Some(_)) => StartFrom::Proposer,
            (None, None) => StartFrom::Tensors,
        }
    }

    /// Returns whether the model before the first round is known without a program.
    pub fn start_is_known(&self) -> bool {
        self.start() == StartFrom::Tensors
    }

    /// The initial model of a seed as the tensors describe it: the same bits on every machine. Values
    /// that only a program has are 0 in it.
    ///
    /// # Panics
    /// If `layout` is not [its layout](Self::layout).
    pub fn initial(&self, layout: &Arc<Layout>, seed: u64) -> Params {
        let mut rng = stream(seed, "initial weights");
        Params::build(layout, |values| {
            for (index, spec) in layout.tensors().iter().enumerate() {
                let tensor = self.tensors.iter().find(|tensor| tensor.name == spec.name);
                let tensor = tensor.expect("the layout was made of these tensors");
                for value in &mut values[layout.range(index)] {
                    *value = match tensor.initial {
                        Initial::Constant(value) => value,
                        Initial::Drawn(Drawn { uniform: bound }) => {
                            ((2.0 * uniform(&mut rng) - 1.0) * bound) as f32
                        }
                        // The model that the program holds takes its place.
                        Initial::Held(Held::Program) => 0.0,
                    };
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn task(tensors: &str) -> ExternalTask {
        toml::from_str(&format!("tensors = [{tensors}]")).unwrap()
    }

    #[test]
    fn initial_values_are_drawn_from_the_seed_within_their_bounds() {
        let task = task(
            "{ name = 'w', shape = [50, 2], role = 'weight', initial = { uniform = 0.5 } },
             { name = 'n', shape = [3], role = 'bias', initial = 1.0 },
             { name = 'mean', shape = [], role = 'buffer' },",
        );
        let layout = task.layout().unwrap();
        let (one, again, other) = (
            task.initial(&layout, 1),
            task.initial(&layout, 1),
            task.initial(&layout, 2),
        );
        assert_eq!(one, again);
        assert_ne!(one, other);
        assert_eq!(one.tensor("n").unwrap(), [1.0; 3]);
        assert_eq!(one.tensor("mean").unwrap(), [0.0]);
        let weights = one.tensor("w").unwrap();
        assert!(weights.iter().all(|weight| weight.abs() <= 0.5));
        assert!(weights.iter().any(|weight| weight.abs() > 0.25));
    }

    #[test]
    fn the_layers_of_a_program_come_in_the_order_it_lists_them() {
        // Names as torchvision has them, some of its ResNet-18 and all kinds of its AlexNet.
        for names in [
            &["conv1", "layer1.0.conv1", "layer4.1.conv2", "fc"][..],
            &["features.0", "features.10", "classifier.6"],
        ] {
            let tensor =
                |name: &&str| format!("{{ name = '{name}.weight', shape = [1], role = 'weight' }}");
            let tensors: Vec<_> = names.iter().map(tensor).collect();
            let layout = task(&tensors.join(", ")).layout().unwrap();
            let layers = methods::params::layers_by_depth(&layout).unwrap();
            let found: Vec<_> = layers.iter().map(|layer| &layer.name).collect();
            assert_eq!(found, names.iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn tensors_that_make_no_model_are_refused() {
        let why = |tensors| task(tensors).layout().unwrap_err().to_string();
        assert!(why("").contains("none of them is trained"));
        assert!(why("{ name = 'b', shape = [1], role = 'buffer' }").contains("is trained"));
        let twice = "{ name = 'w', shape = [1], role = 'weight' }, \
                     { name = 'w', shape = [2], role = 'weight' }";
        assert!(why(twice).contains("\"w\""));
        let nan = "{ name = 'w', shape = [1], role = 'weight', initial = nan }";
        assert!(why(nan).contains("must be finite"));
        let mut task = task("{ name = 'w', shape = [1], role = 'weight' }");
        task.frozen = Some("b5".repeat(32));
        assert!(task.layout().is_ok());
        task.frozen = Some("B5".repeat(32));
        let why = task.layout().unwrap_err().to_string();
        assert!(why.contains("64 hexadecimal digits"), "{why}");
    }

    #[test]
    fn a_start_that_nothing_describes_is_never_drawn() {
        let mut task = task(
            "{ name = 'w', shape = [2], role = 'weight' },
             { name = 'mask', shape = [2], role = 'buffer', initial = 'program' }",
        );
        // A scenario, whose program may give it.
        assert!(task.layout().is_ok());
        task.start = Some(StartFrom::Tensors);
        let why = task.layout().unwrap_err().to_string();
        assert!(why.contains("values of \"mask\""), "{why}");
        task.start = Some(StartFrom::Proposer);
        task.model = Some("b5".repeat(32));
        assert!(task.layout().is_ok());
        task.start = Some(StartFrom::Learner);
        let why = task.layout().unwrap_err().to_string();
        assert!(why.contains("goes with `start = \"proposer\"`"), "{why}");
    }

    #[test]
    fn the_text_of_an_agreement_without_a_start_stays_as_it_is() {
        let tensors = "{ name = 'w', shape = [2], role = 'weight' }";
        let plain = task(tensors);
        assert_eq!((plain.start, plain.start()), (None, StartFrom::Tensors));
        let said = ExternalTask {
            start: Some(StartFrom::Tensors),
            ..plain.clone()
        };
        let text = |task: &ExternalTask| toml::to_string(task).unwrap();
        assert_eq!(text(&plain), text(&said));
        assert!(!text(&plain).contains("start"), "{}", text(&plain));
    }
}
