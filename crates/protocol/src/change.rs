//! Changes of the agreement: what a change of roster or parameter set needs, and the epoch that follows.
//!
//! An *epoch* is the time in which one roster and one parameter set are in force. An institution writes
//! the next agreement down as an [`Amendment`]; the institutions of a quorum of members approve it
//! with their keys. Any lead may then propose a block with it, a [`Change`]. Once that block is
//! final, the epoch is over, and the next one begins with the block as its genesis: views restart
//! at 1, and nothing that was signed in one epoch counts in another, because every signature names
//! its epoch.

use crate::certificate::{CertificateError, Verdict};
use crate::format::Formats;
use crate::identity::{PublicKey, Verifier};
use crate::message::{Amendment, Block, Change, Content, Passage, Recovery};
use crate::parameters::{Checkpoint, Epoch, ParametersError};
use crate::recovery::{RecoveryError, remaining};
use crate::roster::{MemberIndex, Roster, RosterError, faulty};
use crate::verify::{approvals_hold, standings_hold};

/// Most bytes of an amendment's text.
pub const TEXT: usize = 256 << 10;

/// Why an amendment or a change is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// An unusable roster or parameter set.
    #[error("the amended agreement cannot be used: {0}")]
    ProtocolParameters(#[from] ParametersError),
    /// Another state to start from. The federation goes on from its last outcome.
    #[error(
        "the amended agreement starts from another state: a change of task, model or strategy \
         needs a new federation"
    )]
    Start,
    /// An older format than that in force.
    #[error(
        "the amended agreement has message format {got}, the one in force has {now}: a format can \
         only be raised"
    )]
    Lowered {
        /// Format of the amended agreement.
        got: u8,
        /// The format in force.
        now: u8,
    },
    /// A format that this program does not speak.
    #[error(
        "the amended agreement needs message format {got}, this program speaks {spoken}: update it, \
         and then approve the amendment"
    )]
    Format {
        /// The format.
        got: u8,
        /// What this program speaks.
        spoken: Formats,
    },
    /// A recovery that breaks a rule.
    #[error(transparent)]
    Recovery(#[from] RecoveryError),
    /// A text that is too long.
    #[error("the text of the amended agreement has {got} bytes, at most {TEXT} are allowed")]
    Text {
        /// Length of the text in bytes.
        got: usize,
    },
    /// Fewer rounds than are final.
    #[error("the amended agreement ends after round {last}, round {now} is final already")]
    Rounds {
        /// Last round of the amended agreement.
        last: u64,
        /// The last final round.
        now: u64,
    },
    /// Too few approvals, or not of distinct members in ascending order.
    #[error(
        "the change has {got} approvals of distinct members in ascending order, it needs {needed}"
    )]
    Approvals {
        /// Approvals, if they are in order; else 0.
        got: usize,
        /// How many are needed.
        needed: usize,
    },
    /// A change of groups that shows updates, without the approval of all whom it concerns.
    #[error(
        "the change makes updates of single institutions visible, so all institutions of the groups that \
         change have to approve it, and {missing} of them have not"
    )]
    Consent {
        /// How many have not.
        missing: usize,
    },
    /// A change that follows another round than the last final one.
    #[error("the change follows round {got}, the last final round is {now}")]
    After {
        /// The round that it names.
        got: u64,
        /// The last final round.
        now: u64,
    },
    /// A stolen key that is not one of the present roster, stays in the roster, or is out of order.
    #[error(
        "the keys named as stolen must be keys of present members that are replaced, each once and in ascending order"
    )]
    Stolen,
    /// This institution's node cannot follow it.
    #[error("{0}")]
    Objection(String),
    /// As many of a member's proposals and approvals are open as are kept.
    #[error(
        "{kept} changes are open that this member proposed or approved, and more are not kept: \
         withdraw one with `rota federation withdraw`"
    )]
    Full {
        /// How many are kept.
        kept: usize,
    },
    /// A member's open changes have as many bytes as are kept.
    #[error(
        "the open changes that this member proposed or approved would have more than {kept} bytes together, and more \
         are not kept: withdraw one with `rota federation withdraw`, or shorten the text"
    )]
    Large {
        /// How many bytes are kept.
        kept: usize,
    },
    /// The block holds no change, or is one of another epoch.
    #[error("the block does not change the agreement of this epoch")]
    NoChange,
}

impl Amendment {
    /// Whether this amendment may follow `epoch`, whatever the number of rounds.
    ///
    /// # Errors
    /// [`ChangeError`]: an unusable roster or parameter set, or another state to start from.
    pub fn check(&self, epoch: &Epoch) -> Result<(), ChangeError> {
        self.roster(epoch).map(drop)
    }

