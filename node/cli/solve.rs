//! The command line of the lead's mathematics on files of numbers.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use rota::methods::merging::Alpha;
use rota::methods::robust::Norm;
use rota::methods::similarity;
use rota::methods::topology;

/// What `rota solve` does.
#[derive(Debug, Subcommand)]
#[command(after_help = FILES)]
pub(crate) enum Solve {
    /// Divide silos into coalitions that share a model (CS-RCFL), and prove that none is better
    Coalitions(Coalitions),
    /// Merge silos into groups while the utility rises (HCCT)
    Merge(Merge),
    /// Who is alike to whom, and who stands for many others (TFL)
    Topology(Topology),
    /// The loss of a linear model in the worst case near the data (CS-RCFL)
    RobustLoss(RobustLoss),
}

const FILES: &str = "\
Files: numbers separated by commas, one row a line, no header line unless said otherwise; `-` is \
standard input. Silos are numbered from 0, in the order of the rows.
Exit codes: 0 success, 1 failure, 2 wrong usage or a file that says something else.";

/// Options of `rota solve coalitions`.
#[derive(Debug, Args)]
#[command(after_help = COALITIONS)]
pub(crate) struct Coalitions {
    /// The loss of every silo's model (column) on every silo's data (row): a square file
    pub(crate) losses: PathBuf,
    /// How many coalitions, or `auto`: the number that loses least on held-out data
    #[arg(
        short = 'k',
        long,
        value_name = "K|auto",
        allow_negative_numbers = true
    )]
    pub(crate) coalitions: Number,
    /// The same losses on data that formed neither models nor coalitions: what `auto` compares
    #[arg(long, value_name = "FILE")]
    pub(crate) held_out: Option<PathBuf>,
    /// Form K coalitions or fewer, whatever is best
    #[arg(long)]
    pub(crate) at_most: bool,
    /// Stop proving after so many seconds, and say how good the best division is at least
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds, allow_negative_numbers = true)]
    pub(crate) time_limit: Duration,
    /// Draw the starts of the search from this number
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Print one JSON document in place of the text
    #[arg(long)]
    pub(crate) json: bool,
}

const COALITIONS: &str = "\
Minimises the sum over silos of the mean loss, on their data, of the models of their coalition \
(Konti et al. 2024, eq. (11)): an upper bound of what the coalitions' mean models will lose.

Losses that were measured on the very rows the models were trained on say that everybody is best \
alone, so K has to be given, or `auto` needs --held-out or losses that are cross-fitted (on the \
diagonal the out-of-fold loss of a silo's own models). `auto` forms the best division for every \
number quickly, compares their losses by --held-out (without it, by LOSSES itself), and proves \
the division of the best number, of equals the fewest.

The time limit is for the proof. An answer within it does not depend on the machine.

JSON: objective, lower_bound (no division is below it), gap (relative), optimal, time_limit_hit, \
number, coalitions (lists of silos), seconds; with --held-out or `auto` held_out; with `auto` \
candidates (coalitions, objective, held_out).";

/// How many coalitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Number {
    /// As many as lose least on held-out data.
    Auto,
    /// So many.
    Of(usize),
}

impl FromStr for Number {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(Self::Auto),
            _ => text
                .parse()
                .map(Self::Of)
                .map_err(|_| "a whole number is expected, or auto"),
        }
    }
}

/// Options of `rota solve merge`.
#[derive(Debug, Args)]
#[command(after_help = MERGE)]
pub(crate) struct Merge {
    /// The update (or gradient) of every silo, one row each
    pub(crate) updates: PathBuf,
    /// How many samples every silo trained on, one number a line
    #[arg(long, value_name = "FILE")]
    pub(crate) samples: PathBuf,
    /// How much the volume of data counts, in samples: one number for all, or every silo's own
    #[arg(long, value_name = "own|NUMBER", default_value = "own", value_parser = alpha, allow_negative_numbers = true)]
    pub(crate) alpha: Alpha,
    /// Merge until so many groups are left, even where that loses
    #[arg(long, value_name = "D", allow_negative_numbers = true)]
    pub(crate) groups: Option<usize>,
    /// The updates of newcomers, one row each: find each of them the group that it would join
    #[arg(long, value_name = "FILE")]
    pub(crate) admit: Option<PathBuf>,
    /// Print one JSON document in place of the text
    #[arg(long)]
    pub(crate) json: bool,
}

