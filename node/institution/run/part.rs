//! What part a node takes in an epoch: it learns, or it only listens and votes on changes.

use std::io;

use bytes::Bytes;
use methods::strategy::largest_contribution;
use protocol::{Hash, member};

use crate::institution::agreement::in_force::Present;
use crate::institution::agreement::signed::{Owed, SignatureState};
use crate::institution::config::{Data, Institution};
use crate::institution::error::NodeError;
use crate::institution::report::far_columns::ScaleWatch;
use crate::institution::serve::Serving;
use crate::institution::start::ability::{Living, examine, living};
use crate::institution::start::role::{NodeRole, serving, silo_config};
use crate::model::{self, HeldRounds};
use crate::policy::ProposedRounds;

/// What the institution's policy refuses of the agreement in force, in a sentence without a full stop.
fn refused(institution: &Institution, living: &Living) -> Option<String> {
    let agreement = &institution.agreement;
    let learner = &*living.equipment.equipped;
    let names = match &institution.data {
        Data::Rows(rows) => Some(&rows.names),
        Data::Share { .. } | Data::Program => None,
    };
    let refusals = institution.site.refusals(&ProposedRounds {
        agreement,
        me: Some(institution.me),
        rows: living.equipment.own_rows.then(|| learner.samples()),
        bytes: largest_contribution(&*agreement.strategy, learner),
        names,
    });
    let why: Vec<_> = refusals.into_iter().map(|refusal| refusal.why).collect();
    (!why.is_empty()).then(|| {
        format!(
            "the institution's policy lets this node vote but not contribute: {}",
            why.join("; ")
        )
    })
}

/// The part of a node in an epoch.
pub(super) struct EpochPart {
    /// What the node learns with; `None` where it can learn nothing under the agreement in force.
    pub(super) living: Option<Living>,
    /// Why it only listens and votes on changes.
    pub(super) bystander: Option<String>,
    /// The institution's signature under the agreement in force, where it is missing.
    pub(super) owed: Option<Owed>,
    /// Why the institution's own policy lets it contribute nothing under the agreement in force.
    pub(super) refused: Option<String>,
}

impl EpochPart {
    /// The part of a member in the epoch in force.
    ///
    /// # Errors
    /// [`NodeError`]: what is wrong with the institution's own files.
    pub(super) fn of(present: &Present) -> Result<Self, NodeError> {
        let (living, bystander) = match living(present)? {
            Ok(living) => (Some(living), None),
            Err(why) => (None, Some(why)),
        };
        let refused = living
            .as_ref()
            .and_then(|living| refused(&present.institution, living));
        let owed = match &present.signature {
            // A signature would not help where the policy refuses.
            SignatureState::Owed(owed) if bystander.is_none() && refused.is_none() => {
                Some((**owed).clone())
            }
            _ => None,
        };
        Ok(Self {
            living,
            bystander,
            owed,
            refused,
        })
    }

    /// Rows that the node learns from; 0 where it only listens.
    pub(super) fn rows(&self) -> u64 {
        let own = self.living.as_ref();
        own.map_or(0, |living| living.equipment.equipped.samples())
    }

    /// What is said of own rows that cannot be read and count as nothing. It is for the institution alone.
    pub(super) fn unreadable(&self) -> &[String] {
        let own = self.living.as_ref();
        own.map_or(&[], |living| &living.equipment.unreadable)
    }

    /// Keeps the preparation of the rows and the model that the federation starts from beside the
    /// journal.
    ///
    /// # Errors
    /// [`NodeError`]: a file that cannot be written.
    pub(super) fn keep(&self, institution: &Institution) -> Result<(), NodeError> {
        if let Some(Living {
            start, equipment, ..
        }) = &self.living
        {
            if let Some(preparation) = &equipment.plain.preparation {
                model::keep_preparation(&institution.state, preparation)?;
            }
            if let Some(start) = start {
                model::keep_start(&institution.state, start)?;
            }
        }
        Ok(())
    }

    /// The protocol's configuration, with a seed of its own. `follow` is the recovery to follow that the
    /// institution did not sign.
    ///
    /// # Errors
    /// [`NodeError`]: the operating system gives no random numbers.
    pub(super) fn member(
        &self,
        institution: &Institution,
        follow: Option<Hash>,
    ) -> Result<member::Config, NodeError> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(io::Error::other)?;
        let (key, me) = (institution.key.clone(), institution.me);
        let epoch = institution.agreement.epoch.clone();
        let mut member = member::Config::new(epoch, me, key, seed);
        member.follow = follow;
        member.examine = examine(&institution.agreement);
        member.bystander = self.bystander.clone();
        member.paused = self.owed.is_some() || self.refused.is_some();
        Ok(member)
    }

    /// What chooses the model that is served; `held` is what the state held when the node started.
    pub(super) fn serving(
        &self,
        institution: &Institution,
        held: Option<&HeldRounds>,
    ) -> Option<Serving> {
        self.living
            .as_ref()
            .map(|living| serving(institution, living.equipment.clone(), held))
    }

    /// What warns of columns that are far from the other members'.
    pub(super) fn columns(&self, institution: &Institution) -> Option<ScaleWatch> {
        self.living
            .as_ref()
            .map(|living| ScaleWatch::new(institution, living.equipment.equipped.clone()))
    }

    /// The model that the federation starts from, as a blob for other members, where it is a given one.
    pub(super) fn start(&self) -> Option<(Hash, Bytes)> {
        let start = self
            .living
            .as_ref()
            .and_then(|living| living.start.as_ref());
        start.map(|start| (Hash(start.hash()), start.document()))
    }

    /// How the silo takes part, where its journal was `lost` or not.
    pub(super) fn role(&self, present: &Present, member: member::Config, lost: bool) -> NodeRole {
        match &self.living {
            Some(living) => NodeRole::Learner(Box::new(silo_config(present, living, member, lost))),
            None => NodeRole::Bystander(Box::new(member), lost, present.former.clone()),
        }
    }
}
