//! What a round stands on: the outcome before it.

use std::sync::{Arc, OnceLock};

use methods::params::Gate;
use methods::strategy::summary_layout;
use methods::{Layout, Params, Plan, State};
use protocol::Hash;
use protocol::message::EntryFields;

use crate::config::SiloConfig;
use crate::outcome::Settled;

/// The last outcome adopted, and what follows from it for the next round. Shared with jobs.
pub(crate) struct Ground {
    /// The last round adopted; 0 before the first.
    pub(crate) round: u64,
    /// Hash of its outcome.
    pub(crate) outcome: Hash,
    /// Models and the strategy's memory.
    pub(crate) state: Arc<State>,
    /// What contributions to the next round must pass.
    pub(crate) gate: Gate,
    /// Names the gate.
    gate_id: Hash,
    plan: OnceLock<Plan>,
}

impl Ground {
    pub(crate) fn new(config: &SiloConfig, settled: &Settled) -> Self {
        let round = settled.document.round;
        let learner = &config.learner;
        let (model, summary) = (learner.layout(), summary_layout(&**learner));
        let layout = config.strategy.expects(&model, summary.as_ref(), round + 1);
        Self {
            round,
            outcome: settled.hash,
            state: settled.state.clone(),
            gate_id: gate_id(&layout, config.norm),
            gate: Gate {
                layout,
                norm: config.norm,
            },
            plan: OnceLock::new(),
        }
    }

    /// The round that stands on it.
    pub(crate) fn next(&self) -> u64 {
        self.round + 1
    }

    /// The plan of that round.
    pub(crate) fn plan(&self, config: &SiloConfig) -> &Plan {
        self.plan
            .get_or_init(|| config.strategy.plan(&self.state, self.next()))
    }

    /// Exact size of a contribution's blob.
    pub(crate) fn blob_size(&self) -> u64 {
        self.gate.layout.document_len() as u64
    }

    /// Names passing one blob through the gate.
    pub(crate) fn gate_key(&self, blob: &Hash) -> Hash {
        Hash::labelled("gate", &[&self.gate_id.0, &blob.0])
    }

    /// Whether what is said of an entry can be, before its model is looked at.
    pub(crate) fn fits(&self, config: &SiloConfig, fields: &EntryFields) -> Result<(), String> {
        let (size, models) = (self.blob_size(), self.state.models.len());
        if fields.size != size {
            return Err(format!(
                "a contribution of {} bytes where the plan has {size}",
                fields.size
            ));
        }
        if fields
            .coalition
            .is_some_and(|coalition| coalition as usize >= models)
        {
            return Err(format!(
                "a contribution from a coalition that is none of the {models}"
            ));
        }
        if fields.member.is_some() != config.member.epoch.charter.names_shown {
            return Err("a contribution with a name where the charter has none, or without".into());
        }
        if fields.weight.is_some() != self.plan(config).weights {
            return Err("a contribution with a weight where the plan has none, or without".into());
        }
        Ok(())
    }
}

/// What passing a gate depends on besides the blob: names, shapes, roles, bound.
fn gate_id(layout: &Layout, norm: f64) -> Hash {
    let roles: Vec<u8> = layout
        .tensors()
        .iter()
        .map(|tensor| tensor.role as u8)
        .collect();
    Hash::labelled(
        "gate",
        &[layout.header(), &roles, &norm.to_bits().to_le_bytes()],
    )
}

/// What is the silo's own.
#[derive(Debug, Clone)]
pub(crate) struct Own {
    /// The round with which it became so; 0 before the first.
    pub(crate) round: u64,
    /// The coalition it belongs to.
    pub(crate) coalition: u32,
    /// Its personal state.
    pub(crate) personal: Personal,
}

/// What a training left behind, until its round is final.
#[derive(Debug, Clone)]
pub(crate) struct Left {
    pub(crate) round: u64,
    /// What was contributed.
    pub(crate) blob: Hash,
    pub(crate) personal: Personal,
}

/// Personal state, with its hash.
#[derive(Debug, Clone)]
pub(crate) struct Personal {
    pub(crate) params: Params,
    pub(crate) hash: Hash,
}

impl Personal {
    pub(crate) fn new(params: Params) -> Self {
        Self {
            hash: Hash(params.hash()),
            params,
        }
    }
}
