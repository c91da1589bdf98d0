//! Recomputes the final rounds of a federation from their sheets and decisions.

use bytes::Bytes;
use protocol::Hash;
use protocol::message::{Learning, Sheet as SignedSheet};

use crate::base::RoundBase;
use crate::config::SiloConfig;
use crate::outcome::{Settled, decision, genesis, unchanged};

/// The state of a federation after a number of recomputed rounds.
pub struct Replay<'a> {
    config: &'a SiloConfig,
    base: RoundBase,
}

impl<'a> Replay<'a> {
    /// The state before the first round. Does not use the learner's data.
    pub fn new(config: &'a SiloConfig) -> Self {
        let genesis = genesis(&*config.strategy, &*config.learner, config.initial_seed);
        Self {
            config,
            base: RoundBase::new(config, &genesis),
        }
    }

    /// Recomputes the next round from its sheet and decision; `blob` returns the models by hash.
    ///
    /// # Errors
    /// A model that is missing, or how the result differs from the agreed outcome.
    pub fn round(
        &mut self,
        learning: &Learning,
        sheet: &SignedSheet,
        blob: impl Fn(&Hash) -> Option<Bytes>,
    ) -> Result<(), String> {
        let round = self.base.next();
        if (learning.round, learning.sheet) != (round, sheet.root()) {
            return Err(format!(
                "expected round {round} with sheet {}, found round {} with sheet {}",
                learning.sheet,
                learning.round,
                sheet.root()
            ));
        }
        let settled = self.settle(learning, sheet, blob);
        let settled = settled.map_err(|why| format!("round {round}: {why}"))?;
        if settled.hash != learning.outcome {
            return Err(format!(
                "round {round}: agreed outcome {}, recomputed {}",
                learning.outcome, settled.hash
            ));
        }
        self.base = RoundBase::new(self.config, &settled);
        Ok(())
    }

    fn settle(
        &self,
        learning: &Learning,
        sheet: &SignedSheet,
        blob: impl Fn(&Hash) -> Option<Bytes>,
    ) -> Result<Settled, String> {
        let (base, round) = (&self.base, self.base.next());
        let names = sheet.entries.iter().map(|entry| entry.fields.blob);
        if sheet.entries.is_empty() {
            return Ok(unchanged(round, &base.state));
        }
        let plain = RoundBase::sheet(sheet, |_, entry| {
            let name = entry.fields.blob;
            let document = blob(&name).ok_or_else(|| format!("model {name} is missing"))?;
            base.admit(document)
        })?;
        let decision = decision(&learning.decision)?;
        let strategy = &self.config.strategy;
        let outcome = strategy
            .settle(&base.state, &plain, &decision, round)
            .map_err(|error| error.to_string())?;
        let names = names.collect();
        Ok(Settled::new(
            round,
            names,
            outcome.assignment,
            outcome.state,
        ))
    }
}
