//! TFL (Ma, Li & Peng 2024): the graph of clients that are alike says who speaks for many, and the
//! weights of the worst mixture are held near that.

use serde::{Deserialize, Serialize};

use crate::Matrix;
use crate::clustering::kmeans::{KMeans, KMeansError};
use crate::learner::Training;
use crate::params::{Layout, MeanError, Params, weighted_mean};
use crate::similarity::{CompareError, Embedding, EmbeddingError, Metric, min_max};
use crate::strategy::catalogue::{at_least_one, not_negative, require};
use crate::strategy::server::one_model::client_sampling::{Losses, Participants, Turnout};
use crate::strategy::server::one_model::minimax::{Contribution, Minimax, among_all};
use crate::strategy::{State, Strategy, StrategyError};
use crate::topology::{
    Ascent, Centrality, Divergence, Lengths, Options, Sample, Scale, Topology, adjacency,
    client_prior,
};

/// Table of the last model of every member.
const MODELS: &str = "tfl.models";
/// Table of the models that those were trained from, where changes are compared.
const STARTS: &str = "tfl.starts";
/// The adjacency matrix of members (or of clusters), 0 and 1, row by row.
const GRAPH: &str = "tfl.graph";
/// The cluster of every member; −1 for one that was away.
const CLUSTERS: &str = "tfl.clusters";

/// Options of TFL.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Tfl {
    /// Who trains in a round: `"all"`, the default, or `{ sample = m }` draws by λ (0: half of
    /// the members).
    pub participants: Participants,
    /// Whether who was drawn can be drawn again, and counts twice then. Default true, as in DRFA.
    pub replacement: bool,
    /// Whose losses move λ where members are drawn: `"all"`, the default, or `{ uniform = u }`
    /// drawn evenly (0: as many as draws).
    pub losses: Losses,
    /// `f` ≥ 1: rounds from graph to graph. Default 5, the shortest that the paper tries.
    pub period: u64,
    /// Whether everybody trains in rounds that learn a graph. Else it is learned from everybody's
    /// last model. Default false; without meaning where everybody trains anyway.
    pub full_refresh: bool,
    /// How alike two models are. Default: dot, the paper's.
    pub similarity: Metric,
    /// What of the models is compared. Default: all weights.
    pub embedding: Embedding,
    /// ε in `[0, 1]`: the normalised similarity from which two members are neighbours. Default
    /// 0.4, the paper's.
    pub epsilon: f64,
    /// How central a member is. Default: betweenness, the paper's.
    pub centrality: Centrality,
    /// On which scale. Default: normalised.
    pub scale: Scale,
    /// How long an edge is. Default: hops, which makes the graph binary.
    pub lengths: Lengths,
    /// Number of clusters of members to learn the topology of, in large federations; 0, the
    /// default: of the members themselves.
    pub clusters: usize,
    /// `q` ≥ 0, in the unit of the loss: how much the distance of λ from the prior counts; `"inf"`
    /// makes λ the prior. Default 0.1, the paper's.
    #[serde(with = "strength")]
    #[schemars(schema_with = "strength::schema")]
    pub q: f64,
    /// `η_λ` ≥ 0: how far λ goes, in weight per unit of loss. Default 0.1, a guess.
    pub rate: f64,
    /// How the distance from the prior is measured. Default: ℓ2.
    pub divergence: Divergence,
    /// Nobody's weight falls below this, from 0 (the default) to 1.
    pub lambda_floor: f64,
}

impl Default for Tfl {
    fn default() -> Self {
        let (ascent, graph) = (Ascent::default(), Options::default());
        Self {
            participants: Participants::default(),
            replacement: true,
            losses: Losses::default(),
            period: 5,
            full_refresh: false,
            similarity: Metric::default(),
            embedding: Embedding::default(),
            epsilon: graph.epsilon,
            centrality: graph.centrality,
            scale: graph.scale,
            lengths: graph.lengths,
            clusters: 0,
            q: ascent.q,
            rate: ascent.rate,
            divergence: ascent.divergence,
            lambda_floor: ascent.floor,
        }
    }
}

