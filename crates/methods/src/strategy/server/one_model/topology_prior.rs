//! The prior of TFL (Ma, Li & Peng 2024): a graph of members whose models are similar, and how
//! central every member is in it.

use crate::Matrix;
use crate::clustering::kmeans::{KMeans, KMeansError};
use crate::params::{Layout, MeanError, Params, weighted_mean};
use crate::similarity::{CompareError, Embedding, EmbeddingError, SimilarityMetric, min_max};
use crate::strategy::server::one_model::members::{MemberContribution, redistributed};
use crate::strategy::{Edges, Kept, State};
use crate::topology::{Sample, Topology, TopologyOptions, adjacency, client_prior};

/// Table of the last model of every member.
const MODELS: &str = "tfl.models";
/// Table of the models that those were trained from, where changes are compared.
const STARTS: &str = "tfl.starts";
/// The graph of members, or of clusters.
const GRAPH: &str = "tfl.graph";
/// The cluster of every member.
const CLUSTERS: &str = "tfl.clusters";

/// A prior over members that is learned from their models.
pub(crate) struct TopologyPrior {
    /// Rounds from graph to graph, at least 1.
    pub(crate) period: u64,
    /// True if not all train in a round that learns a graph, so that last models are kept.
    pub(crate) table: bool,
    pub(crate) similarity: SimilarityMetric,
    pub(crate) embedding: Embedding,
    pub(crate) graph: TopologyOptions,
    /// 0: none.
    pub(crate) clusters: usize,
}

/// Reason for which there is no topology of the models of a round.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TopologyError {
    #[error(transparent)]
    Embedding(#[from] EmbeddingError),
    #[error(transparent)]
    Compare(#[from] CompareError),
    #[error(transparent)]
    Clusters(#[from] KMeansError),
    #[error(transparent)]
    Centroids(#[from] MeanError),
}

/// Prior that is learned of a list of models.
struct LearnedPrior {
    /// One number per model.
    prior: Vec<f64>,
    /// Of the models, or of their clusters.
    adjacency: Matrix,
    /// The cluster of every model, where there are some.
    labels: Option<Vec<u32>>,
}

impl TopologyPrior {
    /// Returns whether models of this layout have what is to be compared.
    pub(crate) fn suits(&self, model: &std::sync::Arc<Layout>) -> Result<(), EmbeddingError> {
        let model = Params::zeros(model);
        self.embedding.rows(&[&model], &[&model]).map(drop)
    }

    /// Keeps the models that were trained in a round, and gives the prior after it: learned anew in
    /// every `period`-th round, else `prior`.
    ///
    /// Members that are absent in a round that learns keep their prior if all members train;
    /// those present share the rest by their graph.
    pub(crate) fn round(
        &self,
        state: &mut State,
        start: &Params,
        all: &[MemberContribution],
        drawn: &Sample,
        prior: &[f64],
        round: u64,
    ) -> Result<Vec<f64>, TopologyError> {
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
            return Ok(if present.len() == members {
                learned.prior
            } else {
                redistributed(prior.to_vec(), &present, &learned.prior)
            });
        }
        let trained = |one: &&MemberContribution| drawn.clients.contains(&one.member);
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
    /// decides the weights in the next model.
    fn learn(&self, models: &[&Params], starts: &[&Params]) -> Result<LearnedPrior, TopologyError> {
        if self.clusters == 0 || self.clusters >= models.len() {
            let topology = self.topology(models, starts)?;
            return Ok(LearnedPrior {
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
        let starts = if self.embedding.update {
            centroids(starts)?
        } else {
            Vec::new()
        };
        let topology = self.topology(
            &models.iter().collect::<Vec<_>>(),
            &starts.iter().collect::<Vec<_>>(),
        )?;
        let prior = client_prior(&topology.prior, &labels);
        Ok(LearnedPrior {
            adjacency: adjacency(&topology.graph),
            prior: prior.expect("every cluster has members and a share of the prior"),
            labels: Some(labels),
        })
    }

    fn topology(&self, models: &[&Params], starts: &[&Params]) -> Result<Topology, TopologyError> {
        let rows = self.embedding.rows(models, starts)?;
        let similarity = min_max(&self.similarity.similarity_f64(&rows)?);
        let similarity = similarity.expect("similarities of models are square and finite");
        let topology = Topology::learn(&similarity, &self.graph);
        Ok(topology.expect("normalised similarities and a checked threshold make a graph"))
    }
}

impl LearnedPrior {
    /// Keeps the graph in the state, for reports: of these members of all, or of the clusters.
    fn write(&self, state: &mut State, present: &[usize], members: usize) {
        let memory = &mut state.memory;
        let (nodes, named) = match &self.labels {
            None => (members, present.to_vec()),
            Some(labels) => {
                let mut clusters = vec![None; members];
                for (&member, &label) in present.iter().zip(labels) {
                    clusters[member] = Some(label);
                }
                memory.insert(CLUSTERS, Kept::Clusters(clusters));
                let clusters = self.adjacency.rows();
                (clusters, (0..clusters).collect())
            }
        };
        let mut edges = Vec::new();
        for (row, &a) in named.iter().enumerate() {
            let neighbours = named.iter().enumerate().skip(row + 1);
            let neighbours = neighbours.filter(|(column, _)| self.adjacency[(row, *column)] != 0.0);
            edges.extend(neighbours.map(|(_, &b)| [a.min(b) as u32, a.max(b) as u32]));
        }
        edges.sort_unstable();
        let nodes = nodes as u32;
        memory.insert(GRAPH, Kept::Graph(Edges { nodes, edges }));
    }
}

/// A table of the state, one model per member; before there is one, the start model for all.
fn table(state: &State, name: &str, start: &Params, members: usize) -> Vec<Params> {
    match state.tables.get(name) {
        Some(known) if known.len() == members => known.clone(),
        _ => vec![start.clone(); members],
    }
}
