//! The lead of a round in clear: from the contributions to a block.
//!
//! | file | stages |
//! |---|---|
//! | `stage` | how far the lead is, once the set is closed |
//! | `admit` | what a contributed model must be, and the contribution list that closes the set |
//! | `manifest` | scores and inclusions, until all authors signed for the manifest |
//! | `propose` | the decision, its outcome, and the proposed block |

mod admit;
mod manifest;
mod propose;
pub(in crate::member) mod stage;

use crate::member::consensus::stage::BlockDraft;
use crate::member::rounds::lead::gathered::RoundStage;
use crate::member::rounds::lead::{LeadTiming, Leading};
use crate::message::{Body, Content, ContributionList, RoundManifest};
use crate::refusal::Refusal;
use crate::roster::MemberIndex;
use crate::time::Time;

use stage::ClearStage;

impl Leading<'_> {
    /// How far this lead is with a round in clear.
    fn clear(&self) -> Option<&ClearStage> {
        match &self.gathered.as_ref()?.stage {
            RoundStage::Clear(stage) => Some(stage),
            _ => None,
        }
    }

    /// Goes on with a round in clear. Gives a block to propose.
    ///
    /// # Errors
    /// Why this member votes against its own view.
    pub(in crate::member) fn go_on_in_clear(&mut self) -> Result<Option<BlockDraft>, Refusal> {
        match self.clear() {
            Some(ClearStage::Scoring { .. }) => self.collect_scores()?,
            Some(ClearStage::Including { .. }) => self.collect_inclusions()?,
            Some(ClearStage::Settling { .. }) => return self.propose_settled(),
            Some(ClearStage::Deciding { .. }) | None => {}
        }
        Ok(None)
    }

    /// What members have not answered in a round in clear.
    pub(in crate::member) fn unanswered_in_clear(&self) -> Option<(Body, Vec<MemberIndex>)> {
        let gathered = self.gathered.as_ref()?;
        Some(match self.clear()? {
            ClearStage::Scoring { entries, .. } => {
                let silent = |member: &MemberIndex| {
                    let scores = self.round.inbox.scores.get(member);
                    scores.is_none_or(|scores| scores.row(entries).is_none())
                };
                let body = Body::ContributionList(ContributionList {
                    entries: entries.clone(),
                });
                (
                    body,
                    gathered
                        .authors(entries)
                        .into_iter()
                        .filter(silent)
                        .collect(),
                )
            }
            ClearStage::Including {
                manifest, signed, ..
            } => {
                let silent = |member: &MemberIndex| !signed.contains_key(member);
                (
                    manifest_body(manifest),
                    self.config.others().into_iter().filter(silent).collect(),
                )
            }
            ClearStage::Deciding { .. } | ClearStage::Settling { .. } => return None,
        })
    }

    /// What the block of a round in clear rests on.
    pub(in crate::member) fn manifest_of(&self, content: &Content) -> Vec<Body> {
        let Content::Learning(learning) = content else {
            return Vec::new();
        };
        let manifest = self.round.manifests.get(&learning.manifest);
        manifest
            .map(|manifest| manifest_body(manifest))
            .into_iter()
            .collect()
    }
}

impl LeadTiming<'_> {
    /// When the spans end that a lead waits for in a round in clear.
    pub(in crate::member) fn deadlines_in_clear(&self) -> Vec<Time> {
        match self.gathered.map(|gathered| &gathered.stage) {
            Some(RoundStage::Clear(ClearStage::Scoring { entries, since })) => {
                vec![self.scores_due(entries, *since)]
            }
            Some(RoundStage::Clear(ClearStage::Including {
                manifest,
                since,
                signed,
                ..
            })) => vec![self.inclusions_due(&manifest.entries, signed, *since)],
            _ => Vec::new(),
        }
    }
}

/// How a manifest travels: without scores it is the contribution list.
fn manifest_body(manifest: &RoundManifest) -> Body {
    if manifest.scores.is_some() {
        Body::Manifest(manifest.clone())
    } else {
        Body::ContributionList(ContributionList {
            entries: manifest.entries.clone(),
        })
    }
}