impl Tfl {
    /// For a federation of so many members.
    pub(crate) fn build(
        &self,
        training: Training,
        members: usize,
    ) -> Result<Box<dyn Strategy>, StrategyError> {
        let between = |option, value: f64| {
            let holds = (0.0..=1.0).contains(&value);
            require(holds, option, "from 0 to 1", value)
        };
        at_least_one("period", self.period)?;
        between("epsilon", self.epsilon)?;
        between("lambda-floor", self.lambda_floor)?;
        not_negative("rate", self.rate)?;
        require(self.q >= 0.0, "q", "at least 0, or \"inf\"", self.q)?;
        require(
            self.clusters <= members,
            "clusters",
            "at most the number of members",
            self.clusters,
        )?;
        let all = self.participants == Participants::All;
        require(
            !all || self.losses == Losses::All,
            "losses",
            "\"all\" where all participate: everybody tells its loss there",
            "of a sample",
        )?;
        Ok(Box::new(Minimax {
            name: "tfl",
            training,
            members,
            turnout: Turnout {
                participants: self.participants,
                replacement: self.replacement,
                losses: self.losses,
                refresh: if self.full_refresh { self.period } else { 0 },
            },
            ascent: Ascent {
                divergence: self.divergence,
                q: self.q,
                rate: self.rate,
                floor: self.lambda_floor,
            },
            decay: 1.0,
            learning: Some(Learning {
                period: self.period,
                table: !all && !self.full_refresh,
                similarity: self.similarity,
                embedding: self.embedding.clone(),
                graph: Options {
                    epsilon: self.epsilon,
                    centrality: self.centrality,
                    scale: self.scale,
                    lengths: self.lengths,
                },
                clusters: self.clusters,
            }),
        }))
    }
}

/// Where the prior over members comes from.
pub(crate) struct Learning {
    /// Rounds from graph to graph, at least 1.
    period: u64,
    /// Whether not all train in a round that learns a graph, so that last models are kept.
    table: bool,
    similarity: Metric,
    embedding: Embedding,
    graph: Options,
    /// 0: none.
    clusters: usize,
}