const MERGE: &str = "\
Everybody starts alone; the two groups that gain most merge, until no merge gains (Sun et al. \
2024, Algorithm 2). A silo's utility in a group is -alpha/N + cos(g, G), with the group's samples \
N, the silo's update g and the group's mean update G. A small alpha beside the samples leaves \
everybody alone; `own` takes every silo's own number of samples. The result need not be the best \
there is.

Newcomers are judged one by one against the groups that were found, as if the others had not come. \
Their samples stand in the samples file after those of the silos; where they do not, each counts \
with the mean, and the answer says so.

JSON: groups (lists of silos), utility (per silo), total_utility, merges (merge: the two groups, \
each by its first silo; benefit); with --admit admitted (silo: numbered on after the silos; \
group: its place in groups, null for nobody; benefit: of the best group, whatever it is) and \
newcomer_samples (assumed for each, null where the file has them). Groups and utilities are those \
before anybody is admitted.";

/// Options of `rota solve topology`.
#[derive(Debug, Args)]
#[command(after_help = TOPOLOGY)]
pub(crate) struct Topology {
    /// The model parameters of every silo, one row each
    #[arg(required_unless_present = "similarity", conflicts_with = "similarity")]
    pub(crate) params: Option<PathBuf>,
    /// In place of parameters: how alike silos are, a square and symmetric file. Taken as it is
    /// where everything off the diagonal lies in [0, 1], else brought there by its least and
    /// largest value
    #[arg(long, value_name = "FILE")]
    pub(crate) similarity: Option<PathBuf>,
    /// What makes two silos alike
    #[arg(long, value_enum, default_value_t, conflicts_with = "similarity")]
    pub(crate) metric: Metric,
    /// From which similarity two silos are neighbours, from 0 to 1
    #[arg(
        long,
        value_name = "E",
        default_value_t = 0.4,
        allow_negative_numbers = true
    )]
    pub(crate) epsilon: f64,
    /// How central a silo is
    #[arg(long, value_enum, value_name = "NAME", default_value_t)]
    pub(crate) centrality: Centrality,
    /// Take centralities as they are counted, not normalised by the size of the graph
    #[arg(long)]
    pub(crate) raw: bool,
    /// First cluster the silos (k-means), and learn the topology of the clusters' means
    #[arg(
        long,
        value_name = "C",
        conflicts_with = "similarity",
        allow_negative_numbers = true
    )]
    pub(crate) clusters: Option<usize>,
    /// With --clusters: draw the starts of k-means from this number
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Write the graph for Graphviz
    #[arg(long, value_name = "FILE")]
    pub(crate) dot: Option<PathBuf>,
    /// Draw the graph
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Print one JSON document in place of the text
    #[arg(long)]
    pub(crate) json: bool,
}

const TOPOLOGY: &str = "\
Similarities of all pairs are brought to [0, 1] by the least and the largest of them; those of at \
least epsilon are edges; the prior of a silo is the softmax of its centrality (Ma et al. 2024). \
With --clusters every silo gets an equal part of its cluster's prior.

JSON: similarity (normalised, the diagonal 0), adjacency (0 and 1), centrality, prior (per silo), \
components (lists of silos), isolated (silos without a neighbour); with --clusters clusters (the \
cluster of every silo), and all but prior is about the clusters.";

/// What makes two silos alike.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Metric {
    /// Inner product
    #[default]
    Dot,
    /// Inner product of unit vectors
    Cosine,
    /// Sum of absolute differences, negated
    L1,
    /// Euclidean distance, negated
    L2,
}

