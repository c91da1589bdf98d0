//! The catalogue of strategies: their names and options, and how a configuration becomes a strategy.

pub(crate) mod config;
pub(crate) mod methods;
mod remarks;
pub(crate) mod sees;

use serde_json::Value;

use self::methods::{Method, STRATEGIES};
use super::options::{
    MethodSetting, at_least_one, fraction, not_negative, positive, require, share,
};
use super::wrappers::decay::Decaying;
use super::wrappers::participation::Sampled;
use super::wrappers::personal_layers::PersonalLayers;
use super::wrappers::standardise::Standardised;
use super::wrappers::stopping::Stopping;
use super::wrappers::strategy_wrapper::WrappedStrategy;
use super::wrappers::trained_layers::TrainedLayers;
use super::{Names, Strategy, StrategyConfig, StrategyError};
use crate::aggregation::Aggregation;
use crate::learner::{Decay, Optimiser, Training};

/// A strategy, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StrategyInfo {
    /// The name in files and on the command line.
    pub name: &'static str,
    /// What the strategy does, in one line.
    pub about: &'static str,
    /// The paper that the strategy comes from.
    pub paper: &'static str,
}

/// A strategy with its options.
#[derive(Debug, Clone, PartialEq)]
pub struct StrategyOptions {
    /// The strategy.
    pub info: StrategyInfo,
    /// Options of the strategy by name, with their defaults as in a file.
    pub options: Vec<(String, Value)>,
    /// Whether a parameter set has to show names for it.
    pub names: Names,
}

/// All strategies with their options.
pub fn described() -> Vec<StrategyOptions> {
    let training = Training {
        epochs: 1,
        batch: 0,
        optimiser: Optimiser::Sgd {
            rate: 0.1,
            momentum: 0.0,
            weight_decay: 0.0,
        },
        decay: None,
    };
    let describe = |&info: &StrategyInfo| {
        let method = Method::named(info.name).expect("every strategy of the list is a method");
        let options = serde_json::to_value(&method).expect("options are numbers and strings");
        let options = options.as_object().into_iter().flatten();
        let options = options.filter(|(key, _)| *key != "name");
        let config = StrategyConfig::new(method.clone(), training.clone());
        let strategy = build(&config, usize::MAX).expect("defaults are in their ranges");
        StrategyOptions {
            info,
            options: options
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
            names: strategy.names(),
        }
    };
    STRATEGIES.iter().map(describe).collect()
}

/// The strategy that a configuration describes, for a federation of `members` members.
///
/// # Errors
/// [`StrategyError`] if an option is out of its range, or there are too few members for it.
pub fn build(config: &StrategyConfig, members: usize) -> Result<Box<dyn Strategy>, StrategyError> {
    check_training(&config.training)?;
    require(
        config.encoding.is_valid(),
        "encoding.topk",
        "above 0 and at most 0.5",
        format!("{:?}", config.encoding),
    )?;
    require(
        config.encoding.is_exact() || !matches!(config.method, Method::Hierarchical(_)),
        "encoding",
        "\"f32\" here: the sums of this strategy need all their digits",
        format!("{:?}", config.encoding),
    )?;
    let built = config.method.build(MethodSetting {
        training: config.training.clone(),
        rule: aggregation(config)?,
        members,
    })?;
    let mut personal = config.personal.clone();
    personal.extend(built.personal.map(String::from));
    let mut strategy = built.strategy;
    if config.training.decay.is_some() {
        strategy = Box::new(WrappedStrategy {
            name: config.name(),
            inner: strategy.into(),
            by: Decaying,
        });
    }
    if !personal.is_empty() {
        strategy = Box::new(WrappedStrategy {
            name: config.name(),
            inner: strategy.into(),
            by: PersonalLayers(personal),
        });
    }
    if let Some(outer) = built.outer {
        strategy = outer(strategy);
    }
    if let Some(stop) = config.stop {
        at_least_one("stop.patience", stop.patience)?;
        not_negative("stop.min-delta", stop.gain)?;
        strategy = Box::new(WrappedStrategy {
            name: config.name(),
            inner: strategy.into(),
            by: Stopping(stop),
        });
    }
    // Around all that needs the whole model.
    if !config.trained.is_empty() {
        strategy = Box::new(WrappedStrategy {
            name: config.name(),
            inner: strategy.into(),
            by: TrainedLayers(config.trained.clone()),
        });
    }
    if let Some(participation) = config.participation {
        let drawn = participation.of(members)?;
        require(
            !strategy.draws_members(),
            "participation",
            "left out here: this strategy draws the members of a round by weights of its own",
            drawn,
        )?;
        require(
            !matches!(config.method, Method::Hierarchical(_)),
            "participation",
            "left out here: the estimates of this strategy rest on sums over all members",
            drawn,
        )?;
        strategy = Box::new(WrappedStrategy {
            name: config.name(),
            inner: strategy.into(),
            by: Sampled { members, drawn },
        });
    }
    if config.standardise {
        strategy = Box::new(Standardised::new(strategy));
    } else if config.scale_agreed {
        strategy = Box::new(Standardised::agreed(strategy));
    }
    Ok(strategy)
}

/// The rule that takes the place of the mean, where the method takes one.
fn aggregation(config: &StrategyConfig) -> Result<Aggregation, StrategyError> {
    let rule = &config.aggregation;
    if *rule == Aggregation::Mean {
        return Ok(Aggregation::Mean);
    }
    require(
        config.method.takes_rule() && *rule != Aggregation::TrustWeighted,
        "aggregation",
        "left out here: this strategy makes its models by a rule of its own, and trust-weighted \
         needs a model that all members trust",
        rule.name(),
    )?;
    rule.validate()?;
    Ok(rule.clone())
}

/// Returns whether a training can be carried out.
fn check_training(training: &Training) -> Result<(), StrategyError> {
    let Training {
        epochs,
        batch: _,
        optimiser,
        decay: falling,
    } = training;
    at_least_one("training.epochs", (*epochs).into())?;
    match *falling {
        None => {}
        Some(Decay::Step { every, factor }) => {
            at_least_one("training.decay.step.every", every)?;
            positive("training.decay.step.factor", factor)?;
            share("training.decay.step.factor", factor)?;
        }
        Some(Decay::Exponential(factor)) => {
            positive("training.decay.exponential", factor)?;
            share("training.decay.exponential", factor)?;
        }
        Some(Decay::Cosine { least, rounds }) => {
            fraction("training.decay.cosine.least", least)?;
            require(
                rounds > 0,
                "training.decay.cosine",
                "used where the number of rounds is known, at least 1 that trains",
                rounds,
            )?;
        }
    }
    let (rate, momentum, decay) = match *optimiser {
        Optimiser::Sgd {
            rate,
            momentum,
            weight_decay,
        } => (rate, momentum, weight_decay),
        Optimiser::Adam { rate, weight_decay } => (rate, 0.0, weight_decay),
    };
    positive("training.optimiser.rate", rate)?;
    fraction("training.optimiser.momentum", momentum)?;
    not_negative("training.optimiser.weight-decay", decay)
}

#[cfg(test)]
mod tests;
