//! The round under way, as one member sees it.
//!
//! Everything here belongs to the round and its plan, never to a view: a change of view neither
//! stops nor restarts any of it, so no member trains twice. What outlives a round is kept in
//! [`adoption`](crate::member::rounds::adoption) and [`absences`](crate::member::rounds::absences).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::hash::Hash;
use crate::member::Inclusions;
use crate::member::rounds::clear::manifests::Manifests;
use crate::member::rounds::inbox::Inbox;
use crate::member::rounds::masked::kept::Masks;
use crate::member::rounds::own::OwnPart;
use crate::message::{Entry, RoundManifest};
use crate::roster::MemberIndex;
use crate::time::Time;
use crate::work::{Planned, WorkError};

/// The round under way.
pub(in crate::member) struct Round {
    pub(in crate::member) number: u64,
    /// When the last learning block became final here, or when this member started.
    pub(in crate::member) started: Time,
    pub(in crate::member) plan: RoundPlan,
    pub(in crate::member) own: OwnPart,
    pub(in crate::member) inbox: Inbox,
    pub(in crate::member) models: HeldModels,
    pub(in crate::member) manifests: Manifests,
    /// The root of the manifest that this member signs for once it holds all of its models.
    pub(in crate::member) signing: Option<Hash>,
    /// The manifest of a proposal of this round, with its inclusions: a later lead may take it over.
    pub(in crate::member) proposed: Option<(Arc<RoundManifest>, Inclusions)>,
    pub(in crate::member) cases: Cases,
    /// The lists and manifests of a masked round.
    pub(in crate::member) masks: Masks,
}

/// The plan of a round.
pub(in crate::member) enum RoundPlan {
    /// The state that it follows from is not adopted yet.
    NotRequested,
    Requested,
    Known {
        plan: Planned,
        /// The members that it names, ascending.
        participants: Vec<MemberIndex>,
    },
}

/// The models of the round's entries that are kept here, so that this member can give them to
/// others.
#[derive(Default)]
pub(in crate::member) struct HeldModels {
    held: BTreeSet<Hash>,
    /// A [`Request::Hold`](crate::work::Request::Hold) is not answered yet.
    pub(in crate::member) fetching: bool,
}

/// What this member computed about manifests and decisions, by [`Case::id`](crate::work::Case::id).
#[derive(Default)]
pub(in crate::member) struct Cases {
    /// Decisions found acceptable.
    pub(in crate::member) accepted: BTreeSet<Hash>,
    /// Hashes of outcomes, or why there is none.
    pub(in crate::member) outcomes: BTreeMap<Hash, Result<Hash, WorkError>>,
    /// Outcomes that others computed and that are kept here.
    pub(in crate::member) kept: BTreeSet<Hash>,
}

impl Round {
    pub(in crate::member) fn new(number: u64, now: Time) -> Self {
        Self {
            number,
            started: now,
            plan: RoundPlan::NotRequested,
            own: OwnPart::default(),
            inbox: Inbox::default(),
            models: HeldModels::default(),
            manifests: Manifests::default(),
            signing: None,
            proposed: None,
            cases: Cases::default(),
            masks: Masks::default(),
        }
    }

    /// Goes on to another round, because the one before it became final. Contributions to it that
    /// came early are kept.
    pub(in crate::member) fn advance_to(&mut self, number: u64, now: Time) {
        let mut next = Self::new(number, now);
        if number == self.number + 1 {
            next.inbox = self.inbox.of_next_round();
        }
        *self = next;
    }

    /// The plan, if it is known.
    pub(in crate::member) fn plan(&self) -> Option<&Planned> {
        match &self.plan {
            RoundPlan::Known { plan, .. } => Some(plan),
            RoundPlan::NotRequested | RoundPlan::Requested => None,
        }
    }

    /// The members that the plan names, ascending; empty before the plan is known.
    pub(in crate::member) fn participants(&self) -> &[MemberIndex] {
        match &self.plan {
            RoundPlan::Known { participants, .. } => participants,
            RoundPlan::NotRequested | RoundPlan::Requested => &[],
        }
    }

    /// Whether a member takes part in this round.
    pub(in crate::member) fn participates(&self, member: MemberIndex) -> bool {
        self.participants().binary_search(&member).is_ok()
    }
}

impl HeldModels {
    /// Notes that these models are kept here.
    pub(in crate::member) fn hold(&mut self, blobs: impl IntoIterator<Item = Hash>) {
        self.held.extend(blobs);
    }

    /// The entries whose models are not kept here.
    pub(in crate::member) fn missing(&self, entries: &[Entry]) -> Vec<Entry> {
        let missing = |entry: &&Entry| !self.held.contains(&entry.fields.blob);
        entries.iter().filter(missing).cloned().collect()
    }
}
