//! Computes final rounds again, from the first on, from what everybody agreed on.

use std::sync::Arc;

use bytes::Bytes;
use methods::{Decision, Entry, Scores, Sheet, State};
use protocol::message::{Learning, Sheet as Signed};
use protocol::{Hash, codec};

use crate::actors::worker::Ground;
use crate::config::SiloConfig;
use crate::outcome::{Settled, genesis};

/// The rounds of a federation up to some point, computed again.
pub struct Replay<'a> {
    config: &'a SiloConfig,
    ground: Ground,
}

impl<'a> Replay<'a> {
    /// Before the first round. The learner's data are not looked at.
    pub fn new(config: &'a SiloConfig) -> Self {
        let genesis = genesis(&*config.learner, config.initial_seed);
        Self {
            config,
            ground: Ground::new(config, &genesis),
        }
    }

    /// Computes the next round from its sheet and decision; `blob` gives the models.
    ///
    /// # Errors
    /// What is missing, or where the result differs from what was agreed, in a sentence.
    pub fn round(
        &mut self,
        learning: &Learning,
        sheet: &Signed,
        blob: impl Fn(&Hash) -> Option<Bytes>,
    ) -> Result<(), String> {
        let round = self.ground.next();
        if (learning.round, learning.sheet) != (round, sheet.root()) {
            return Err(format!(
                "round {round} follows, with the sheet that its block names"
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
        self.ground = Ground::new(self.config, &settled);
        Ok(())
    }

    fn settle(
        &self,
        learning: &Learning,
        sheet: &Signed,
        blob: impl Fn(&Hash) -> Option<Bytes>,
    ) -> Result<Settled, String> {
        let (ground, round) = (&self.ground, self.ground.next());
        let names = sheet.entries.iter().map(|entry| entry.fields.blob);
        if sheet.entries.is_empty() {
            return Ok(unchanged(round, &ground.state));
        }
        let model = |name: Hash| {
            let document = blob(&name).ok_or_else(|| format!("model {name} is not here"))?;
            let admitted = ground.gate.admit(document);
            admitted.map_err(|error| error.to_string())
        };
        let entries = sheet.entries.iter().map(|entry| {
            Ok(Entry {
                model: model(entry.fields.blob)?,
                coalition: entry.fields.coalition,
                weight: entry.fields.weight,
                member: entry.fields.member.map(|member| member.0),
            })
        });
        let rows = sheet.scores.as_ref();
        let scores = rows.map(|rows| Scores::from_rows(rows)).transpose();
        let plain = Sheet {
            entries: entries.collect::<Result<_, String>>()?,
            scores: scores.map_err(|error| error.to_string())?,
        };
        let decision: Decision = codec::decode(&learning.decision, codec::LIMIT)
            .map_err(|error| format!("the decision: {error}"))?;
        let strategy = &self.config.strategy;
        let outcome = strategy
            .settle(&ground.state, &plain, &decision, round)
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

/// The outcome of a round to which nobody came: everything is as it was.
pub(crate) fn unchanged(round: u64, state: &Arc<State>) -> Settled {
    Settled::new(round, Vec::new(), Vec::new(), State::clone(state))
}
