//! Recoveries, as far as this member knows: its own standing and confirmation, those of others, and when it may sign
//! for another set.

use std::collections::BTreeSet;

use crate::effects::{OwnConfirmation, Report};
use crate::hash::Hash;
use crate::identity::Signature;
use crate::member::ByMember;
use crate::message::{Body, Confirmation, Message, Standing};
use crate::roster::MemberIndex;
use crate::time::Time;

/// Members declared lost.
pub(in crate::member) type Lost = Vec<MemberIndex>;
/// The last standings of members, with their signatures.
pub(in crate::member) type Standings = ByMember<(Standing, Signature)>;

/// Messages that members have signed about continuing without others.
#[derive(Default)]
pub(in crate::member) struct Recoveries {
    /// Wish of this member's institution that the member has not signed yet.
    pub(in crate::member) wanted: Option<Wanted>,
    /// The last standing that this member has signed.
    pub(in crate::member) own: Option<Message>,
    /// The last standings of members, this one included.
    pub(in crate::member) heard: Standings,
    /// Last confirmation of this member, unless a member of it has given it up.
    pub(in crate::member) confirmed: Option<OwnConfirmation>,
    /// Number of this member's last confirmation.
    pub(in crate::member) confirmations: u64,
    /// The last confirmations of members: number, set and signature.
    pub(in crate::member) confirmed_by: ByMember<(u64, Hash, Signature)>,
    /// The institution knows that what was confirmed will never be completed elsewhere.
    pub(in crate::member) abandon: bool,
    /// Signers of recoveries that leave this member out and were reported.
    pub(in crate::member) told: BTreeSet<Vec<MemberIndex>>,
    /// Last report of standings, and of a correction that waits.
    pub(in crate::member) reported: [Option<Report>; 2],
    /// A set of standings that do not fit together, which was reported.
    pub(in crate::member) misfit: Option<Hash>,
    /// The highest number of a standing of this member's key that is not in its journal.
    pub(in crate::member) reminded: u64,
    pub(in crate::member) pause: u32,
}

/// Wish of an institution.
pub(in crate::member) struct Wanted {
    pub(in crate::member) lost: Lost,
    pub(in crate::member) since: Time,
}

impl Recoveries {
    /// Returns true if this member has signed, and so does nothing more in this epoch.
    pub(in crate::member) fn signed(&self) -> bool {
        self.own.is_some()
    }

    /// Returns true if timers have to run.
    pub(in crate::member) fn runs(&self) -> bool {
        self.signed() || self.wanted.is_some()
    }

    /// Takes back what this member signed before a restart.
    pub(in crate::member) fn restore(&mut self, message: Message) {
        if let Body::Standing(standing) = &message.body {
            self.add(message.sender, (**standing).clone(), message.signature);
            self.own = Some(message);
        }
    }

    /// Takes back what this member confirmed before a restart.
    pub(in crate::member) fn restore_confirmed(&mut self, own: OwnConfirmation) {
        for (by, standing, signature) in &own.standings {
            self.add(*by, standing.clone(), *signature);
        }
        self.add_own_confirmation(own);
    }

    pub(in crate::member) fn add_own_confirmation(&mut self, own: OwnConfirmation) {
        if let Body::Confirmation(confirmation) = &own.message.body {
            let Confirmation { number, set } = **confirmation;
            self.confirmations = number;
            let word = (number, set, own.message.signature);
            self.confirmed_by.insert(own.message.sender, word);
            self.confirmed = Some(own);
        }
    }

    /// Keeps a standing; false if it or a later one of its member is known.
    pub(in crate::member) fn add(
        &mut self,
        by: MemberIndex,
        standing: Standing,
        signature: Signature,
    ) -> bool {
        let known = self.heard.get(&by);
        let later = known.is_some_and(|(last, _)| last.number >= standing.number);
        if later {
            return false;
        }
        self.heard.insert(by, (standing, signature));
        true
    }

    /// The members that this member's last standing declares lost.
    pub(in crate::member) fn lost(&self) -> Option<&Lost> {
        match &self.own.as_ref()?.body {
            Body::Standing(standing) => Some(&standing.lost),
            _ => None,
        }
    }

    /// The members of the confirmed set whose confirmation of it is not known here.
    pub(in crate::member) fn unconfirmed(&self, own: &OwnConfirmation) -> Vec<MemberIndex> {
        let of_own = self.confirmed_by.get(&own.message.sender);
        let set = of_own.map(|(_, set, _)| *set);
        let members = own.standings.iter().map(|(by, ..)| *by);
        let confirms = |by: &MemberIndex| self.confirmed_by.get(by).map(|(_, set, _)| *set) == set;
        members.filter(|by| !confirms(by)).collect()
    }

    /// Returns true if this member may confirm another set than it has confirmed: it has confirmed none, a member of it
    /// has signed a later standing and so never confirms it, or the institution knows that all that may have completed
    /// it are gone for good and among the `lost`.
    pub(in crate::member) fn is_free(&self, lost: &[MemberIndex]) -> bool {
        let Some(own) = &self.confirmed else {
            return true;
        };
        // Its own later standing says that this member was free when it signed it.
        let given_up = own.standings.iter().any(|(by, standing, _)| {
            let last = self.heard.get(by);
            last.is_some_and(|(last, _)| last.number > standing.number)
        });
        let abandoned = || {
            let open = self.unconfirmed(own);
            self.abandon && !open.is_empty() && open.iter().all(|by| lost.contains(by))
        };
        given_up || abandoned()
    }

    /// The last standings of all that remain without these, if all name the same lost members.
    pub(in crate::member) fn complete_set(
        &self,
        remaining: &[MemberIndex],
        lost: &Lost,
    ) -> Option<Standings> {
        let of = |by: &MemberIndex| {
            let (standing, signature) = self.heard.get(by)?;
            let same = standing.lost == *lost;
            same.then(|| (*by, (standing.clone(), *signature)))
        };
        remaining.iter().map(of).collect()
    }
}
