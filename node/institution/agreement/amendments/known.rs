//! An amendment as a node knows it.

use std::sync::Arc;

use agreement::Agreement;
use protocol::message::Amendment;
use protocol::{Epoch, Formats, Genesis, Hash, MemberIndex};
use serde::{Deserialize, Serialize};

use crate::federation::{OwnSide, changed_words_for, too_large};

/// An amendment as a node knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownAmendment {
    /// The epoch that it would end.
    pub epoch: Hash,
    /// The amendment.
    pub amendment: Amendment,
    /// The members that approve it, as far as this node knows, ascending.
    pub approved: Vec<MemberIndex>,
    /// Number of approvals that it needs.
    pub needed: u64,
}

impl KnownAmendment {
    /// Hash of the amendment.
    pub fn hash(&self) -> Hash {
        self.amendment.hash()
    }

    /// Why this program cannot follow it, if it cannot.
    pub fn unspoken(&self) -> Option<String> {
        let spoken = self.amendment.is_spoken(Formats::SPOKEN);
        spoken.err().map(|why| why.to_string())
    }

    /// The agreement that it would bring into force after this one.
    ///
    /// # Errors
    /// Why its text cannot be read.
    pub fn after(&self, agreement: &Agreement) -> Result<Agreement, String> {
        let genesis = Genesis {
            silos: self.amendment.silos.clone(),
            protocol: self.amendment.protocol.clone(),
        };
        let format = self.amendment.format;
        let epoch = Epoch::first_in(format, &genesis).map_err(|error| error.to_string())?;
        let after = agreement.after(&self.amendment, Arc::new(epoch));
        after.map_err(|error| error.to_string())
    }

    /// The institutions that have to approve it whatever a quorum says, because the group in which they are
    /// added up changes, and have not.
    pub fn unheard<'a>(&self, epoch: &'a Epoch) -> Vec<&'a str> {
        let concerned = self.amendment.concerned(epoch).into_iter();
        let unheard = concerned.filter(|member| !self.approved.contains(member));
        unheard.map(|member| epoch.roster.name(member)).collect()
    }

    /// Returns what the amendment changes, one line each, for an institution whose own side is this now, and `after` an
    /// agreement comes into force.
    ///
    /// # Errors
    /// Why its text cannot be read.
    pub fn lines(
        &self,
        agreement: &Agreement,
        own: &OwnSide,
        after: impl Fn(&Agreement) -> OwnSide,
    ) -> Result<Vec<String>, String> {
        let new = self.after(agreement)?;
        // Sizes first: what follows computes with them.
        if let Some(why) = too_large(&new) {
            return Err(why);
        }
        let mut lines = changed_words_for((agreement, own), (&new, &after(&new)));
        // It stands in the amendment, and in no agreement.
        let silos = agreement.epoch.roster.silos().iter();
        for silo in silos.filter(|silo| self.amendment.stolen.contains(&silo.key)) {
            lines.push(format!(
                "the old key of {} is declared stolen: nodes refuse whoever uses it",
                silo.name
            ));
        }
        Ok(lines)
    }
}
