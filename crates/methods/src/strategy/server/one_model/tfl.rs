//! TFL (Ma, Li & Peng 2024): the model of the worst mixture of members, near a prior that favours
//! members that are central in the graph of similar members.

use serde::{Deserialize, Serialize};

use crate::similarity::{Embedding, Metric};
use crate::strategy::options::{Setting, at_least_one, not_negative, require, share};
use crate::strategy::server::one_model::client_sampling::{ClientSampling, Losses, Participants};
use crate::strategy::server::one_model::minimax::Minimax;
use crate::strategy::server::one_model::topology_prior::TopologyPrior;
use crate::strategy::{Strategy, StrategyError};
use crate::topology::{Ascent, Centrality, Divergence, Lengths, Options, Scale};

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
    /// Whether all members train in rounds that learn a graph; else it is learned from the last model
    /// of every member. Default false; has no effect where all members train anyway.
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
    /// No member's weight falls below this, from 0 (the default) to 1.
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
    pub(crate) fn build(&self, setting: Setting) -> Result<Box<dyn Strategy>, StrategyError> {
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
