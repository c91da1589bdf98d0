//! Settings that secure-aggregation rounds exclude: the keys of an agreement that are refused with them, why, and
//! what to choose in their place.

use methods::aggregation::Aggregation;
use methods::strategy::{Method, NORM_LAYERS, StrategyConfig, StrategyView, WeightRule};
use task::{ModelConfig, TaskConfig};

/// Terms of a federation besides privacy, as far as secure-aggregation rounds depend on them.
pub struct MaskedTask<'a> {
    /// True if entries carry the names of their authors.
    pub names_shown: bool,
    /// True if a bound on the norm of models is agreed on.
    pub max_model_norm: bool,
    /// True if a bound on weights is agreed on.
    pub max_weight: bool,
    /// True if the first model is that of an earlier federation.
    pub continues: bool,
    /// Learning rounds.
    pub rounds: u64,
    /// Task and model.
    pub task: &'a TaskConfig,
    /// Strategy of the federation.
    pub strategy: &'a StrategyConfig,
}

/// The path of a key, and what is wrong with it, in words that follow the key.
pub(crate) type KeyFault = (&'static str, String);

/// The strategies that need nothing but sums.
pub(super) const CHOOSE: &str = "choose fedavg, fedprox, fedadam, fedyogi, fedadagrad, fedper, fedrep, fedbn, ditto, \
                      apfl, pfedme or fedala, or `mode = \"clear\"`";

/// Needs of strategies that only single silos can meet.
const CROSS_EVALUATION: &str = "members measure each other's models on their own rows";
const SINGLE_MODELS: &str = "it compares the models of single silos";
const SINGLE_NUMBERS: &str = "it needs a number of every single silo, and weights that change from round \
                              to round would give single models away";
const SINGLE_COEFFICIENTS: &str = "its rule gives every single model a coefficient, and sums are opened with \
                                   coefficients that are agreed beforehand";
const MORE_VECTORS: &str =
    "silos send more than one model, and there are no agreed ranges for the rest";
const COUNTED: &str = "its correction goes by how many members contributed to each model, and strategies see one \
                       model of secure-aggregation rounds, their sum";
const FINE_SUMS: &str = "its sums need agreed steps, finer than those of masked models (`exponent = 0` in \
                         [strategy], more for columns that are not scaled)";
const SINGLE_RESULTS: &str = "its result is a model of every single silo";

/// The keys that do not go with secure-aggregation rounds.
pub(crate) fn all(of: &MaskedTask<'_>) -> Vec<KeyFault> {
    let mut faults = of_parameters(of);
    faults.extend(of_task(of));
    faults.extend(of_strategy(of.strategy));
    faults.extend(norm_statistics(of));
    faults
}

/// Those of these keys that are there, with what is wrong with them.
pub(super) fn present<const N: usize>(keys: [(&'static str, bool, &str); N]) -> Vec<KeyFault> {
    let there = keys.into_iter().filter(|(_, there, _)| *there);
    there
        .map(|(path, _, what)| (path, what.to_owned()))
        .collect()
}

fn of_parameters(of: &MaskedTask<'_>) -> Vec<KeyFault> {
    present([
        (
            "protocol.names",
            of.names_shown,
            "must be \"removed\" where rounds are masked: nobody sees a single model, and who takes part \
             is known to all members in any case",
        ),
        (
            "protocol.max-model-norm",
            of.max_model_norm,
            "cannot be kept to where rounds are masked, because nobody sees a single model: leave it out. \
             Every coordinate of a difference is clipped to 8 by its own silo",
        ),
        (
            "protocol.max-weight",
            of.max_weight,
            "is for weights by rows: leave it out, and agree on weights in `[[privacy.group]]`, of which \
             none may be above half of its group",
        ),
    ])
}

fn of_task(of: &MaskedTask<'_>) -> Option<KeyFault> {
    let scales = of.task.common_scale() && !of.continues;
    scales.then(|| {
        let what = "must be \"silo\" or \"none\" where rounds are masked: a common scale needs the ranges \
                    of all columns to be agreed on before the first round, and this program has no keys \
                    for them";
        ("task.table.standardise", what.into())
    })
}

fn of_strategy(strategy: &StrategyConfig) -> Vec<KeyFault> {
    let name = strategy.name();
    let mut faults = Vec::new();
    let sees = strategy.method.sees();
    if sees == StrategyView::Sums(WeightRule::Exact) {
        let what = "must be \"equal\" where rounds are masked: numbers of rows stay at home, and weights \
                    that change would give single models away. Weights that stay are agreed on in \
                    `[[privacy.group]]`";
        faults.push(("strategy.weight", what.into()));
    }
    if let Some(why) = more_than_sums(sees) {
        let what = format!(
            "is {name:?}, which cannot be used in secure-aggregation rounds, because {why}: {CHOOSE}"
        );
        faults.push(("strategy.name", what));
    }
    faults.extend(present([
        (
            "strategy.aggregation",
            strategy.aggregation != Aggregation::Mean,
            "must be left out where rounds are masked: such a rule compares single models, and only sums \
             are opened",
        ),
        (
            "strategy.encoding",
            !strategy.encoding.is_exact(),
            "must be \"f32\" where rounds are masked: a masked vector cannot be made smaller",
        ),
        (
            "strategy.participation",
            strategy.participation.is_some(),
            "must be left out where rounds are masked: a group is added up only if all of its members \
             take part",
        ),
        (
            "strategy.stop",
            strategy.stop.is_some(),
            "must be left out where rounds are masked: it needs the scores of single silos. Agree on \
             fewer `rounds`",
        ),
    ]));
    faults
}

/// Returns the reason for which sums are not enough for a method that sees this; `None` where they are.
fn more_than_sums(sees: StrategyView) -> Option<&'static str> {
    match sees {
        StrategyView::Sums(_) | StrategyView::Statistics => None,
        StrategyView::CrossEvaluation => Some(CROSS_EVALUATION),
        StrategyView::SingleModels => Some(SINGLE_MODELS),
        StrategyView::SingleNumbers => Some(SINGLE_NUMBERS),
        StrategyView::SingleCoefficients => Some(SINGLE_COEFFICIENTS),
        StrategyView::MoreVectors => Some(MORE_VECTORS),
        StrategyView::Counts => Some(COUNTED),
        StrategyView::FineSums => Some(FINE_SUMS),
        StrategyView::SingleResults => Some(SINGLE_RESULTS),
    }
}

/// Running statistics of normalisation layers that would be sent: they have no agreed range.
fn norm_statistics(of: &MaskedTask<'_>) -> Option<KeyFault> {
    let TaskConfig::Table(task) = of.task else {
        return None;
    };
    let ModelConfig::Network(network) = &task.model else {
        return None;
    };
    let strategy = of.strategy;
    let stay = matches!(strategy.method, Method::FedBn(_))
        || strategy.personal.iter().any(|name| name == NORM_LAYERS);
    (network.has_running_statistics() && !stay).then(|| {
        let what = "has batch normalisation, whose running statistics have no agreed range and cannot be \
                    masked: choose the strategy fedbn, `personal = [\"norm-layers\"]`, or \
                    `norm = { group = … }`";
        ("task.table.model.network", what.into())
    })
}
