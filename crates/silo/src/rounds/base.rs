//! The base of a round: the outcome adopted before it, and the silo's own state.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use methods::merging::MergeTree;
use methods::params::{Encoding, Gate, LargestAbs, Sent};
use methods::strategy::summary_layout;
use methods::{Layout, LoadedManifest, ModelEntry, Params, Plan, Scores, State};
use protocol::Hash;
use protocol::message::{Entry, EntryFields, RoundManifest};
use protocol::privacy::Voids;

use crate::config::SiloConfig;
use crate::outcome::{MaskedNote, Settled};

/// The last adopted outcome, and what follows from it for the next round. Shared with jobs.
pub struct RoundBase {
    /// The last adopted round; 0 before the first.
    pub(crate) round: u64,
    /// Hash of its outcome.
    pub(crate) outcome: Hash,
    /// Models and the strategy's memory.
    pub state: Arc<State>,
    /// Layout and norm bound of contributions to the next round.
    pub(crate) gate: Gate,
    /// How contributions to it travel.
    pub(crate) encoding: Encoding,
    /// Hash of the gate's layout and bound, and of the encoding.
    gate_id: Hash,
    /// The parameter set's largest share of a weight.
    max_weight: Option<f64>,
    /// What the void sums of this epoch have shown.
    pub(crate) voids: Voids,
    plan: OnceLock<Plan>,
}

impl RoundBase {
    /// The base of the round after an outcome.
    pub fn new(config: &SiloConfig, settled: &Settled) -> Self {
        Self {
            voids: voids(config, settled),
            ..Self::after(
                config,
                settled.document.round,
                settled.hash,
                settled.state.clone(),
            )
        }
    }

    /// The base of the round after one with this outcome, as a round without masks needs it.
    pub fn after(config: &SiloConfig, round: u64, outcome: Hash, state: Arc<State>) -> Self {
        let learner = &config.learner;
        let (model, summary) = (learner.layout(), summary_layout(&**learner));
        let layout = config
            .strategy
            .expects(&state, &model, summary.as_ref(), round + 1);
        Self {
            round,
            outcome,
            state,
            encoding: config.encoding,
            gate_id: gate_id(&layout, config.max_model_norm, config.encoding),
            gate: Gate {
                layout,
                norm: config.max_model_norm,
            },
            max_weight: config.max_weight,
            voids: Voids::default(),
            plan: OnceLock::new(),
        }
    }

    /// The model that training of a secure-aggregation round begins with: differences are sent.
    ///
    /// # Errors
    /// The round does not train the agreed model.
    pub(crate) fn start(&self) -> Result<Params, String> {
        let (model, layout) = (self.state.models.first(), &self.gate.layout);
        let start = model.and_then(|model| {
            if model.layout() == layout {
                return Some(model.clone());
            }
            // Some strategies keep moments in the same model.
            Params::gather(layout, &[model])
        });
        let why = "the round does not train the agreed model, so nothing can be masked";
        start.ok_or_else(|| why.into())
    }

    /// The next round.
    pub fn next(&self) -> u64 {
        self.round + 1
    }

    /// The plan of the next round.
    pub fn plan(&self, config: &SiloConfig) -> &Plan {
        self.plan
            .get_or_init(|| config.strategy.plan(&self.state, self.next()))
    }

    /// Exact size of a contribution's blob, in bytes.
    pub(crate) fn blob_size(&self) -> u64 {
        let reference = self.state.models.first();
        let reference = reference.map_or(&self.gate.layout, Params::layout);
        self.encoding.len(&self.gate.layout, reference) as u64
    }

    /// Returns what a silo of this coalition sends of its trained model, and keeps for the next time;
    /// `rest` is what it kept the last time. Also the model as it passed the gate. Refused if other
    /// members would not accept it.
    pub(crate) fn send(
        &self,
        coalition: u32,
        model: &Params,
        rest: Option<&Params>,
    ) -> Result<(Sent, Params), String> {
        let reference = self.state.models.get(coalition as usize).unwrap_or(model);
        let sent = self.encoding.send(model, rest, reference);
        let sent = sent.map_err(|error| error.to_string())?;
        let exact = self.encoding.is_exact();
        let largest = exact.then(|| model.reading().largest).flatten();
        let admitted = self.admit(sent.document.clone(), largest)?;
        Ok((sent, admitted))
    }

    /// Cache key of one blob's passage through the gate.
    pub(crate) fn gate_key(&self, blob: &Hash) -> Hash {
        Hash::labelled("gate", &[&self.gate_id.0, &blob.0])
    }

