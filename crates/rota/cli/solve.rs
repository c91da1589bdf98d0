//! Command line of `rota solve`, which runs the lead's algorithms on files of numbers.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use methods::merging::Alpha;
use methods::robust::Norm;
use methods::similarity;
use methods::topology;

/// Subcommands of `rota solve`.
#[derive(Debug, Subcommand)]
#[command(after_help = FILES)]
pub(crate) enum Solve {
    /// Compute coalitions that share a model, with a proof of optimality (CS-RCFL)
    Coalitions(SolveCoalitions),
    /// Merge silos into groups while the utility rises (HCCT)
    Merge(SolveMerge),
    /// Cluster silos into domains by k-means on local models (FedCG)
    Domains(SolveDomains),
    /// Compute the graph of similar silos, their centralities and a prior (TFL)
    Topology(SolveTopology),
    /// Compute the worst-case loss of a linear model near the data (CS-RCFL)
    RobustLoss(SolveRobustLoss),
}

const FILES: &str = "\
Files hold numbers separated by commas, one row a line, without a header line unless said
otherwise; `-` is standard input. Silos are numbered from 0, in the order of the rows.";

/// Options of `rota solve coalitions`.
#[derive(Debug, Args)]
#[command(after_help = COALITIONS)]
pub(crate) struct SolveCoalitions {
    /// Loss table: row = whose data, column = whose model
    #[arg(value_name = "LOSSES.csv")]
    pub(crate) losses: PathBuf,
    /// Number of coalitions, or `auto`
    #[arg(
        short = 'k',
        long,
        value_name = "K|auto",
        allow_negative_numbers = true
    )]
    pub(crate) coalitions: Number,
    /// Loss table of the same models on held-out rows
    #[arg(long, value_name = "FILE")]
    pub(crate) held_out: Option<PathBuf>,
    /// Allow fewer than K coalitions if that is better
    #[arg(long)]
    pub(crate) at_most: bool,
    /// Time limit in seconds; the best grouping so far is returned
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds, allow_negative_numbers = true)]
    pub(crate) time_limit: Duration,
    /// Seed of the random starts of the search
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

const COALITIONS: &str = "\
The objective is the sum over silos of the mean loss, on their data, of the models of their
coalition (Konti et al. 2024, eq. (11)). It is an upper bound of the losses of the coalitions'
mean models.

With losses measured on the training rows of the models, single silos always have the least
objective, so give the number K. `auto` chooses K; it needs --held-out, or cross-fitted losses
(the out-of-fold losses of the silos' local models on the diagonal). `auto` searches a grouping for
every number of coalitions, compares them by --held-out (by LOSSES without it), takes the best
number (the smallest in a tie) and proves its grouping optimal. If the time is short, large
numbers are skipped. If the time limit was not hit, the same files and seed give the same grouping
on every machine.

JSON:
  objective       minimised objective
  lower_bound     proven lower bound of the objective of every grouping into that many coalitions
  gap             difference of the two, relative to the larger
  optimal         whether the grouping is proven optimal
  time_limit_hit  whether the time limit ended the search or the proof
  number          number of coalitions
  coalitions      lists of silos
  seconds         computing time
  held_out        with --held-out or `auto`: objective on the held-out losses
  candidates      with `auto`: coalitions, objective and held_out of every number compared

Example: rota solve coalitions losses.csv --coalitions auto --held-out fresh.csv";

/// Number of coalitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Number {
    /// The number with the least held-out loss.
    Auto,
    /// A fixed number.
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
                .map_err(|_| "expected a whole number or auto"),
        }
    }
}

