//! Recomputes the final rounds of a federation from their manifests and decisions.

use bytes::Bytes;
use protocol::message::{Learning, MaskedEntry, RoundManifest};
use protocol::work::{FinalMasked, WorkError};
use protocol::{Hash, MemberIndex, codec};

use crate::checks::HeldTranscripts;
use crate::config::SiloConfig;
use crate::outcome::{Document, Settled, decision, genesis, unchanged};
use crate::rounds::{OpenSum, OpeningRound, RoundBase, combine, open_sums, outcome_gate};

/// The state of a federation after a number of rounds.
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

    /// The state after a round whose outcome was agreed on; `blob` returns blobs by hash.
    ///
    /// # Errors
    /// A blob that is missing, or is not what the outcome says.
    pub fn after(
        config: &'a SiloConfig,
        outcome: &Hash,
        blob: impl Fn(&Hash) -> Option<Bytes>,
    ) -> Result<Self, String> {
        let settled = read(config, outcome, blob)?;
        Ok(Self {
            config,
            base: RoundBase::new(config, &settled),
        })
    }

    /// Hash of the outcome that this is the state after.
    pub fn outcome(&self) -> Hash {
        self.base.outcome
    }

    /// The members that the plan of the next round names, ascending; `None`: all.
    pub fn participants(&self) -> Option<Vec<MemberIndex>> {
        let named = self.base.plan(self.config).participants.as_ref();
        named.map(|named| named.iter().copied().map(MemberIndex).collect())
    }

    /// Recomputes the next round from its manifest and decision: the plan, whether the decision is
    /// acceptable, and the outcome. `blob` returns the models by hash.
    ///
    /// # Errors
    /// A model that is missing, or how the result differs from what was agreed.
    pub fn round(
        &mut self,
        learning: &Learning,
        manifest: &RoundManifest,
        blob: impl Fn(&Hash) -> Option<Bytes>,
    ) -> Result<(), String> {
        let round = self.base.next();
        if (learning.round, learning.manifest) != (round, manifest.root()) {
            return Err(format!(
                "expected round {round} with sheet {}, found round {} with sheet {}",
                learning.manifest,
                learning.round,
                manifest.root()
            ));
        }
        let plan = Hash::of(&codec::encode(self.base.plan(self.config)));
        if learning.plan != plan {
            let agreed = learning.plan;
            return Err(format!(
                "round {round}: agreed plan {agreed}, recomputed {plan}"
            ));
        }
        let settled = self.settle(learning, manifest, blob);
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

    /// Computes the next round, a masked one, again: from list, manifest, transcripts, vectors and the
    /// unmaskings of as many members as are needed. `blob` returns them by hash.
    ///
    /// # Errors
    /// What is missing or wrong, or how the result differs from what a quorum voted for.
    pub fn masked(
        &mut self,
        of: &FinalMasked,
        unmaskings: &[(MemberIndex, Vec<u8>)],
        outcome: Hash,
        blob: impl Fn(&Hash) -> Option<Bytes>,
    ) -> Result<(), String> {
        let round = self.base.next();
        let wrong = |why: String| format!("round {round}: {why}");
        let agreed = (of.round.round, of.round.state);
        if agreed != (round, self.base.outcome) {
            return Err(wrong(format!(
                "expected a block on the outcome {}, found one of round {} on {}",
                self.base.outcome, agreed.0, agreed.1
            )));
        }
        let plan = Hash::of(&codec::encode(self.base.plan(self.config)));
        if of.round.plan != plan {
            let agreed = of.round.plan;
            return Err(wrong(format!("agreed plan {agreed}, recomputed {plan}")));
        }
        let words = |error| match error {
            WorkError::Refused(why) => wrong(why),
            WorkError::Unavailable => wrong("a blob is missing, or too few unmaskings hold".into()),
        };
        let opening = self.opening(of, &blob).map_err(words)?;
        let vector = |entry: &MaskedEntry| blob(&entry.vector.hash);
        let combined = combine(
            self.config,
            &self.base,
            &opening,
            unmaskings,
            vector,
            |bytes| bytes,
        );
        if let Some(member) = combined.unproven.first() {
            let name = self.config.member.epoch.roster.name(*member);
            return Err(wrong(format!("the unmasking of {name:?} does not hold")));
        }
        let settled = combined.result.map_err(words)?;
        if settled.hash != outcome {
            let computed = settled.hash;
            return Err(wrong(format!(
                "agreed outcome {outcome}, recomputed {computed}"
            )));
        }
        self.base = RoundBase::new(self.config, &settled);
        Ok(())
    }

    /// The sums of the next round, a masked one, opened again: from the same as [`Replay::masked`].
    ///
    /// # Errors
    /// What is missing or wrong.
    pub fn sums(
        &self,
        of: &FinalMasked,
        unmaskings: &[(MemberIndex, Vec<u8>)],
        blob: impl Fn(&Hash) -> Option<Bytes>,
    ) -> Result<Vec<OpenSum>, String> {
        let words = |error| match error {
            WorkError::Refused(why) => why,
            WorkError::Unavailable => "a blob is missing, or too few unmaskings hold".into(),
        };
        let opening = self.opening(of, &blob).map_err(words)?;
        let vector = |entry: &MaskedEntry| blob(&entry.vector.hash);
        open_sums(self.config, &self.base, &opening, unmaskings, vector).map_err(words)
    }

    fn opening(
        &self,
        of: &FinalMasked,
        blob: impl Fn(&Hash) -> Option<Bytes>,
    ) -> Result<OpeningRound, WorkError> {
        OpeningRound::read(self.config, of.clone(), &HeldTranscripts::default(), blob)
    }

    fn settle(
        &self,
        learning: &Learning,
        manifest: &RoundManifest,
        blob: impl Fn(&Hash) -> Option<Bytes>,
    ) -> Result<Settled, String> {
        let (base, round) = (&self.base, self.base.next());
        let names = manifest.entries.iter().map(|entry| entry.fields.blob);
        if manifest.entries.is_empty() {
            if !learning.decision.is_empty() {
                return Err("expected an empty decision about an empty sheet".into());
            }
            return Ok(unchanged(round, &base.state));
        }
        let plain = base.manifest(manifest, |_, entry| {
            base.fits(self.config, &entry.fields)?;
            let name = entry.fields.blob;
            let document = blob(&name).ok_or_else(|| format!("model {name} is missing"))?;
            base.admit(document, None)
        })?;
        let decision = decision(&learning.decision)?;
        let strategy = &self.config.strategy;
        strategy
            .check(&base.state, &plain, &decision, round)
            .map_err(|objection| format!("the decision is not acceptable: {objection}"))?;
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

/// An outcome from its blobs.
fn read(
    config: &SiloConfig,
    outcome: &Hash,
    blob: impl Fn(&Hash) -> Option<Bytes>,
) -> Result<Settled, String> {
    let document = blob(outcome).ok_or_else(|| format!("outcome {outcome} is missing"))?;
    let gate = outcome_gate(config);
    let named = Document::read(&document).map_err(|error| error.to_string())?;
    let models = named.all_models().map(|hash| {
        let model = blob(&hash).ok_or_else(|| format!("model {hash} is missing"))?;
        gate.admit(model).map_err(|error| error.to_string())
    });
    let models = models.collect::<Result<_, String>>()?;
    Ok(Settled::assemble(document, named, models))
}
