//! A task whose models are trained and measured by programs: the agreed tensors.

use std::sync::Arc;

use methods::{Layout, Params, Role, TensorSpec};
use serde::{Deserialize, Serialize};

use crate::data::DataError;
use crate::metrics::MetricName;
use crate::random::{stream, uniform};

/// A model that programs of the institutions train and measure, on rows that they read themselves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ExternalTask {
    /// The tensors of the model: all that is shared. `rota learner describe` prints those of a
    /// program.
    pub tensors: Vec<TensorConfig>,
    /// Where the model before the first round comes from: `"tensors"` (the default), whose `initial`
    /// values say it, or `"learner"`, from the programs, which must all give the same.
    #[serde(default, skip_serializing_if = "is_default")]
    pub start: StartFrom,
    /// Digest of the tensors that the programs have besides and do not train, such as those of a
    /// model that is fine-tuned: they never travel and must be the same at every member. A SHA-256 in
    /// hexadecimal digits, which `rota learner describe` prints; none by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frozen: Option<String>,
    /// The metric that reports compare, which every program measures; `"loss"` by default.
    #[serde(default = "loss")]
    pub metric: MetricName,
    /// Unit of the metric, for reports; none by default.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
}

/// Where the model before the first round comes from.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum StartFrom {
    /// From the `initial` values of the tensors and the federation's seed.
    #[default]
    Tensors,
    /// From the programs, such as weights that were trained on public data. They must all give the
    /// same bits.
    Learner,
}

fn is_default(start: &StartFrom) -> bool {
    *start == StartFrom::default()
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
    /// Its values before the first round; 0 by default.
    #[serde(default, skip_serializing_if = "Initial::is_zero")]
    pub initial: Initial,
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
#[serde(untagged, expecting = "a number, or { uniform = bound }, is needed")]
pub enum Initial {
    /// All this number.
    Constant(f32),
    /// Drawn at random.
    Drawn(Drawn),
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

/// These tensors as a layout.
///
/// # Errors
/// A clause: two of one name, or shapes that are too large.
pub(super) fn layout_of(tensors: &[TensorConfig]) -> Result<Arc<Layout>, String> {
    let specs = tensors.iter().map(|tensor| {
        TensorSpec::new(
            tensor.name.clone(),
            tensor.shape.clone(),
            tensor.role.into(),
        )
    });
    Layout::new(specs.collect()).map_err(|error| error.to_string())
}

/// A layout as tensors, which start at 0.
pub(super) fn tensors_of(layout: &Layout) -> Vec<TensorConfig> {
    let tensor = |tensor: &TensorSpec| TensorConfig {
        name: tensor.name.clone(),
        shape: tensor.shape.clone(),
        role: tensor.role.into(),
        initial: Initial::default(),
    };
    layout.tensors().iter().map(tensor).collect()
}

impl ExternalTask {
    /// The layout of its models.
    ///
    /// # Errors
    /// [`DataError::Config`]: tensors that cannot be laid out, none that is trained, an initial value
    /// that is not finite, or a digest of frozen tensors that is none.
    pub fn layout(&self) -> Result<Arc<Layout>, DataError> {
        let wrong = |what: String| DataError::Config(format!("`external.tensors`: {what}"));
        let layout = layout_of(&self.tensors).map_err(wrong)?;
        if layout.trained().is_empty() {
            return Err(wrong("none of them is trained".into()));
        }
        let digit = |digit: u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
        if let Some(frozen) = &self.frozen
            && !(frozen.len() == 64 && frozen.bytes().all(digit))
        {
            return Err(DataError::Config(
                "`external.frozen` must be 64 hexadecimal digits in lower case, as `rota learner \
                 describe` prints them"
                    .into(),
            ));
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

    /// The initial model of a seed: the same bits on every machine.
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
}