/// Why there is no topology of the models of a round.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LearningError {
    #[error(transparent)]
    Embedding(#[from] EmbeddingError),
    #[error(transparent)]
    Compare(#[from] CompareError),
    #[error(transparent)]
    Clusters(#[from] KMeansError),
    #[error(transparent)]
    Centroids(#[from] MeanError),
}

/// What is learned of a list of models.
struct Learned {
    /// One number per model.
    prior: Vec<f64>,
    /// Of the models, or of their clusters.
    adjacency: Matrix,
    /// The cluster of every model, where there are some.
    labels: Option<Vec<u32>>,
}

impl Learning {
    /// Whether models of this layout have what is to be compared.
    pub(crate) fn suits(&self, model: &std::sync::Arc<Layout>) -> Result<(), EmbeddingError> {
        let model = Params::zeros(model);
        self.embedding.rows(&[&model], &[&model]).map(drop)
    }

    /// Takes notice of the models that were trained in a round, and gives the prior after it: anew
    /// in every `period`-th round, else `prior`.
    ///
    /// Where everybody trains, who is away in a round that learns keeps its prior, and the others
    /// share what is left by their graph.
    pub(crate) fn round(
        &self,
        state: &mut State,
        start: &Params,
        all: &[Contribution],
        drawn: &Sample,
        prior: &[f64],
        round: u64,
    ) -> Result<Vec<f64>, LearningError> {
        let members = prior.len();
        let learns = round.is_multiple_of(self.period);
        if !self.table {
            if !learns {
                return Ok(prior.to_vec());
            }
            let present: Vec<_> = all.iter().map(|one| one.member).collect();
            let models: Vec<_> = all.iter().map(|one| &one.model).collect();
            let learned = self.learn(&models, &vec![start; models.len()])?;
            learned.write(state, &present, members);
            return Ok(match present.len() == members {
                true => learned.prior,
                false => among_all(prior.to_vec(), &present, &learned.prior),
            });
        }
        let trained = |one: &&Contribution| drawn.clients.contains(&one.member);
        let mut models = table(state, MODELS, start, members);
        let mut starts = table(state, STARTS, start, members);
        for one in all.iter().filter(trained) {
            models[one.member] = one.model.clone();
            starts[one.member] = start.clone();
        }
        let mut after = prior.to_vec();
        if learns {
            let (models, starts): (Vec<_>, Vec<_>) = models.iter().zip(&starts).unzip();
            let learned = self.learn(&models, &starts)?;
            learned.write(state, &(0..members).collect::<Vec<_>>(), members);
            after = learned.prior;
        }
        if self.embedding.update {
            state.tables.insert(STARTS.into(), starts);
        }
        state.tables.insert(MODELS.into(), models);
        Ok(after)
    }

    /// The topology of models, or of their clusters. All in `f64` and in one order: what is learned
    /// decides the weights of everybody's next model.
    fn learn(&self, models: &[&Params], starts: &[&Params]) -> Result<Learned, LearningError> {
        if self.clusters == 0 || self.clusters >= models.len() {
            let topology = self.topology(models, starts)?;
            return Ok(Learned {
                adjacency: adjacency(&topology.graph),
                prior: topology.prior,
                labels: None,
            });
        }
        let rows = self.embedding.rows(models, starts)?;
        let labels = KMeans::new(self.clusters, 0).fit_rows_f64(&rows)?.labels;
        let centroids = |of: &[&Params]| -> Result<Vec<Params>, MeanError> {
            (0..self.clusters as u32)
                .map(|cluster| {
                    let own = of.iter().zip(&labels);
                    let own = own.filter(|(_, label)| **label == cluster);
                    weighted_mean(&own.map(|(&model, _)| (model, 1.0)).collect::<Vec<_>>())
                })
                .collect()
        };
        let models = centroids(models)?;
        let starts = match self.embedding.update {
            true => centroids(starts)?,
            false => Vec::new(),
        };
        let topology = self.topology(
            &models.iter().collect::<Vec<_>>(),
            &starts.iter().collect::<Vec<_>>(),
        )?;
        let prior = client_prior(&topology.prior, &labels);
        Ok(Learned {
            adjacency: adjacency(&topology.graph),
            prior: prior.expect("every cluster has members and a share of the prior"),
            labels: Some(labels),
        })
    }

    fn topology(&self, models: &[&Params], starts: &[&Params]) -> Result<Topology, LearningError> {
        let rows = self.embedding.rows(models, starts)?;
        let similarity = min_max(&self.similarity.similarity_f64(&rows)?);
        let similarity = similarity.expect("similarities of models are square and finite");
        let topology = Topology::learn(&similarity, &self.graph);
        Ok(topology.expect("normalised similarities and a checked threshold make a graph"))
    }
}

impl Learned {
    /// Puts the graph into the state, for people: of these members of all.
    fn write(&self, state: &mut State, present: &[usize], members: usize) {
        let memory = &mut state.memory;
        let Some(labels) = &self.labels else {
            let mut all = Matrix::zeros(members, members);
            for (row, &a) in present.iter().enumerate() {
                for (column, &b) in present.iter().enumerate() {
                    all[(a, b)] = self.adjacency[(row, column)];
                }
            }
            memory.insert(GRAPH.into(), all.values().to_vec());
            return;
        };
        let mut clusters = vec![-1.0; members];
        for (&member, &label) in present.iter().zip(labels) {
            clusters[member] = label.into();
        }
        memory.insert(CLUSTERS.into(), clusters);
        memory.insert(GRAPH.into(), self.adjacency.values().to_vec());
    }
}

/// A table of the state, one model per member; before there is one, the start model for all.
fn table(state: &State, name: &str, start: &Params, members: usize) -> Vec<Params> {
    match state.tables.get(name) {
        Some(known) if known.len() == members => known.clone(),
        _ => vec![start.clone(); members],
    }
}

/// A number that may be infinite, where files have no such number: `"inf"`.
mod strength {
    use std::fmt;

    use serde::de::{Deserializer, Error, Visitor};
    use serde::ser::Serializer;

    pub(crate) fn schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let number = schemars::json_schema!({ "type": "number", "minimum": 0 });
        let inf = schemars::json_schema!({ "type": "string", "const": "inf" });
        schemars::json_schema!({ "anyOf": [number, inf] })
    }

    pub(crate) fn serialize<S: Serializer>(q: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        match *q == f64::INFINITY {
            true => serializer.serialize_str("inf"),
            false => serializer.serialize_f64(*q),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        from.deserialize_any(Strength)
    }

    struct Strength;

    impl Visitor<'_> for Strength {
        type Value = f64;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a number or \"inf\"")
        }

        fn visit_f64<E: Error>(self, value: f64) -> Result<f64, E> {
            Ok(value)
        }

        fn visit_u64<E: Error>(self, value: u64) -> Result<f64, E> {
            Ok(value as f64)
        }

        fn visit_i64<E: Error>(self, value: i64) -> Result<f64, E> {
            Ok(value as f64)
        }

        fn visit_str<E: Error>(self, value: &str) -> Result<f64, E> {
            match value {
                "inf" => Ok(f64::INFINITY),
                other => Err(E::invalid_value(serde::de::Unexpected::Str(other), &self)),
            }
        }
    }
}