    /// Checks the fields of an entry against the plan and the parameter set, without its model.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn fits(&self, config: &SiloConfig, fields: &EntryFields) -> Result<(), String> {
        let (size, models) = (self.blob_size(), self.state.models.len());
        if fields.size != size {
            return Err(format!(
                "expected a contribution of {size} bytes, found {}",
                fields.size
            ));
        }
        if let Some(coalition) = fields.coalition.filter(|at| *at as usize >= models) {
            return Err(format!(
                "expected a coalition below {models}, found {coalition}"
            ));
        }
        let has = |expected: bool, what: &str| {
            if expected {
                format!("expected a contribution with a {what}, found none")
            } else {
                format!("expected a contribution without a {what}, found one")
            }
        };
        let names = config.member.epoch.protocol.shows_names();
        if fields.member.is_some() != names {
            return Err(has(names, "member's position"));
        }
        let weights = self.plan(config).weights;
        if fields.weight.is_some() != weights {
            return Err(has(weights, "weight"));
        }
        Ok(())
    }

    /// Passes a contributed model through the gate. `largest` is the largest absolute value of its
    /// document, where hashing has shown it.
    pub(crate) fn admit(
        &self,
        document: Bytes,
        largest: Option<LargestAbs>,
    ) -> Result<Params, String> {
        let agreed = &self.state.models;
        let admitted = self
            .gate
            .admit_encoded(self.encoding, document, agreed, largest);
        admitted.map_err(|error| error.to_string())
    }

    /// The merges that lead to groups of a manifest's entries, where the strategy merges them in this round.
    /// `document` returns contributed models by hash. For those who look at a run.
    pub fn merge_tree(
        &self,
        config: &SiloConfig,
        signed: &RoundManifest,
        document: impl Fn(&Hash) -> Option<Bytes>,
    ) -> Option<MergeTree> {
        let manifest = || {
            let manifest = self.manifest(signed, |_, entry| {
                let document = document(&entry.fields.blob);
                let document = document.ok_or_else(|| "a model is gone".to_owned())?;
                self.admit(document, None)
            });
            manifest.ok()
        };
        config
            .strategy
            .merge_tree(&self.state, &manifest, self.next())
    }

    /// The manifest that the strategy gets: the signed manifest with its models, and with weights of at most
    /// the parameter set's share. `model` gives the model of the nth entry once it has passed the gate.
    ///
    /// # Errors
    /// What `model` or the scores have wrong.
    pub fn manifest(
        &self,
        signed: &RoundManifest,
        mut model: impl FnMut(usize, &Entry) -> Result<Params, String>,
    ) -> Result<LoadedManifest, String> {
        let entries = signed.entries.iter().enumerate().map(|(nth, entry)| {
            let model = model(nth, entry)?;
            Ok(with_model(model, &entry.fields))
        });
        let entries = entries.collect::<Result<_, String>>()?;
        let scores = signed.scores.as_ref();
        let scores = scores.map(|rows| Scores::from_rows(rows)).transpose();
        let manifest = LoadedManifest {
            entries,
            scores: scores.map_err(|error| error.to_string())?,
        };
        Ok(manifest.with_max_weight(self.max_weight))
    }
}

/// Returns what the void sums of the present epoch have shown.
fn voids(config: &SiloConfig, settled: &Settled) -> Voids {
    let note = settled.document.masked.as_ref();
    let note = note.filter(|note| note.epoch == config.member.epoch.id);
    note.map(MaskedNote::voids).unwrap_or_default()
}

/// An entry as strategies see it: its model, and the fields that its author signed.
pub(crate) fn with_model(model: Params, fields: &EntryFields) -> ModelEntry {
    ModelEntry {
        model,
        coalition: fields.coalition,
        weight: fields.weight,
        member: fields.member.map(|member| member.0),
    }
}

/// The gate of models in an outcome. A quorum has computed a final outcome, so only the layout is
/// checked.
pub(crate) fn outcome_gate(config: &SiloConfig) -> Gate {
    Gate {
        layout: config.learner.layout(),
        norm: f64::INFINITY,
    }
}

/// Hash of what a gate checks: names, shapes and roles of the tensors, the norm bound, and the
/// encoding. A document in a rounded encoding names the agreed model that it refers to.
fn gate_id(layout: &Layout, norm: f64, encoding: Encoding) -> Hash {
    let roles: Vec<u8> = layout
        .tensors()
        .iter()
        .map(|tensor| tensor.role as u8)
        .collect();
    Hash::labelled(
        "gate",
        &[
            layout.header(),
            &roles,
            &norm.to_bits().to_le_bytes(),
            format!("{encoding:?}").as_bytes(),
        ],
    )
}

/// The silo's own state after its last adoption.
#[derive(Debug, Clone)]
pub struct OwnState {
    /// The round of that adoption; 0 before the first.
    pub round: u64,
    /// The coalition that the silo belongs to.
    pub coalition: u32,
    /// The silo's personal state.
    pub personal: Personal,
}

/// The result of the silo's last training, until its round is final.
#[derive(Debug, Clone)]
pub struct LastTraining {
    /// The round of the training.
    pub round: u64,
    /// Hash of the contributed model.
    pub blob: Hash,
    /// Personal state after the training.
    pub personal: Personal,
}

/// Personal state, with its hash.
#[derive(Debug, Clone)]
pub struct Personal {
    /// The state.
    pub params: Params,
    /// Hash of the state.
    pub hash: Hash,
}

impl Personal {
    /// A personal state, hashed.
    pub fn new(params: Params) -> Self {
        Self {
            hash: Hash(params.hash()),
            params,
        }
    }
}