/// Options of `rota solve merge`.
#[derive(Debug, Args)]
#[command(after_help = MERGE)]
pub(crate) struct SolveMerge {
    /// Updates or gradients, one row per silo
    #[arg(value_name = "UPDATES.csv")]
    pub(crate) updates: PathBuf,
    /// Number of training samples of each silo, one per line
    #[arg(long, value_name = "FILE")]
    pub(crate) samples: PathBuf,
    /// Weight of the amount of data, in samples; `own`: the samples of the silo
    #[arg(long, value_name = "own|NUMBER", default_value = "own", value_parser = alpha, allow_negative_numbers = true)]
    pub(crate) alpha: Alpha,
    /// Number of groups to merge down to, even if utility falls
    #[arg(long, value_name = "D", allow_negative_numbers = true)]
    pub(crate) groups: Option<usize>,
    /// Updates of newcomers, to assign each to a group
    #[arg(long, value_name = "FILE")]
    pub(crate) admit: Option<PathBuf>,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

const MERGE: &str = "\
Every silo starts alone; the two groups with the largest benefit merge until no merge has a
positive benefit (Sun et al. 2024, Algorithm 2). The utility of a silo with update g in a group
with N samples and mean update G is -alpha/N + cos(g, G). With an alpha that is small compared
with the samples all silos stay alone; `own` uses the number of samples of each silo. The greedy
result need not be optimal.

Each newcomer is assigned independently of the other newcomers. Their samples follow those of the
silos in the file of samples; if they are missing, each newcomer counts with the silos' mean, and
the output says so.

JSON:
  groups            lists of silos
  utility           utility of every silo
  total_utility     sum of the utilities
  merges            merge: the first silos of the two groups; benefit: gain in total utility
  admitted          with --admit, per newcomer: silo (numbered after the silos), group (index in
                    groups, null if it stays alone), benefit of the best group
  newcomer_samples  with --admit: assumed samples of each newcomer, null if the file has them
Groups and utilities do not include the newcomers.

Example: rota solve merge updates.csv --samples n.csv --admit new.csv";

/// Options of `rota solve domains`.
#[derive(Debug, Args)]
#[command(after_help = DOMAINS)]
pub(crate) struct SolveDomains {
    /// Models, one row per silo; or a folder of `rota simulate --keep`
    #[arg(value_name = "MODELS")]
    pub(crate) models: PathBuf,
    /// Number of domains
    #[arg(short = 'd', long, value_name = "D", allow_negative_numbers = true)]
    pub(crate) domains: usize,
    /// Seed of the random starts
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

const DOMAINS: &str = "\
Silos whose models are near each other get one domain: k-means with ten starts on all weights. It
is the way without a classifier that FedCG is compared with (Caldarola et al. 2021, Table 4), and
gives one domain to all rows of a silo. Let every silo train alone first, and keep the models:

  rota simulate SCENARIO --strategy local --keep kept
  rota solve domains kept --domains 4

Of a folder the models of its last round are read, in the order of its silos. The line `domains`
that is printed goes into [task.table] of the scenario, and `given = true` into [strategy] of
fedcg.

JSON:
  domains  domain of every silo, numbered in the order of the first silo of each
  silos    with a folder: names of the silos
  inertia  sum of the squared distances of all models from the mean of their domain

Example: rota solve domains models.csv --domains 2";

/// Options of `rota solve topology`.
#[derive(Debug, Args)]
#[command(after_help = TOPOLOGY)]
pub(crate) struct SolveTopology {
    /// Model parameters, one row per silo
    #[arg(
        value_name = "PARAMS.csv",
        required_unless_present = "similarity",
        conflicts_with = "similarity"
    )]
    pub(crate) params: Option<PathBuf>,
    /// Symmetric matrix of similarities, instead of parameters
    #[arg(long, value_name = "FILE")]
    pub(crate) similarity: Option<PathBuf>,
    /// Similarity metric of the parameters
    #[arg(long, value_enum, default_value_t, conflicts_with = "similarity")]
    pub(crate) metric: MetricKind,
    /// Smallest similarity of neighbours, from 0 to 1
    #[arg(
        long,
        value_name = "E",
        default_value_t = 0.4,
        allow_negative_numbers = true
    )]
    pub(crate) epsilon: f64,
    /// Centrality measure
    #[arg(long, value_enum, value_name = "NAME", default_value_t)]
    pub(crate) centrality: CentralityKind,
    /// Use raw centralities, not normalised by the size of the graph
    #[arg(long)]
    pub(crate) raw: bool,
    /// Number of k-means clusters, whose means replace the silos
    #[arg(
        long,
        value_name = "C",
        conflicts_with = "similarity",
        allow_negative_numbers = true
    )]
    pub(crate) clusters: Option<usize>,
    /// With --clusters: seed of k-means
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Output file for the graph in Graphviz format
    #[arg(long, value_name = "FILE")]
    pub(crate) dot: Option<PathBuf>,
    /// Output file for a drawing of the graph
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

