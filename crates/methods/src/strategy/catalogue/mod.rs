//! Strategies by name: what a charter says, made into something that runs.

pub(crate) mod config;

use serde_json::Value;

use crate::aggregation::Aggregation;
use crate::learner::{Optimiser, Training};
use crate::strategy::client::fedrep::in_turn;
use crate::strategy::server::groups::cs_rcfl::CsRcfl;
use crate::strategy::server::groups::cs_rcfl_auto::AutoCsRcfl;
use crate::strategy::server::groups::local::Local;
use crate::strategy::server::means::Basis;
use crate::strategy::server::one_model::fedavg::FedAvg;
use crate::strategy::server::one_model::fedopt::Second;
use crate::strategy::wrappers::personal_layers::PersonalLayers;
use crate::strategy::wrappers::standardise::Standardised;
use crate::strategy::wrappers::strategy_wrapper::WrappedStrategy;
use crate::strategy::{
    Coalitions, LAST_LAYER, Method, NORM_LAYERS, Names, Strategy, StrategyConfig, StrategyError,
};

/// A strategy, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StrategyInfo {
    /// The name in files and on the command line.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// Where it comes from.
    pub paper: &'static str,
}

/// All strategies.
pub const STRATEGIES: &[StrategyInfo] = &[
    StrategyInfo {
        name: "fedavg",
        about: "one model for everybody, the mean of all",
        paper: "McMahan et al. 2017, Communication-Efficient Learning of Deep Networks",
    },
    StrategyInfo {
        name: "local",
        about: "everybody alone, for comparison",
        paper: "none",
    },
    StrategyInfo {
        name: "cs-rcfl",
        about: "coalitions of silos whose models do well on each other's data",
        paper: "Konti et al. 2024, Distributionally Robust Clustered Federated Learning",
    },
    StrategyInfo {
        name: "fedprox",
        about: "one model; a proximal term holds silos back from drifting away",
        paper: "Li et al. 2020, Federated Optimization in Heterogeneous Networks",
    },
    StrategyInfo {
        name: "fedadam",
        about: "one model; Adam makes the step from the mean change of a round",
        paper: "Reddi et al. 2021, Adaptive Federated Optimization",
    },
    StrategyInfo {
        name: "fedyogi",
        about: "one model; Yogi makes the step from the mean change of a round",
        paper: "Reddi et al. 2021, Adaptive Federated Optimization",
    },
    StrategyInfo {
        name: "fedadagrad",
        about: "one model; Adagrad makes the step from the mean change of a round",
        paper: "Reddi et al. 2021, Adaptive Federated Optimization",
    },
    StrategyInfo {
        name: "scaffold",
        about: "one model; control variates correct the drift of silos that differ",
        paper: "Karimireddy et al. 2020, Stochastic Controlled Averaging (option II)",
    },
    StrategyInfo {
        name: "fedper",
        about: "one model but for the last layer, which is every silo's own",
        paper: "Arivazhagan et al. 2019, Federated Learning with Personalization Layers",
    },
    StrategyInfo {
        name: "fedrep",
        about: "the same; every silo trains its last layer first, then the common ones",
        paper: "Collins et al. 2021, Exploiting Shared Representations",
    },
    StrategyInfo {
        name: "fedbn",
        about: "one model but for the normalisation layers, which are every silo's own",
        paper: "Li et al. 2021, Federated Learning on Non-IID Features via Local Batch Normalization",
    },
    StrategyInfo {
        name: "ditto",
        about: "one model, and at every silo one of its own that stays near it",
        paper: "Li et al. 2021, Fair and Robust Federated Learning Through Personalization",
    },
    StrategyInfo {
        name: "hcct",
        about: "groups of silos whose training pulls in one direction, weighed against more data",
        paper: "Sun et al. 2024, How to Collaborate: Towards Maximizing the Generalization Performance",
    },
    StrategyInfo {
        name: "hcct-e",
        about: "the same, compared by the one layer in which silos differ most",
        paper: "Sun et al. 2024, How to Collaborate: Towards Maximizing the Generalization Performance",
    },
    StrategyInfo {
        name: "hcct-p",
        about: "hcct of all but the last layer, which is every silo's own",
        paper: "Sun et al. 2024, How to Collaborate: Towards Maximizing the Generalization Performance",
    },
    StrategyInfo {
        name: "robust-local",
        about: "everybody alone, each with the linear model of least robust loss",
        paper: "Konti et al. 2024, Distributionally Robust Clustered Federated Learning",
    },
    StrategyInfo {
        name: "tfl",
        about: "one model, for who loses most, near who speaks for many in the graph of clients",
        paper: "Ma et al. 2024, Topology-aware Federated Learning",
    },
    StrategyInfo {
        name: "drfa",
        about: "one model, for who loses most; members are drawn by their weights",
        paper: "Deng et al. 2020, Distributionally Robust Federated Averaging",
    },
    StrategyInfo {
        name: "afl",
        about: "one model, for who loses most; everybody trains in every round",
        paper: "Mohri et al. 2019, Agnostic Federated Learning",
    },
    StrategyInfo {
        name: "maxfl",
        about: "one model that as many silos as possible prefer to their own",
        paper: "Cho et al. 2022, Maximizing Global Model Appeal in Federated Learning",
    },
    StrategyInfo {
        name: "fedfa",
        about: "one model; silos on whose data it is poor weigh more",
        paper: "Huang et al. 2020, Fairness and Accuracy in Horizontal Federated Learning",
    },
    StrategyInfo {
        name: "superquantile",
        about: "one model, for the silos with the largest losses",
        paper: "Pillutla et al. 2023, Federated Learning with Superquantile Aggregation for Heterogeneous Data",
    },
    StrategyInfo {
        name: "ifca",
        about: "several models; every silo trains the one that does best on its data",
        paper: "Ghosh et al. 2020, An Efficient Framework for Clustered Federated Learning",
    },
    StrategyInfo {
        name: "flsc",
        about: "the same; every silo trains the mean of the few that do best",
        paper: "Li et al. 2021, Federated Learning with Soft Clustering",
    },
    StrategyInfo {
        name: "fesem",
        about: "several models; every silo belongs to the one nearest to what it trained",
        paper: "Xie et al. 2021, Multi-Center Federated Learning",
    },
    StrategyInfo {
        name: "cfl",
        about: "one model, split in two where silos pull apart once it has settled",
        paper: "Sattler et al. 2021, Clustered Federated Learning",
    },
    StrategyInfo {
        name: "fedcollab",
        about: "coalitions by how much data silos have and how far apart these are",
        paper: "Bao et al. 2023, Optimizing the Collaboration Structure in Cross-Silo Federated Learning",
    },
    StrategyInfo {
        name: "pfedgraph",
        about: "a model for every silo, the mean of those like its own",
        paper: "Ye et al. 2023, Personalized Federated Learning with Inferred Collaboration Graphs",
    },
    StrategyInfo {
        name: "fedcg",
        about: "one model with branches for domains of rows, which learn from their neighbours",
        paper: "Caldarola et al. 2021, Cluster-driven Graph Federated Learning over Multiple Domains",
    },
    StrategyInfo {
        name: "fedsr",
        about: "one model whose representations are kept short and alike within a class",
        paper: "Nguyen et al. 2022, FedSR: A Simple and Effective Domain Generalization Method",
    },
];