    /// Whether a program that speaks these formats can follow it. One that cannot neither approves nor
    /// votes for it; if enough others do, it stops where it comes into force.
    ///
    /// # Errors
    /// [`ChangeError::Format`].
    pub fn is_spoken(&self, spoken: Formats) -> Result<(), ChangeError> {
        let got = self.format;
        if spoken.contains(got) {
            Ok(())
        } else {
            Err(ChangeError::Format { got, spoken })
        }
    }

    fn roster(&self, epoch: &Epoch) -> Result<Roster, ChangeError> {
        let got = self.text.len();
        if got > TEXT {
            return Err(ChangeError::Text { got });
        }
        let (got, now) = (self.format, epoch.format);
        if got < now {
            return Err(ChangeError::Lowered { got, now });
        }
        let unusable = |error: RosterError| ChangeError::ProtocolParameters(error.into());
        let roster = Roster::new(self.silos.clone()).map_err(unusable)?;
        // Members that do not speak the format of masked rounds could not read the parameter set: the format is
        // raised first.
        self.protocol
            .validate(self.format.min(epoch.format), &roster)?;
        if self.protocol.start != epoch.protocol.start {
            return Err(ChangeError::Start);
        }
        let ascending = self.stolen.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let replaced = |key: &PublicKey| {
            epoch.roster.position(key).is_some() && roster.position(key).is_none()
        };
        if ascending && self.stolen.iter().all(replaced) {
            Ok(roster)
        } else {
            Err(ChangeError::Stolen)
        }
    }

    /// Keys of its roster that are not in the present one, in the order of the roster: those of new
    /// members, and new ones of present members.
    pub fn new_keys(&self, epoch: &Epoch) -> Vec<PublicKey> {
        let keys = self.silos.iter().map(|silo| silo.key);
        keys.filter(|key| epoch.roster.position(key).is_none())
            .collect()
    }

    /// Number of approvals that it needs: a quorum, or all that are [concerned](Self::concerned) if these
    /// are more; one where a member leaves by itself.
    pub fn needed(&self, epoch: &Epoch) -> usize {
        match self.leaver(epoch) {
            Some(_) => 1,
            None => epoch.roster.quorum().max(self.concerned(epoch).len()),
        }
    }

    /// The member that leaves by itself, if that is all that the amendment does: the others stay in
    /// their order, the parameter set stays the same (with as many contributions as there can be), and
    /// there is no other text to approve. Where fewer faulty members would be tolerated afterwards (f
    /// of the roster falls: three of four, six of seven, nine of ten remain), the others have to approve.
    pub fn leaver(&self, epoch: &Epoch) -> Option<MemberIndex> {
        let now = epoch.roster.silos();
        let gone = now.iter().zip(self.silos.iter().map(Some).chain([None]));
        let gone = gone.into_iter().position(|(old, new)| Some(old) != new)?;
        let (before, after) = (&now[..gone], &now[gone + 1..]);
        let rest = before.iter().chain(after);
        let same = now.len() == self.silos.len() + 1 && rest.eq(&self.silos);
        (self.text.is_empty()
            && self.format == epoch.format
            && same
            && self.stolen.is_empty()
            && faulty(now.len()) == faulty(self.silos.len())
            && self.protocol == epoch.protocol.for_members(now.len(), self.silos.len()))
        .then_some(MemberIndex(gone as u16))
    }

    /// The amendment with which a member leaves by itself.
    pub fn leaving(epoch: &Epoch, member: MemberIndex) -> Self {
        let mut silos = epoch.roster.silos().to_vec();
        silos.remove(member.at());
        Self {
            format: epoch.format,
            protocol: epoch.protocol.for_members(epoch.roster.len(), silos.len()),
            silos,
            text: Vec::new(),
            stolen: Vec::new(),
        }
    }
}

impl Change {
    /// Whether this change may be the next block of an epoch whose last final round is `after`. The
    /// signatures are checked where the message is opened.
    ///
    /// # Errors
    /// [`ChangeError`]: the first rule that it breaks.
    pub fn check(&self, epoch: &Epoch, after: &Checkpoint) -> Result<(), ChangeError> {
        self.amendment.check(epoch)?;
        self.follows(epoch, after)
    }

    /// What [`check`](Self::check) asks beside that the amendment itself may follow the epoch.
    pub(crate) fn follows(&self, epoch: &Epoch, after: &Checkpoint) -> Result<(), ChangeError> {
        if self.after != *after {
            let (got, now) = (self.after.round, after.round);
            return Err(ChangeError::After { got, now });
        }
        let (last, now) = (self.amendment.protocol.rounds, after.round);
        if last < now {
            return Err(ChangeError::Rounds { last, now });
        }
        self.check_approvals(epoch)
    }

