//! The learning part of an agreement as the bytes that the parameter set holds.

use methods::strategy::StrategyConfig;
use protocol::{Hash, codec};
use task::TaskConfig;

use crate::canonical::{Canonical, CanonicalError};
use crate::continues::Continues;
use crate::file::StatusFor;
use crate::privacy;
use crate::question::AgreedQuestion;
use crate::renamed::hashed;
use crate::serving::ServingTable;

/// The part of an agreement that the protocol does not look into.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AgreedWork<'a> {
    /// The learning task.
    pub task: &'a TaskConfig,
    /// The strategy with its options.
    pub strategy: &'a StrategyConfig,
    /// Largest ℓ2 norm of a contributed model; `None` for no bound.
    pub max_model_norm: Option<f64>,
    /// Largest share of a contribution in the sum of weights; `None` for no bound.
    pub max_weight: Option<f64>,
    /// Audience of a node's status.
    pub status: StatusFor,
    /// Seed of the initial model.
    pub seed: u64,
    /// The model of an earlier federation that the first round starts from.
    pub continues: Option<&'a Continues>,
    /// The questions that members answer.
    pub questions: &'a [AgreedQuestion],
    /// Agreement to decide together which model each serves; `None` where each decides alone.
    pub serving: Option<&'a ServingTable>,
}

impl AgreedWork<'_> {
    /// The canonical bytes, for [`ProtocolParameters::work`](protocol::parameters::ProtocolParameters::work).
    ///
    /// # Errors
    /// [`CanonicalError`]: a task or strategy with a table whose keys are not texts.
    pub fn encode(&self) -> Result<Vec<u8>, CanonicalError> {
        let mut strategy = Canonical::of(self.strategy)?;
        if let Canonical::Table(options) = &mut strategy {
            let scale = Canonical::Bool(self.strategy.standardise);
            options.insert("standardise".into(), scale);
        }
        let mut table = Canonical::table([
            ("task", Canonical::of(self.task)?),
            ("strategy", strategy),
            ("norm", Canonical::of(&self.max_model_norm)?),
            ("max-weight", Canonical::of(&self.max_weight)?),
            ("seed", Canonical::of(&self.seed)?),
        ]);
        // With the default, the bytes are those of an agreement that does not say it.
        if let (Canonical::Table(work), StatusFor::Members) = (&mut table, self.status) {
            work.insert("status".into(), Canonical::of(&self.status)?);
        }
        // Without it, the bytes are those of a federation that continues none.
        if let (Canonical::Table(work), Some(continues)) = (&mut table, self.continues) {
            let digits = |hash: &Hash| Canonical::Text(format!("{hash:#}"));
            let mut table = Canonical::table([
                ("name", Canonical::Text(continues.name.clone())),
                ("federation", digits(&continues.federation)),
                ("round", Canonical::of(&continues.round)?),
                ("block", digits(&continues.block)),
                ("model", digits(&continues.model)),
            ]);
            // Without them, the bytes are those of one that continues a federation in clear.
            if let Canonical::Table(table) = &mut table {
                if let Some(mode) = continues.seen.mode() {
                    table.insert("mode".into(), Canonical::of(&mode)?);
                }
                if !continues.summed.is_empty() {
                    let groups: Vec<_> = continues.summed.iter().map(privacy::authors).collect();
                    table.insert("group".into(), Canonical::of(&groups)?);
                }
            }
            work.insert("continues".into(), table);
        }
        // Without any, the bytes are those of an agreement that has no such list.
        if let (Canonical::Table(work), false) = (&mut table, self.questions.is_empty()) {
            work.insert("question".into(), Canonical::of(self.questions)?);
        }
        // Without it, the bytes are those of an agreement in which every member decides alone.
        if let (Canonical::Table(work), Some(serving)) = (&mut table, self.serving) {
            work.insert("serving".into(), Canonical::of(serving)?);
        }
        // The names of keys may change in files, and never in what an id depends on.
        Ok(codec::encode(&hashed(table, "")))
    }
}