const TOPOLOGY: &str = "\
Similarities are normalised to [0, 1] by the smallest and the largest of all pairs; those of a
file are used unchanged if all lie in [0, 1] already, apart from the diagonal. Pairs with a
similarity of at least epsilon are neighbours. The prior of the silos is the softmax of their
centralities (Ma et al. 2024). With --clusters every silo gets an equal part of its cluster's
prior.

JSON:
  similarity  normalised similarities, 0 on the diagonal
  adjacency   1 for neighbours, otherwise 0
  centrality  centrality of every silo
  prior       prior of every silo
  components  lists of connected silos
  isolated    silos without a neighbour
  clusters    with --clusters: cluster of every silo; all fields but prior are per cluster then

Example: rota solve topology params.csv --metric cosine --svg topology.svg";

/// Similarity metric.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum MetricKind {
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

impl From<MetricKind> for similarity::SimilarityMetric {
    fn from(metric: MetricKind) -> Self {
        match metric {
            MetricKind::Dot => Self::Dot,
            MetricKind::Cosine => Self::Cosine,
            MetricKind::L1 => Self::L1,
            MetricKind::L2 => Self::L2,
        }
    }
}

/// Centrality measure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum CentralityKind {
    /// Share of shortest paths between other silos that lead through a silo
    #[default]
    Betweenness,
    /// Number of neighbours
    Degree,
    /// Reciprocal of the mean distance to other silos
    Closeness,
    /// Entry in the leading eigenvector of the adjacency matrix
    Eigenvector,
    /// Betweenness of electrical currents instead of paths
    CurrentFlowBetweenness,
    /// Closeness with electrical resistances as distances
    CurrentFlowCloseness,
}

impl From<CentralityKind> for topology::Centrality {
    fn from(centrality: CentralityKind) -> Self {
        match centrality {
            CentralityKind::Betweenness => Self::Betweenness,
            CentralityKind::Degree => Self::Degree,
            CentralityKind::Closeness => Self::Closeness,
            CentralityKind::Eigenvector => Self::Eigenvector,
            CentralityKind::CurrentFlowBetweenness => Self::CurrentFlowBetweenness,
            CentralityKind::CurrentFlowCloseness => Self::CurrentFlowCloseness,
        }
    }
}

/// Options of `rota solve robust-loss`.
#[derive(Debug, Args)]
#[command(after_help = ROBUST)]
pub(crate) struct SolveRobustLoss {
    /// Data, with a header line of column names
    #[arg(value_name = "DATA.csv")]
    pub(crate) data: PathBuf,
    /// Column to predict; all others are features
    #[arg(long, value_name = "COLUMN")]
    pub(crate) target: String,
    /// Model file: one row, one weight per feature, in the order of the columns
    #[arg(long, value_name = "FILE")]
    pub(crate) model: PathBuf,
    /// Loss function
    #[arg(long, value_enum)]
    pub(crate) loss: LossKind,
    /// Largest Wasserstein distance of the worst case from the data
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    pub(crate) radius: f64,
    /// With logistic loss: cost of changing a label, `inf` for never [default: 1]
    #[arg(long, value_name = "K|inf", allow_negative_numbers = true)]
    pub(crate) label_cost: Option<f64>,
    /// Norm that measures how far features move
    #[arg(long, value_enum, default_value_t)]
    pub(crate) norm: NormKind,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

const ROBUST: &str = "\
Computes the largest expected loss over all distributions within that distance of the data, exactly
(Konti et al. 2024, eqs. (10) to (15)). With absolute loss features and target may move; with
logistic loss features may move and labels may change. The model has no intercept. Standardise
the features, or the radius has no meaningful scale. Labels are -1 and 1, or 0 and 1.

JSON:
  loss            worst-case loss
  empirical_loss  mean loss on the data as they are
  lambda          increase of the loss per unit of radius

Example: rota solve robust-loss data.csv --target y --model theta.csv --loss logistic --radius 0.1";

/// Loss function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LossKind {
    /// Absolute error, |y - theta'x|
    Absolute,
    /// Logistic loss, log(1 + exp(-y theta'x))
    Logistic,
}

/// Norm.
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
    let seconds = text.parse().map_err(|_| "expected a number of seconds")?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

fn alpha(text: &str) -> Result<Alpha, &'static str> {
    match text {
        "own" => Ok(Alpha::Own),
        _ => text
            .parse()
            .map(Alpha::Common)
            .map_err(|_| "expected a number or own"),
    }
}