    fn check_approvals(&self, epoch: &Epoch) -> Result<(), ChangeError> {
        let needed = self.amendment.needed(epoch);
        let ascending = self
            .approvals
            .windows(2)
            .all(|pair| pair[0].by < pair[1].by);
        let leaver = self.amendment.leaver(epoch);
        let counts = |by: &MemberIndex| leaver.is_none_or(|leaver| leaver == *by);
        let got = self.approvals.iter();
        let got = got.filter(|approval| counts(&approval.by)).count();
        let missing = self.unheard(epoch).len();
        if ascending && got >= needed && missing > 0 {
            return Err(ChangeError::Consent { missing });
        }
        if ascending && got >= needed {
            Ok(())
        } else {
            Err(ChangeError::Approvals {
                got: if ascending { got } else { 0 },
                needed,
            })
        }
    }
}

impl Recovery {
    /// Whether the members that remain can go on under the agreement in force.
    ///
    /// # Errors
    /// [`ChangeError`]: who is lost is no choice of members, or too few remain for masked rounds.
    pub(crate) fn is_possible(epoch: &Epoch, lost: &[MemberIndex]) -> Result<(), ChangeError> {
        let remaining = remaining(epoch, lost)?;
        let silos = epoch.roster.silos();
        let silos = remaining.iter().map(|member| silos[member.at()].clone());
        let roster = Roster::new(silos.collect()).map_err(ParametersError::from)?;
        let (before, after) = (epoch.roster.len(), roster.len());
        let protocol = epoch.protocol.for_members(before, after);
        Ok(protocol.validate(epoch.format, &roster)?)
    }
}

impl Epoch {
    /// The epoch that begins with a final block of this one.
    ///
    /// # Errors
    /// [`ChangeError`]: the block holds no change, or one that breaks a rule.
    pub fn next(&self, block: &Block) -> Result<Self, ChangeError> {
        let here = |block: &&Block| block.epoch == self.id;
        let own = Some(block).filter(here);
        if let Some(recovery) = own.and_then(Block::recovery) {
            let (silos, protocol) = recovery.check(self, block)?;
            let unusable = |error: RosterError| ChangeError::ProtocolParameters(error.into());
            let roster = Roster::new(silos).map_err(unusable)?;
            protocol.validate(self.format, &roster)?;
            let (id, after) = (block.hash(), recovery.after);
            return Ok(self.followed_by(id, after, self.format, roster, protocol));
        }
        let change = own.and_then(Block::change).ok_or(ChangeError::NoChange)?;
        let roster = change.amendment.roster(self)?;
        change.follows(self, &change.after)?;
        let (format, protocol) = (change.amendment.format, change.amendment.protocol.clone());
        Ok(self.followed_by(block.hash(), change.after, format, roster, protocol))
    }
}

/// Why a passage proves nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PassageError {
    /// The blocks are not a change and empty blocks after it, the last of them final.
    #[error("its blocks are not a change, empty blocks after it, and a proof for the last")]
    Blocks,
    /// The change breaks a rule.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// The approvals do not verify.
    #[error("an approval of the change is not its member's signature")]
    Approvals,
    /// The certificate proves nothing.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
}

impl Passage {
    /// Checks everything in it, and gives the epoch that it leads to.
    ///
    /// # Errors
    /// [`PassageError`]: the first check that fails.
    pub fn verify(&self, epoch: &Epoch, verifier: &dyn Verifier) -> Result<Epoch, PassageError> {
        let (Some(first), Some(last)) = (self.blocks.first(), self.blocks.last()) else {
            return Err(PassageError::Blocks);
        };
        if let Some(recovery) = first.recovery() {
            return self.verify_recovery(epoch, verifier, first, recovery);
        }
        let linked = |pair: &[Block]| {
            pair[1].parent == pair[0].hash()
                && pair[1].epoch == epoch.id
                && pair[1].content == Content::Empty
        };
        let whole = self.blocks.windows(2).all(linked);
        if !whole || self.proof.verdict != Verdict::Final(last.hash()) {
            return Err(PassageError::Blocks);
        }
        self.proof.verify(epoch, verifier)?;
        let change = self.change().ok_or(ChangeError::NoChange)?;
        if !approvals_hold(epoch, verifier, change) {
            return Err(PassageError::Approvals);
        }
        Ok(epoch.next(first)?)
    }

    /// Checks signatures and the proof of a recovery.
    fn verify_recovery(
        &self,
        epoch: &Epoch,
        verifier: &dyn Verifier,
        block: &Block,
        recovery: &Recovery,
    ) -> Result<Epoch, PassageError> {
        let next = epoch.next(block)?;
        if self.blocks.len() != 1 || self.proof.verdict != Verdict::Final(block.parent) {
            return Err(PassageError::Blocks);
        }
        if block.parent == epoch.id {
            if self.proof != Recovery::no_proof(epoch) {
                return Err(PassageError::Blocks);
            }
        } else {
            if self.proof.view + 1 != block.view {
                return Err(PassageError::Blocks);
            }
            self.proof.verify(epoch, verifier)?;
        }
        if standings_hold(epoch, verifier, recovery) {
            Ok(next)
        } else {
            Err(ChangeError::from(RecoveryError::Signature).into())
        }
    }
}
