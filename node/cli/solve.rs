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
    /// Divide silos into coalitions that share a model, provenly the best (CS-RCFL)
    Coalitions(Coalitions),
    /// Merge silos into groups while the utility rises (HCCT)
    Merge(Merge),
    /// Find who is like whom, and who stands for many others (TFL)
    Topology(Topology),
    /// Compute the loss of a linear model in the worst case near the data (CS-RCFL)
    RobustLoss(RobustLoss),
}

const FILES: &str = "\
Files hold numbers separated by commas, one row a line, without a header line unless said
otherwise; `-` is standard input. Silos are numbered from 0, in the order of the rows.

Exit codes: 0 success, 1 failure, 2 wrong usage or a file that does not hold what it should.";

/// Options of `rota solve coalitions`.
#[derive(Debug, Args)]
#[command(after_help = COALITIONS)]
pub(crate) struct Coalitions {
    /// Losses: one row per silo whose data, one column per silo whose model
    #[arg(value_name = "LOSSES.csv")]
    pub(crate) losses: PathBuf,
    /// How many coalitions, or `auto`
    #[arg(
        short = 'k',
        long,
        value_name = "K|auto",
        allow_negative_numbers = true
    )]
    pub(crate) coalitions: Number,
    /// Losses of the same models on rows that formed nothing
    #[arg(long, value_name = "FILE")]
    pub(crate) held_out: Option<PathBuf>,
    /// K coalitions or fewer, whatever is best
    #[arg(long)]
    pub(crate) at_most: bool,
    /// Stop after so many seconds, with what is known
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
What is made least is the sum over silos of the mean loss, on their data, of the models of their
coalition (Konti et al. 2024, eq. (11)): an upper bound of what the coalitions' mean models lose.

Losses measured on the very rows that trained the models say that everybody is best alone, so the
number K has to be given; or `auto`, and --held-out or losses that are cross-fitted (on the
diagonal the out-of-fold loss of a silo's own models). `auto` forms a good division for every
number, compares them by --held-out (without it by LOSSES itself), takes the best number, of
equals the smallest, and proves its division. Numbers for which the time is too short are left
out, the larger ones first. Where the time limit was not hit, the same files and seed give the
same division on every machine.

JSON:
  objective       what was minimised
  lower_bound     no division into so many is below it
  gap             between the two, as a part of the larger
  optimal         whether it is proven that none is better
  time_limit_hit  whether more time might have found or proven more
  number          how many coalitions
  coalitions      lists of silos
  seconds         that it took
  held_out        with --held-out or `auto`: what the division loses there
  candidates      with `auto`: coalitions, objective and held_out of every number compared

Example: rota solve coalitions losses.csv --coalitions auto --held-out fresh.csv";

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
    /// Updates (or gradients), one row per silo
    #[arg(value_name = "UPDATES.csv")]
    pub(crate) updates: PathBuf,
    /// How many samples each silo trained on, one number a line
    #[arg(long, value_name = "FILE")]
    pub(crate) samples: PathBuf,
    /// How much the volume of data counts, in samples
    #[arg(long, value_name = "own|NUMBER", default_value = "own", value_parser = alpha, allow_negative_numbers = true)]
    pub(crate) alpha: Alpha,
    /// Merge until so many groups are left, also at a loss
    #[arg(long, value_name = "D", allow_negative_numbers = true)]
    pub(crate) groups: Option<usize>,
    /// Updates of newcomers: find each its group
    #[arg(long, value_name = "FILE")]
    pub(crate) admit: Option<PathBuf>,
    /// Print one JSON document in place of the text
    #[arg(long)]
    pub(crate) json: bool,
}

const MERGE: &str = "\
Everybody starts alone; the two groups that gain most merge, until no merge gains (Sun et al.
2024, Algorithm 2). The utility of a silo with update g in a group with N samples and mean update
G is -alpha/N + cos(g, G). With an alpha that is small beside the samples everybody stays alone;
`own` takes for every silo the number of its samples. The result need not be the best there is.

Newcomers are judged one by one against the groups that were found, as if the others had not
come. Their samples stand in the file of samples after those of the silos; where they do not,
each newcomer counts with the silos' mean, and the answer says so.

JSON:
  groups            lists of silos
  utility           of every silo
  total_utility     their sum
  merges            merge: two groups by their first silos; benefit: what was gained
  admitted          with --admit, for every newcomer: silo, its number after those of the silos;
                    group, its place in groups, null for none; benefit, that of the best group
  newcomer_samples  with --admit: what each newcomer counts with, null where the file says it
Groups and utilities are those before anybody is admitted.

Example: rota solve merge updates.csv --samples n.csv --admit new.csv";

/// Options of `rota solve topology`.
#[derive(Debug, Args)]
#[command(after_help = TOPOLOGY)]
pub(crate) struct Topology {
    /// Model parameters, one row per silo
    #[arg(
        value_name = "PARAMS.csv",
        required_unless_present = "similarity",
        conflicts_with = "similarity"
    )]
    pub(crate) params: Option<PathBuf>,
    /// In place of parameters: how alike silos are, square and symmetric
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
    /// Centralities as they are counted, not normalised by the size of the graph
    #[arg(long)]
    pub(crate) raw: bool,
    /// First cluster the silos by k-means; the topology is that of the clusters' means
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
The similarities of all pairs are brought to [0, 1] by the least and the largest of them; those of
a file that all lie there, off the diagonal, are taken as they are. Pairs of at least epsilon are
neighbours. The prior of a silo is the softmax of how central it is (Ma et al. 2024). With
--clusters every silo gets an equal part of its cluster's prior.

JSON:
  similarity  normalised, 0 on the diagonal
  adjacency   1 for neighbours, else 0
  centrality  of every silo
  prior       of every silo
  components  lists of silos that are connected
  isolated    silos without a neighbour
  clusters    with --clusters: that of every silo; all others but prior are about clusters then

Example: rota solve topology params.csv --metric cosine --svg topology.svg";

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
    /// Data, with a header line of column names
    #[arg(value_name = "DATA.csv")]
    pub(crate) data: PathBuf,
    /// The column to be predicted; all others are features
    #[arg(long, value_name = "COLUMN")]
    pub(crate) target: String,
    /// The model: one row, one number per feature, in the order of the columns
    #[arg(long, value_name = "FILE")]
    pub(crate) model: PathBuf,
    /// How a prediction is judged
    #[arg(long, value_enum)]
    pub(crate) loss: Loss,
    /// How far from the data the worst case may be (a Wasserstein distance)
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    pub(crate) radius: f64,
    /// With logistic loss: the distance of a changed label, `inf` for never [default: 1]
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
The largest expected loss over all distributions within that distance of the data, exactly (Konti
et al. 2024, eqs. (10) to (15)). With absolute loss features and target may move; with logistic
loss features may move and labels may change. The model has no intercept. Standardise the
features, or a radius has no scale. Labels are -1 and 1, or 0 and 1.

JSON:
  loss            in the worst case
  empirical_loss  on the data as they are
  lambda          what the next bit of radius costs

Example: rota solve robust-loss data.csv --target y --model theta.csv --loss logistic --radius 0.1";

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