/// A strategy with what can be set.
#[derive(Debug, Clone, PartialEq)]
pub struct StrategyOptions {
    /// The strategy.
    pub info: StrategyInfo,
    /// Its own options by name, with their defaults as in a file.
    pub options: Vec<(String, Value)>,
    /// Whether a charter has to show names for it.
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
    };
    let describe = |&info: &StrategyInfo| {
        let method = Method::named(info.name).expect("every strategy of the list is a method");
        let options = serde_json::to_value(&method).expect("options are numbers and words");
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

/// The strategy that a configuration describes, for a federation of so many members.
///
/// # Errors
/// [`StrategyError`] if an option is out of its range, or they are too few for it.
pub fn build(config: &StrategyConfig, members: usize) -> Result<Box<dyn Strategy>, StrategyError> {
    check(&config.training)?;
    let training = config.training.clone();
    let rule = aggregation(config)?;
    let basis = Basis {
        training: training.clone(),
        rule: rule.clone(),
    };
    let mut personal = config.personal.clone();
    let mut strategy: Box<dyn Strategy> = match &config.method {
        Method::FedAvg { weight } => Box::new(FedAvg::on(basis, *weight)),
        Method::Local {} => Box::new(Local { training }),
        &Method::CsRcfl {
            coalitions: Coalitions::Number(coalitions),
            freeze,
            ..
        } => {
            at_least_one("coalitions", coalitions as u64)?;
            if coalitions > members {
                return Err(StrategyError::TooManyCoalitions {
                    coalitions,
                    members,
                });
            }
            Box::new(CsRcfl {
                training,
                coalitions,
                freeze,
                rule,
            })
        }
        &Method::CsRcfl {
            coalitions: Coalitions::Found(_),
            freeze,
            folds,
        } => {
            require(folds >= 2, "folds", "at least 2", folds)?;
            Box::new(AutoCsRcfl {
                training,
                folds,
                freeze,
                rule,
            })
        }
        Method::FedProx(options) => options.build(basis)?,
        Method::FedAdam(options) => options.build("fedadam", Second::Adam, basis)?,
        Method::FedYogi(options) => options.build("fedyogi", Second::Yogi, basis)?,
        Method::FedAdagrad(options) => options.build("fedadagrad", Second::Adagrad, basis)?,
        Method::Scaffold(options) => options.build(training, members)?,
        Method::FedPer { weight } => {
            personal.push(LAST_LAYER.into());
            Box::new(FedAvg::on(basis, *weight))
        }
        Method::FedRep(options) => {
            personal.push(LAST_LAYER.into());
            options.build(basis)?
        }
        Method::FedBn { weight } => {
            personal.push(NORM_LAYERS.into());
            Box::new(FedAvg::on(basis, *weight))
        }
        Method::Ditto(options) => options.build(basis)?,
        Method::Hcct(options) => options.build("hcct", basis)?,
        Method::HcctE(options) => options.build(basis)?,
        Method::HcctP(options) => {
            personal.push(LAST_LAYER.into());
            options.build("hcct-p", basis)?
        }
        Method::RobustLocal(options) => options.build(training)?,
        Method::Tfl(options) => options.build(training, members)?,
        Method::Drfa(options) => options.build(training, members)?,
        Method::Afl(options) => options.build(training, members)?,
        Method::MaxFl(options) => options.build(training)?,
        Method::FedFa(options) => options.build(training)?,
        Method::Superquantile(options) => options.build(training)?,
        Method::Ifca(options) => options.build(basis)?,
        Method::Flsc(options) => options.build(basis)?,
        Method::Fesem(options) => options.build(basis)?,
        Method::Cfl(options) => options.build(basis)?,
        Method::FedCollab(options) => options.build(basis)?,
        Method::PFedGraph(options) => options.build(training)?,
        Method::FedCg(options) => options.build(basis)?,
        Method::FedSr(options) => options.build(basis)?,
    };
    if !personal.is_empty() {
        strategy = Box::new(WrappedStrategy {
            name: config.name(),
            inner: strategy,
            by: PersonalLayers(personal),
        });
    }
    if let Method::FedRep(options) = &config.method {
        strategy = in_turn(strategy, options.head_epochs);
    }
    if let Method::FedSr(options) = &config.method {
        strategy = options.around(strategy);
    }
    if config.standardise {
        strategy = Box::new(Standardised::new(strategy));
    }
    Ok(strategy)
}

/// What takes the place of the mean, where the method has coalition means.
fn aggregation(config: &StrategyConfig) -> Result<Aggregation, StrategyError> {
    let rule = &config.aggregation;
    if *rule == Aggregation::Mean {
        return Ok(Aggregation::Mean);
    }
    let combines = matches!(
        config.method,
        Method::FedAvg { .. }
            | Method::CsRcfl { .. }
            | Method::FedProx(_)
            | Method::FedAdam(_)
            | Method::FedYogi(_)
            | Method::FedAdagrad(_)
            | Method::FedPer { .. }
            | Method::FedRep(_)
            | Method::FedBn { .. }
            | Method::Ditto(_)
            | Method::Hcct(_)
            | Method::HcctE(_)
            | Method::HcctP(_)
            | Method::Ifca(_)
            | Method::Flsc(_)
            | Method::Fesem(_)
            | Method::Cfl(_)
            | Method::FedCollab(_)
            | Method::FedCg(_)
            | Method::FedSr(_)
    );
    require(
        combines && *rule != Aggregation::TrustWeighted,
        "aggregation",
        "left out here: this strategy makes its models by a rule of its own, and trust-weighted \
         needs a model that everybody trusts",
        rule.name(),
    )?;
    rule.validate()?;
    Ok(rule.clone())
}

/// Whether a training can be carried out.
fn check(training: &Training) -> Result<(), StrategyError> {
    let Training {
        epochs,
        batch: _,
        optimiser,
    } = training;
    at_least_one("training.epochs", (*epochs).into())?;
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

pub(crate) fn at_least_one(option: &'static str, value: u64) -> Result<(), StrategyError> {
    require(value >= 1, option, "at least 1", value)
}

pub(crate) fn positive(option: &'static str, value: f64) -> Result<(), StrategyError> {
    let holds = value.is_finite() && value > 0.0;
    require(holds, option, "a number above 0", value)
}

pub(crate) fn not_negative(option: &'static str, value: f64) -> Result<(), StrategyError> {
    let holds = value.is_finite() && value >= 0.0;
    require(holds, option, "a number of at least 0", value)
}

pub(crate) fn fraction(option: &'static str, value: f64) -> Result<(), StrategyError> {
    let holds = (0.0..1.0).contains(&value);
    require(holds, option, "at least 0 and below 1", value)
}

pub(crate) fn require(
    holds: bool,
    option: &'static str,
    allowed: &'static str,
    got: impl ToString,
) -> Result<(), StrategyError> {
    if holds {
        return Ok(());
    }
    Err(StrategyError::Option {
        option,
        allowed,
        got: got.to_string(),
    })
}

#[cfg(test)]
mod tests;
