//! The model of a task's family, and the loss of its rows.

use task::ModelConfig;

use crate::data::{DataError, Target};
use crate::models::{LastLayer, Linear, Loss, Mlp, Model, NetworkModel};

/// Numbers that a model has fewer of, by a large margin: more are a mistake, or meant to do harm.
const LARGEST: u64 = 1 << 40;

/// The family for this many features and this target. Nothing of a model is made, only counted.
pub(crate) fn family(
    config: &ModelConfig,
    features: usize,
    target: &Target,
) -> Result<(Box<dyn Model>, Loss), DataError> {
    let (model, loss) = of_any_size(config, features, target)?;
    let tensors = model.tensors();
    let numbers = tensors.iter().try_fold(0u64, |sum, tensor| {
        let mut sides = tensor.shape.iter();
        let numbers = sides.try_fold(1u64, |numbers, &side| numbers.checked_mul(side as u64));
        sum.checked_add(numbers?)
    });
    match numbers {
        Some(numbers) if numbers < LARGEST => Ok((model, loss)),
        _ => Err(DataError::Config(format!(
            "`model` would have more than {LARGEST} numbers: make its layers smaller"
        ))),
    }
}

fn of_any_size(
    config: &ModelConfig,
    features: usize,
    target: &Target,
) -> Result<(Box<dyn Model>, Loss), DataError> {
    let fail = |text: &str| Err(DataError::Config(text.into()));
    match (config, target) {
        (ModelConfig::Linear { loss }, Target::Number { .. }) => {
            Ok((Box::new(Linear { features }), Loss::Regression(*loss)))
        }
        (ModelConfig::Linear { .. }, Target::Classes(_)) => fail(
            "a linear model predicts a number, but the target has classes: use model = \"logistic\" or an mlp",
        ),
        (ModelConfig::Linear { .. }, Target::Survival { .. }) => fail(
            "a linear model predicts a number, but the target is a time to an event: use model = \"cox\" or an mlp",
        ),
        (ModelConfig::Linear { .. }, _) => fail(
            "a linear model predicts one number, but the target has several: use an mlp or a network",
        ),
        (ModelConfig::Logistic, Target::Classes(classes)) if classes.len() == 2 => {
            Ok((Box::new(Linear { features }), Loss::Logistic))
        }
        (ModelConfig::Cox, Target::Survival { .. }) => {
            Ok((Box::new(Linear { features }), Loss::Cox))
        }
        (ModelConfig::Cox, _) => fail(
            "a Cox model needs a time to an event: write the target as { event = \"COLUMN\", time = \"COLUMN\" }, or use \
             another model",
        ),
        (ModelConfig::Logistic, Target::Survival { .. }) => fail(
            "a logistic model needs two classes, but the target is a time to an event: use model = \"cox\" or an mlp",
        ),
        (ModelConfig::Logistic, _) => fail(
            "a logistic model needs two classes: give `positive` or two `classes`, or use another model",
        ),
        (ModelConfig::Mlp { hidden, .. }, _) if hidden.contains(&0) => {
            fail("mlp: every hidden width must be at least 1")
        }
        (ModelConfig::Mlp { hidden, loss: None }, Target::Classes(classes)) => Ok((
            Box::new(Mlp::new(features, hidden, classes.len())),
            Loss::Softmax,
        )),
        (ModelConfig::Mlp { .. }, Target::Classes(_)) => {
            fail("mlp: `loss` is for numbers; classes are learned by cross-entropy")
        }
        (ModelConfig::Mlp { hidden, loss }, Target::Number { .. }) => {
            let loss = Loss::Regression(loss.unwrap_or_default());
            Ok((Box::new(Mlp::new(features, hidden, 1)), loss))
        }
        (ModelConfig::Mlp { hidden, loss }, Target::Numbers { count, .. }) => {
            let loss = Loss::Regression(loss.unwrap_or_default());
            Ok((Box::new(Mlp::new(features, hidden, *count)), loss))
        }
        (ModelConfig::Mlp { hidden, loss: None }, Target::Survival { .. }) => {
            Ok((Box::new(Mlp::new(features, hidden, 1)), Loss::Cox))
        }
        (ModelConfig::Mlp { .. }, Target::Survival { .. }) => fail(
            "mlp: `loss` is for numbers; a time to an event is learned by Cox's partial likelihood",
        ),
        (ModelConfig::Mlp { .. }, Target::Mask { .. }) => {
            fail("an mlp cannot predict a mask: use a network, such as the unet")
        }
        (ModelConfig::Network(config), target) => {
            let (head, loss) = match target {
                Target::Number { .. } => (LastLayer::Dense(1), None),
                Target::Numbers { count, .. } => (LastLayer::Dense(*count), None),
                Target::Classes(classes) => (LastLayer::Dense(classes.len()), Some(Loss::Softmax)),
                Target::Mask { pixels } => (
                    LastLayer::Pixels(*pixels),
                    Some(Loss::Dice { pixels: *pixels }),
                ),
                Target::Survival { .. } => (LastLayer::Dense(1), Some(Loss::Cox)),
            };
            if loss.is_some() && config.loss.is_some() {
                return fail(
                    "network: `loss` is for numbers; classes are learned by cross-entropy, masks by the Dice loss, times to \
                     an event by Cox's partial likelihood",
                );
            }
            let loss = loss.unwrap_or(Loss::Regression(config.loss.unwrap_or_default()));
            let network = NetworkModel::new(config, features, head)
                .map_err(|error| DataError::Config(format!("network: {error}")))?;
            Ok((Box::new(network), loss))
        }
    }
}
