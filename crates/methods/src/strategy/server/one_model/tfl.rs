//! TFL (Ma, Li & Peng 2024): the model of the worst mixture of members, near a prior that favours
//! members that are central in the graph of similar members.

use serde::{Deserialize, Serialize};

use crate::similarity::{Embedding, SimilarityMetric};
use crate::strategy::options::{MethodSetting, at_least_one, not_negative, require, share};
use crate::strategy::server::one_model::client_sampling::{ClientSampling, Losses, Participants};
use crate::strategy::server::one_model::minimax::Minimax;
use crate::strategy::server::one_model::topology_prior::TopologyPrior;
use crate::strategy::{Strategy, StrategyError};
use crate::topology::{Ascent, Centrality, Divergence, Lengths, Scale, TopologyOptions};

/// Options of TFL.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Tfl {
    /// Members that train in a round. Default all.
    pub participants: Participants,
    /// True if a member can be drawn more than once in a round, and then counts once per draw.
    /// Default true, as in DRFA. No effect where all members participate.
    pub replacement: bool,
    /// Members whose losses change λ. Default all, which is required where all members participate.
    pub losses: Losses,
    /// Number of rounds `f` from one graph to the next. Default 5, the shortest that the paper tries.
    #[schemars(range(min = 1), extend("x-unit" = "rounds"))]
    pub period: u64,
    /// True if all members train in rounds that learn a graph; otherwise the graph is learned from
    /// the last model of every member. Default false. No effect where all members participate.
    pub full_refresh: bool,
    /// Similarity of two models. Default dot, as in the paper.
    pub similarity: SimilarityMetric,
    /// Values of the models that are compared. Default all weights.
    pub embedding: Embedding,
    /// Normalised similarity ε from which two members are neighbours in the graph. Default 0.4, as
    /// in the paper.
    #[schemars(range(min = 0, max = 1))]
    pub epsilon: f64,
    /// Centrality of a member in the graph, which gives its prior weight. Default betweenness, as
    /// in the paper.
    pub centrality: Centrality,
    /// Scale of the centralities. Default normalised.
    pub scale: Scale,
    /// Length of an edge, for the centralities based on shortest paths. Default hops: the graph has
    /// no weights.
    pub lengths: Lengths,
    /// Number of clusters of members, for large federations: the graph is learned over clusters.
    /// At most the number of members; 0, the default, learns it over the members themselves.
    #[schemars(extend("x-unit" = "clusters"))]
    pub clusters: usize,
    /// Strength `q` of the penalty on the distance of λ from the prior, in the unit of the loss;
    /// `"inf"` makes λ equal to the prior. Default 0.1, as in the paper.
    #[serde(with = "strength")]
    #[schemars(schema_with = "strength::schema")]
    pub q: f64,
    /// Step size η_λ of the members' weights λ, in weight per unit of loss. Default 0.1, a guess.
    #[schemars(range(min = 0))]
    pub rate: f64,
    /// Distance of λ from the prior. Default ℓ2.
    pub divergence: Divergence,
    /// Least weight of a member. Default 0.
    #[schemars(range(min = 0, max = 1))]
    pub lambda_floor: f64,
}

impl Default for Tfl {
    fn default() -> Self {
        let (ascent, graph) = (Ascent::default(), TopologyOptions::default());
        Self {
            participants: Participants::default(),
            replacement: true,
            losses: Losses::default(),
            period: 5,
            full_refresh: false,
            similarity: SimilarityMetric::default(),
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
    pub(crate) fn build(&self, setting: MethodSetting) -> Result<Box<dyn Strategy>, StrategyError> {
        at_least_one("period", self.period)?;
        share("epsilon", self.epsilon)?;
        share("lambda-floor", self.lambda_floor)?;
        not_negative("rate", self.rate)?;
        require(self.q >= 0.0, "q", "at least 0, or \"inf\"", self.q)?;
        require(
            self.clusters <= setting.members,
            "clusters",
            "at most the number of members",
            self.clusters,
        )?;
        let all = self.participants == Participants::All;
        require(
            !all || self.losses == Losses::All,
            "losses",
            "\"all\" where all participate: all members report their losses there",
            "of a sample",
        )?;
        Ok(Box::new(Minimax {
            name: "tfl",
            training: setting.training,
            members: setting.members,
            sampling: ClientSampling {
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
            learned_prior: Some(TopologyPrior {
                period: self.period,
                table: !all && !self.full_refresh,
                similarity: self.similarity,
                embedding: self.embedding.clone(),
                graph: TopologyOptions {
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
        if *q == f64::INFINITY {
            serializer.serialize_str("inf")
        } else {
            serializer.serialize_f64(*q)
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