impl From<Metric> for similarity::Metric {
    fn from(metric: Metric) -> Self {
        match metric {
            Metric::Dot => Self::Dot,
            Metric::Cosine => Self::Cosine,
            Metric::L1 => Self::L1,
            Metric::L2 => Self::L2,
        }
    }
}

/// How central a silo is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Centrality {
    /// Share of shortest paths between others that lead through it
    #[default]
    Betweenness,
    /// Number of neighbours
    Degree,
    /// How near others are
    Closeness,
    /// Its entry in the leading eigenvector of the adjacency matrix
    Eigenvector,
    /// As betweenness, with paths replaced by electrical current
    CurrentFlowBetweenness,
    /// As closeness, with distances replaced by resistances
    CurrentFlowCloseness,
}

impl From<Centrality> for topology::Centrality {
    fn from(centrality: Centrality) -> Self {
        match centrality {
            Centrality::Betweenness => Self::Betweenness,
            Centrality::Degree => Self::Degree,
            Centrality::Closeness => Self::Closeness,
            Centrality::Eigenvector => Self::Eigenvector,
            Centrality::CurrentFlowBetweenness => Self::CurrentFlowBetweenness,
            Centrality::CurrentFlowCloseness => Self::CurrentFlowCloseness,
        }
    }
}

/// Options of `rota solve robust-loss`.
#[derive(Debug, Args)]
#[command(after_help = ROBUST)]
pub(crate) struct RobustLoss {
    /// The data, with a line of column names first
    pub(crate) data: PathBuf,
    /// The column to be predicted; all others are features
    #[arg(long, value_name = "COLUMN")]
    pub(crate) target: String,
    /// The model: one row, one number for every feature, in the order of the columns
    #[arg(long, value_name = "FILE")]
    pub(crate) model: PathBuf,
    /// How a prediction is judged
    #[arg(long, value_enum)]
    pub(crate) loss: Loss,
    /// How far the data may be from what the model will meet (a Wasserstein distance)
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    pub(crate) radius: f64,
    /// With logistic loss: what changing a label costs of the radius, `inf` for labels that are
    /// certain [default: 1]
    #[arg(long, value_name = "K|inf", allow_negative_numbers = true)]
    pub(crate) label_cost: Option<f64>,
    /// The norm that measures how far rows move
    #[arg(long, value_enum, default_value_t)]
    pub(crate) norm: NormKind,
    /// Print one JSON document in place of the text
    #[arg(long)]
    pub(crate) json: bool,
}

const ROBUST: &str = "\
The largest expected loss over all distributions within that distance of the data (Konti et al. \
2024, eqs. (10) to (15)), exactly. With absolute loss features and target may move, with logistic \
loss features may move and labels change. The model has no intercept. Standardise the features, \
or a radius has no scale. Labels are -1 and 1, or 0 and 1.

JSON: loss, empirical_loss (at radius 0), lambda (what the next bit of radius costs).";

/// How a prediction is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Loss {
    /// |y − θᵀx|
    Absolute,
    /// log(1 + exp(−yθᵀx))
    Logistic,
}

/// A norm by its number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum NormKind {
    /// Sum of absolute values
    #[value(name = "1")]
    L1,
    /// Euclidean
    #[default]
    #[value(name = "2")]
    L2,
    /// Largest absolute value
    #[value(name = "inf")]
    Linf,
}

impl From<NormKind> for Norm {
    fn from(kind: NormKind) -> Self {
        match kind {
            NormKind::L1 => Self::L1,
            NormKind::L2 => Self::L2,
            NormKind::Linf => Self::Linf,
        }
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text
        .parse()
        .map_err(|_| "a number of seconds is expected")?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

fn alpha(text: &str) -> Result<Alpha, &'static str> {
    match text {
        "own" => Ok(Alpha::Own),
        _ => text
            .parse()
            .map(Alpha::Common)
            .map_err(|_| "a number is expected, or own"),
    }
}
