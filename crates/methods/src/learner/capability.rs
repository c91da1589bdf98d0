//! The names of the capabilities, and the error that names a missing one.

/// The name of a capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capability {
    /// [`Summaries`](super::Summaries).
    Summaries,
    /// [`RobustLosses`](super::RobustLosses).
    RobustLosses,
    /// [`RobustFits`](super::RobustFits).
    RobustFits,
    /// [`Work::ExactFit`](super::Work::ExactFit).
    ExactFits,
    /// [`Work::Train`](super::Work::Train) with a modified gradient.
    ModifiedGradients,
    /// [`RowAccess`](super::RowAccess).
    RowAccess,
    /// [`Outputs`](super::Outputs).
    Outputs,
    /// [`Classifiers`](super::Classifiers).
    Classifiers,
    /// [`StochasticModels`](super::StochasticModels).
    StochasticModels,
    /// [`UnitGradients`](super::UnitGradients).
    UnitGradients,
    /// [`LinearRows`](super::LinearRows).
    LinearRows,
    /// [`Answers`](super::Answers).
    Answers,
}

impl Capability {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Summaries,
        Self::RobustLosses,
        Self::RobustFits,
        Self::ExactFits,
        Self::ModifiedGradients,
        Self::RowAccess,
        Self::Outputs,
        Self::Classifiers,
        Self::StochasticModels,
        Self::UnitGradients,
        Self::LinearRows,
        Self::Answers,
    ];

    /// Returns what the learner lacks, and what to do.
    fn lack(self) -> &'static str {
        match self {
            Self::Summaries => {
                "has nothing to summarise: leave out `standardise`, or use \
                 `standardise = \"federation\"` in the task too"
            }
            Self::RobustLosses => {
                "has no robust losses: they are known for absolute loss of one number and for \
                 classes, of linear models and of perceptrons; use one of these, or radius 0"
            }
            Self::RobustFits => {
                "has no robust fits: they are known for linear models with absolute loss and for \
                 logistic models; use one of these, another strategy, or a radius that is a number"
            }
            Self::ExactFits => {
                "has no exact fits: they are known for linear models with absolute or squared loss \
                 and for logistic models; use one of these, or `fit = \"trained\"`"
            }
            Self::ModifiedGradients => {
                "cannot train with a modified gradient, or something else modifies it already: \
                 use one strategy that does so, or one that does not, such as fedavg; in Python a \
                 rota.FunctionLearner never can: derive from rota.Learner, with `gradients = True`"
            }
            Self::RowAccess => {
                "gives no access to single rows, so that none can be held out: choose a strategy \
                 that needs none, such as fedavg"
            }
            Self::Outputs => {
                "does not give the outputs of its models row by row: choose a strategy that needs \
                 none, such as fedavg"
            }
            Self::Classifiers => {
                "has no classifier of its rows, by which fedcg sorts them into domains: choose \
                 another strategy"
            }
            Self::StochasticModels => {
                "has no stochastic models, which fedsr needs: they are known for classes and \
                 perceptrons with a hidden layer; use an mlp with at least one hidden layer"
            }
            Self::UnitGradients => {
                "has no gradients of single rows, which differentially private sums need: they are known for linear and \
                 logistic models and for perceptrons; use one of these, or `mode = \"secure-aggregation\"`"
            }
            Self::LinearRows => {
                "has no rows of a linear model, which hierarchical needs: use a linear or a logistic model, \
                 or another strategy, such as fedavg"
            }
            Self::Answers => {
                "has no table of rows, from which questions are answered: write the files of the rows in \
                 [data]"
            }
        }
    }
}

/// A learner lacks a capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the learner {}", .0.lack())]
pub struct MissingCapability(pub Capability);
