//! Views that methods need of a round, and so the modes of privacy that they go with.

use crate::strategy::WeightRule;

/// View of a method on the silos of a round.
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
    /// Numbers of them that contributed to each model.
    Counts,
    /// Nothing but sums of statistics of silos, in agreed steps and with equal weights.
    Statistics,
    /// Sums that need finer steps than those of models.
    FineSums,
    /// A model of every single silo, its result.
    SingleResults,
}

/// Use of differentially private sums of gradients by a method, or the reason for which they do not suffice.
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
    /// Its summands have no bound for one row.
    NoBound,
    /// It sums nothing.
    NoSum,
    /// It sees single silos.
    SingleSilos,
}
