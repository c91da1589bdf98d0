//! Comparisons of strategies: fair, repeated over seeds, with uncertainty.
//!
//! An [`Experiment`] names a scenario, the strategies that are compared on it, and the settings that
//! are tried for each. [`compare()`] runs it:
//!
//! 1. For every strategy and seed, each setting is trained with some of the rows held out for
//!    validation. Setting and round are chosen by the mean loss on them.
//! 2. The chosen setting is trained once more on training and validation rows together, up to the
//!    chosen round, and measured on the test rows, which nothing was chosen by.
//! 3. Every silo chooses what it would serve, on its own rows, between this model and those that it
//!    makes alone. These models are measured, too.
//! 4. The [`Comparison`] gives means and deviations over seeds, differences to references with
//!    intervals, and what was tried at what cost.
//!
//! Every run is a whole simulated federation, so that bytes are those of the protocol. Results are
//! kept one by one in a folder: an interrupted comparison continues, and parts that ran on several
//! machines are [merged](merge()). All of it has the same bits on any number of threads.

mod able;
mod advise;
mod alone;
mod best_of;
mod built_in;
mod choices;
mod comparison;
mod differences;
mod entry;
mod error;
mod experiment;
mod file;
mod grid;
mod grouping;
mod kept;
mod measured_model;
mod noised;
mod paper_table;
mod papers;
mod result;
mod row_draws;
mod rows;
mod run;
mod scope;
mod serve;
mod served;
mod spread;
mod steps;
mod store;
mod tables;
mod trial;
mod unfinished;
mod unit;
mod widen;

pub use advise::{
    Advice, AdviceCaution, AdviceVerdict, CONFIRMING, WhyNotKnown, advise, are_apart,
};
pub use built_in::BUILT_IN;
pub use choices::Choices;
pub use comparison::{
    Against, BestOf, ChosenSettings, Comparison, ComparisonRow, CostToReach, CurvePoint,
    LEAST_ROWS, MetricResult, MetricScope, ServedGain, ServedSummary, SubgroupResult,
    TriedSettings, VariantTable,
};
pub use differences::{MeanDifference, NoInterval};
pub use entry::ExperimentEntry;
pub use error::ExperimentError;
pub use experiment::{Experiment, schema};
pub use file::{RunSettings, Tune, Variant};
pub use noised::{
    AdviceRows, NeededTimes, NoiseAdvice, ReleaseAdvice, SEEDS, TIMES, WhatChanges, advise_noise,
    noise_choices,
};
pub use paper_table::{PaperData, PaperFigure, PaperTable, PaperVerdict};
pub use result::ExperimentUnit;
pub use run::{
    CompareOptions, CompareProgress, MakeRows, OnProgress, Shard, ShardError, compare, merge,
};
pub use spread::Spread;

pub use crate::statistic::{BY_CHANCE, DECIDING_SEEDS, TELLING, TELLING_SEEDS, holm};

#[cfg(test)]
mod tests;
