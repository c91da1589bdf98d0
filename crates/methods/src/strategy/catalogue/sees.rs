//! What a method has to see of a round, and so which modes of privacy it goes with.

use crate::strategy::WeightRule;

/// What a method sees of the silos of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StrategyView {
    /// Nothing but sums of their models with these weights.
    Sums(WeightRule),
    /// The losses of their models on each other's rows.
    CrossEvaluation,
    /// Their single models, which it compares.
    SingleModels,
    /// A number of every single silo.
    SingleNumbers,
    /// Their single models, each with a coefficient of a rule.
    SingleCoefficients,
    /// More than one model of each.
    MoreVectors,
    /// How many of them contributed to each model.
    Counts,
    /// Sums that need finer steps than those of models.
    FineSums,
    /// A model of every single silo, its result.
    SingleResults,
}

/// Whether differentially private sums of gradients suffice for a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoisedUse {
    /// They do: it takes steps of gradient descent.
    Steps,
    /// Its term for the training of a silo is zero in the only step.
    NoTerm,
    /// Silos train layers or models of their own without noise.
    OwnTraining,
    /// It evens out numbers of steps, of which there is one.
    EvenSteps,
    /// Silos keep numbers from rounds without noise, or send more than a gradient.
    KeptNumbers,
    /// What it sums has no bound for one row.
    NoBound,
    /// It sums nothing.
    NoSum,
    /// It sees single silos.
    SingleSilos,
}
