//! The decision, its outcome, and the block to vote on.

use std::sync::Arc;

use crate::effects::{Case, Effect, Request, WorkError};
use crate::hash::Hash;
use crate::member::Inclusions;
use crate::message::{Content, Learning, RoundManifest};

use super::manifest_body;
use super::stage::ClearStage;
use crate::member::consensus::stage::BlockDraft;
use crate::member::rounds::lead::Leading;
use crate::member::rounds::lead::gathered::{Gathered, RoundStage};
use crate::refusal::Refusal;

impl Leading<'_> {
    /// Takes over a manifest that was proposed in an earlier view, with its inclusions, so that no member
    /// has to contribute, score or sign again. Allowed if it covers every receipt given in this
    /// view, its entries are enough, and all of its models are here. Otherwise contributions are
    /// collected again. Gives whether it took over.
    pub(in crate::member) fn take_over_manifest(&mut self) -> bool {
        let Some((manifest, inclusions)) = self.round.proposed.clone() else {
            return false;
        };
        let Some(gathered) = &self.gathered else {
            return false;
        };
        let covered = gathered
            .receipts
            .values()
            .all(|id| manifest.position(id).is_some());
        let authors: Vec<_> = inclusions.iter().map(|(by, _)| *by).collect();
        let here = self.round.models.missing(&manifest.entries).is_empty();
        if !covered || !here || !self.timing().waiting().enough(&authors) {
            return false;
        }
        let root = manifest.root();
        let (round, view) = (self.round.number, self.view.number);
        let (message, frame) = self.config.sign(round, view, manifest_body(&manifest));
        self.out.publish(message, frame);
        self.decide(manifest, root, inclusions);
        true
    }

    /// Starts to decide on a manifest that all of its authors signed for.
    pub(in crate::member) fn decide(
        &mut self,
        manifest: Arc<RoundManifest>,
        root: Hash,
        inclusions: Inclusions,
    ) {
        let holders = self.config.holders(self.view.lead);
        let round = self.round.number;
        self.out.push(Effect::Work(Request::Decide {
            round,
            manifest: manifest.clone(),
            holders,
        }));
        self.set_stage(RoundStage::Clear(ClearStage::Deciding {
            manifest,
            root,
            inclusions,
        }));
    }

    /// A decision was made.
    ///
    /// # Errors
    /// Why this member votes against its own view: there is no decision.
    pub(in crate::member) fn decided(
        &mut self,
        root: Hash,
        result: Result<Vec<u8>, WorkError>,
    ) -> Result<(), Refusal> {
        let Some(gathered) = &mut self.gathered else {
            return Ok(());
        };
        let stage = std::mem::take(&mut gathered.stage);
        let RoundStage::Clear(ClearStage::Deciding {
            manifest,
            root: own,
            inclusions,
        }) = stage
        else {
            gathered.stage = stage;
            return Ok(());
        };
        if own != root {
            gathered.stage = RoundStage::Clear(ClearStage::Deciding {
                manifest,
                root: own,
                inclusions,
            });
            return Ok(());
        }
        let round = self.round.number;
        match result {
            Ok(decision) => {
                let case = Case::new(round, root, manifest, decision.into());
                let id = case.id();
                gathered.stage = RoundStage::Clear(ClearStage::Settling {
                    case: case.clone(),
                    id,
                    root,
                    inclusions,
                });
                if !self.round.cases.outcomes.contains_key(&id) {
                    let holders = self.config.holders(self.view.lead);
                    self.out
                        .push(Effect::Work(Request::Settle { case, holders }));
                }
                Ok(())
            }
            Err(error) => Err(self.work_failed("decide", error)),
        }
    }

    /// Work on a manifest failed: this member does not take over that manifest again, and votes against
    /// its own view for this reason.
    fn work_failed(&mut self, work: &'static str, error: WorkError) -> Refusal {
        self.round.proposed = None;
        Refusal::CouldNot { work, error }
    }

    /// Drafts the block of the round once its outcome is computed.
    ///
    /// # Errors
    /// Why this member votes against its own view: there is no outcome.
    pub(in crate::member) fn propose_settled(&mut self) -> Result<Option<BlockDraft>, Refusal> {
        let Some(Gathered {
            stage:
                RoundStage::Clear(ClearStage::Settling {
                    case,
                    id,
                    root,
                    inclusions,
                }),
            ..
        }) = &self.gathered
        else {
            return Ok(None);
        };
        let Some(result) = self.round.cases.outcomes.get(id).cloned() else {
            return Ok(None);
        };
        let (case, id, manifest, inclusions) = (case.clone(), *id, *root, inclusions.clone());
        let outcome = match result {
            Ok(outcome) => outcome,
            Err(error) => return Err(self.work_failed("compute the outcome", error)),
        };
        let Some(plan) = self.round.plan().map(|plan| plan.plan) else {
            return Ok(None);
        };
        // This member made the decision itself, so it need not check it.
        self.round.cases.accepted.insert(id);
        let learning = Learning {
            round: case.round,
            plan,
            manifest,
            inclusions,
            decision: case.decision.to_vec(),
            outcome,
        };
        let (parent, proof) = (self.chain.tip.hash, self.chain.tip.proof.clone());
        let content = Content::Learning(learning);
        Ok(Some(BlockDraft {
            content,
            parent,
            proof,
        }))
    }
}
