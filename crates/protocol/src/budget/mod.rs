//! What every member may cost this one: a budget per neighbour, and one per signer and kind,
//! charged before anything costly is done.
//!
//! A *neighbour* is the member whose connection bytes came from; the *signer* is who signed them.
//! Directly a member says only what it signed itself, and certificates and evidence, which stand
//! alone. By gossip a neighbour passes on what others signed, after it checked it, so it is fair
//! that a neighbour pays for everything that comes from it.
//!
//! | budget of | for | comes back |
//! |---|---|---|
//! | a neighbour | signature checks | [`CHECKS`] a second, and what one view of all members costs with every view entered |
//! | a neighbour | evidence; blobs asked for | a little every beat; blobs also with every view |
//! | a neighbour | answers to SyncRequests | one for every question that was sent to it |
//! | a signer | each kind of message | what an honest member says in one beat, and in one view |
//!
//! Time alone would not do: a fast federation ends hundreds of views in one beat. One member alone
//! brings nobody into a new view, so it cannot fill its own budget that way. Votes of views without
//! a certificate are all said again with every beat, so their budget grows with the views since the
//! last final block.
//!
//! What does not open costs a neighbour several times what it cost here, and counts as an offence:
//! after [`OFFENCES`] of them it is muted, for a time that doubles. Whoever goes on far beyond its
//! budget is muted too. Nothing that is dropped is lost for good, because members say everything
//! again that was not answered.
//!
//! Nobody spends another's budget: for gossip the signer's is only looked at before its signature
//! was checked, and charged after it held; and what was signed for views that are over, which
//! anybody may say again, is dropped before that.
//!
//! Pure: the time is handed in.

mod bucket;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::time::Duration;

use crate::charter::Epoch;
use crate::envelope::{OVERHEAD, OpenError, Opened};
use crate::message::{Body, Kind};
use crate::roster::MemberIndex;
use crate::time::Time;

pub use bucket::{Bucket, Offences, Rate};

/// Signature checks a second that one neighbour may cost: 4.5 % of a core at 45 µs each.
pub const CHECKS: u64 = 1000;
/// What a check that failed costs, in checks.
const FAILED: u64 = 10;
/// The same where only something inside did not hold. Whoever passed it on may have found it valid:
/// single signatures and batches are checked by different equations.
const FAILED_INSIDE: u64 = 3;
/// The least that opening a message costs in which many signatures may be, in checks: it is decoded
/// elsewhere, and compared with what is known.
const LEAST: u64 = 4;
/// Offences that are tolerated, and one more in every [`OFFENCE`].
pub const OFFENCES: u64 = 10;
const OFFENCE: Duration = Duration::from_secs(10);
/// Messages beyond a budget that are dropped without more ado, and how many more a second.
const EXCESS: (u64, u64) = (500, 50);
/// Views without a final block that votes are given room for.
const FAILED_VIEWS: u64 = 4096;
/// Answers that may be outstanding from one member.
const ANSWERS: u8 = 8;
/// Views that a member must have come on since it asked from the furthest, for a SyncRequest to be
/// free: an answer brings the certificates of that many views at least.
const PROGRESS: u64 = 16;
/// Blobs that a member may ask for at once, in each of two ways to count: see [`Budget::asks`].
const ASKS: u64 = 4096;

/// Why a message was not looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Denied {
    /// Its neighbour is muted.
    #[error("it is muted")]
    Muted,
    /// Its neighbour has no signature checks left.
    #[error("it cost more signature checks than a neighbour may")]
    Checks,
    /// Its signer said more of that kind than a member has to say.
    #[error("more messages of the kind {0:?} than a member has to say")]
    Said(Kind),
    /// A neighbour sent what another member is said to have signed.
    #[error("it sent directly what it did not sign itself")]
    Foreign,
    /// A kind that goes from one member to another came to all.
    #[error("it gave to all what goes to one member, of the kind {0:?}")]
    Private(Kind),
    /// Of a view that is over, or below the last final block.
    #[error("of a view that is over")]
    Stale,
    /// An answer without a question.
    #[error("an answer that nobody asked for")]
    Unasked,
    /// Evidence against a member that is known to be faulty.
    #[error("evidence against a member that is already known to be faulty")]
    Repeated,
}

impl Denied {
    /// Whether no honest member causes it.
    fn is_offence(self) -> bool {
        matches!(self, Self::Foreign | Self::Private(_))
    }

    /// Whether it says that somebody is beyond a budget.
    fn is_excess(self) -> bool {
        matches!(self, Self::Checks | Self::Said(_) | Self::Unasked)
    }
}

/// How a message came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    /// From the neighbour, to this member.
    Direct,
    /// Passed on by the neighbour.
    Gossip,
}

/// A message that may be opened; to be handed back with the result.
#[derive(Debug)]
pub struct Admitted {
    from: MemberIndex,
    path: Path,
    claim: Claim,
    /// Checks that were charged.
    charged: u64,
}

impl Admitted {
    /// Its kind, if it has one.
    pub fn kind(&self) -> Option<Kind> {
        self.claim.kind
    }
}

/// What a sealed message says of itself. Nothing is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Claim {
    view: u64,
    /// Of the roster; none for what stands alone or is signed by a stranger.
    signer: Option<MemberIndex>,
    kind: Option<Kind>,
}

impl Claim {
    /// Reads the fixed part of an envelope: see [`envelope`](crate::envelope).
    fn read(bytes: &[u8], members: usize) -> Self {
        let Some(head) = bytes.first_chunk::<OVERHEAD>() else {
            return Self {
                view: 0,
                signer: None,
                kind: None,
            };
        };
        let mut view = [0; 8];
        view.copy_from_slice(&head[73..81]);
        let signer = MemberIndex(u16::from_le_bytes([head[81], head[82]]));
        Self {
            view: u64::from_le_bytes(view),
            signer: (signer.at() < members).then_some(signer),
            kind: Kind::from_number(head[83]),
        }
    }
}

/// The kind that the bytes of a sealed message say they are.
pub fn kind(bytes: &[u8]) -> Option<Kind> {
    Claim::read(bytes, 0).kind
}

/// What a neighbour has left.
struct Neighbour {
    checks: Bucket,
    evidence: Bucket,
    asks: Bucket,
    /// Questions to it that it may still answer.
    answers: u8,
    offences: Offences,
    excess: Offences,
}

/// What a signer has left, by kind.
struct Signer {
    kinds: [Bucket; Kind::ALL.len()],
    /// The furthest view from which it asked what became final.
    asked: u64,
}

/// The budgets of all members, as one of them keeps them.
pub struct Budget {
    members: usize,
    faulty: u64,
    quorum: usize,
    beat: Duration,
    view: u64,
    /// View of the last final block.
    last_final: u64,
    /// Views entered.
    views: u64,
    neighbours: Vec<Neighbour>,
    signers: Vec<Signer>,
    /// Members that evidence was let in against.
    accused: BTreeSet<MemberIndex>,
}

impl Budget {
    /// Of a member that comes to life.
    pub fn new(epoch: &Epoch, now: Time) -> Self {
        let members = epoch.roster.len();
        let mut budget = Self {
            members,
            faulty: epoch.roster.faulty() as u64,
            quorum: epoch.roster.quorum(),
            beat: epoch.beat(),
            view: 0,
            last_final: 0,
            views: 0,
            neighbours: Vec::new(),
            signers: Vec::new(),
            accused: BTreeSet::new(),
        };
        let (checks, evidence, asks) = (budget.checks(), budget.evidence(), budget.asks());
        let neighbour = || Neighbour {
            checks: Bucket::full(&checks, now),
            evidence: Bucket::full(&evidence, now),
            asks: Bucket::full(&asks, now),
            answers: 0,
            offences: Offences::tolerating(OFFENCES, 1, OFFENCE, now),
            excess: Offences::tolerating(EXCESS.0, EXCESS.1, Duration::from_secs(1), now),
        };
        let signer = || Signer {
            kinds: Kind::ALL.map(|kind| Bucket::full(&budget.said(kind), now)),
            asked: 0,
        };
        let (neighbours, signers) = (0..members).map(|_| (neighbour(), signer())).unzip();
        (budget.neighbours, budget.signers) = (neighbours, signers);
        budget
    }

    /// This member is in that view, and the last final block that it knows is of that one.
    pub fn at(&mut self, view: u64, last_final: u64) {
        self.views += view.saturating_sub(self.view.max(1));
        self.view = self.view.max(view);
        self.last_final = self.last_final.max(last_final);
    }

    /// This member asked another what became final: the other may answer.
    pub fn asked(&mut self, member: MemberIndex) {
        if let Some(neighbour) = self.neighbours.get_mut(member.at()) {
            neighbour.answers = (neighbour.answers + 1).min(ANSWERS);
        }
    }

    /// Whether bytes that came from a neighbour may be opened. Charges for it.
    ///
    /// # Errors
    /// [`Denied`]: to be handed to [`denied`](Self::denied).
    pub fn admit(
        &mut self,
        now: Time,
        from: MemberIndex,
        path: Path,
        bytes: &[u8],
    ) -> Result<Admitted, Denied> {
        let claim = Claim::read(bytes, self.members);
        let muted = |of: &Neighbour| of.offences.is_muted(now) || of.excess.is_muted(now);
        if self.neighbours.get(from.at()).is_none_or(muted) {
            return Err(Denied::Muted);
        }
        self.may_be_said(from, path, &claim)?;
        self.has_left(now, from, path, &claim)?;
        let rate = self.checks();
        let cost = self.cost(&claim, bytes.len());
        let neighbour = &mut self.neighbours[from.at()];
        neighbour.checks.refill(&rate, now, self.views);
        if !neighbour.checks.is_open() {
            return Err(Denied::Checks);
        }
        let charged = neighbour.checks.take(&rate, cost);
        Ok(Admitted {
            from,
            path,
            claim,
            charged,
        })
    }

    /// What an honest neighbour may say on that path, whoever signed it.
    fn may_be_said(&self, from: MemberIndex, path: Path, claim: &Claim) -> Result<(), Denied> {
        // What has no kind does not open, which costs nothing to find out.
        let Some(kind) = claim.kind else {
            return Ok(());
        };
        let alone = matches!(kind, Kind::Certificate | Kind::Evidence);
        if kind == Kind::Certificate && claim.view < self.last_final {
            return Err(Denied::Stale);
        }
        match path {
            Path::Direct if !alone && claim.signer != Some(from) => Err(Denied::Foreign),
            Path::Gossip if is_private(kind) => Err(Denied::Private(kind)),
            // A view earlier: somebody may not have heard that the last one is over.
            Path::Gossip if !alone && claim.view + 1 < self.view => Err(Denied::Stale),
            _ => Ok(()),
        }
    }

    /// The budgets by kind: charged where the signer is who sent it, else only looked at.
    fn has_left(
        &mut self,
        now: Time,
        from: MemberIndex,
        path: Path,
        claim: &Claim,
    ) -> Result<(), Denied> {
        let Some(kind) = claim.kind else {
            return Ok(());
        };
        let (evidence, said, views) = (self.evidence(), self.said(kind), self.views);
        let neighbour = &mut self.neighbours[from.at()];
        match kind {
            Kind::Evidence => {
                neighbour.evidence.refill(&evidence, now, views);
                if !neighbour.evidence.is_open() {
                    return Err(Denied::Said(kind));
                }
                neighbour.evidence.take(&evidence, 1);
            }
            Kind::SyncResponse => {
                let left = neighbour.answers.checked_sub(1);
                neighbour.answers = left.ok_or(Denied::Unasked)?;
            }
            Kind::Certificate => {}
            _ => {
                let Some(signer) = claim.signer else {
                    return Ok(());
                };
                let bucket = &mut self.signers[signer.at()].kinds[kind as usize - 1];
                bucket.refill(&said, now, views);
                if !bucket.is_open() {
                    return Err(Denied::Said(kind));
                }
                if path == Path::Direct {
                    bucket.take(&said, 1);
                }
            }
        }
        Ok(())
    }

    /// Signatures that may have to be checked, at most: as many as the bytes can hold.
    fn cost(&self, claim: &Claim, bytes: usize) -> u64 {
        let held = 1 + bytes as u64 / 64;
        match claim.kind {
            Some(Kind::Certificate) => held.min(self.quorum as u64).max(LEAST),
            Some(Kind::SyncResponse | Kind::Proposal) => held.max(LEAST),
            Some(Kind::Evidence) => 2,
            _ => 1,
        }
    }

    /// It opened, and `checked` signatures were checked for it. Whether it is to be heard: by gossip
    /// it is charged to its signer only now.
    ///
    /// # Errors
    /// [`Denied`]: to be handed to [`denied`](Self::denied).
    pub fn opened(
        &mut self,
        now: Time,
        admitted: &Admitted,
        checked: u64,
        opened: &Opened,
    ) -> Result<(), Denied> {
        self.settle(admitted, checked);
        if let Opened::Evidence(evidence) = opened
            && !self.accused.insert(evidence.member)
        {
            return Err(Denied::Repeated);
        }
        let Opened::Message(message) = opened else {
            return Ok(());
        };
        let kind = message.body.kind();
        let (said, views) = (self.said(kind), self.views);
        let signer = &mut self.signers[message.sender.at()];
        let bucket = &mut signer.kinds[kind as usize - 1];
        if admitted.path == Path::Gossip {
            bucket.refill(&said, now, views);
            if !bucket.is_open() {
                return Err(Denied::Said(kind));
            }
            bucket.take(&said, 1);
        }
        if let Body::SyncRequest { after, from, .. } = message.body {
            // Who comes on may ask again at once: once for every part of the chain, and no further
            // than there is one.
            let place = after.max(from).min(self.view);
            if place >= signer.asked + PROGRESS {
                bucket.give_back(&said, 1);
            }
            signer.asked = signer.asked.max(place);
        }
        Ok(())
    }

    /// It did not open, and `checked` signatures were checked for it. Gives how long its neighbour
    /// is muted, if that begins now.
    pub fn refused(
        &mut self,
        now: Time,
        admitted: &Admitted,
        checked: u64,
        error: &OpenError,
    ) -> Option<Duration> {
        let inside = matches!(
            error,
            OpenError::Certificate(_) | OpenError::Evidence(_) | OpenError::Inclusions
        );
        let times = if inside { FAILED_INSIDE } else { FAILED };
        self.settle(admitted, checked.max(1) * times);
        let offences = &mut self.neighbours[admitted.from.at()].offences;
        if inside { None } else { offences.another(now) }
    }

    /// Charges what it really cost.
    fn settle(&mut self, admitted: &Admitted, checked: u64) {
        let rate = self.checks();
        let many = matches!(
            admitted.claim.kind,
            Some(Kind::Certificate | Kind::SyncResponse | Kind::Proposal)
        );
        let cost = checked.max(if many { LEAST } else { 1 });
        let checks = &mut self.neighbours[admitted.from.at()].checks;
        match cost.checked_sub(admitted.charged) {
            Some(more) => drop(checks.take(&rate, more)),
            None => checks.give_back(&rate, admitted.charged - cost),
        }
    }

    /// Something of a neighbour was dropped. Gives how long it is muted, if that begins now.
    pub fn denied(&mut self, now: Time, from: MemberIndex, why: Denied) -> Option<Duration> {
        let neighbour = self.neighbours.get_mut(from.at())?;
        if why.is_offence() {
            neighbour.offences.another(now)
        } else if why.is_excess() {
            neighbour.excess.another(now)
        } else {
            None
        }
    }

    /// Whether a member may ask for so many blobs.
    pub fn wants(&mut self, now: Time, by: MemberIndex, blobs: usize) -> bool {
        let (rate, views) = (self.asks(), self.views);
        let Some(neighbour) = self.neighbours.get_mut(by.at()) else {
            return false;
        };
        neighbour.asks.refill(&rate, now, views);
        let open = neighbour.asks.is_open();
        if open {
            // A question costs something whatever is in it.
            neighbour.asks.take(&rate, 1 + blobs as u64);
        }
        open
    }

    /// Signature checks. In a view all members together say about 11 n messages, and pass on the
    /// certificates of two collectors.
    fn checks(&self) -> Rate {
        let (n, q) = (self.members as u64, self.quorum as u64);
        Rate {
            per_view: 2 * n + 6 * q + 32,
            ..Rate::per_second(CHECKS, 4 * CHECKS + 40 * n)
        }
    }

    /// Evidence that one neighbour may pass on: of every faulty member once would be enough.
    fn evidence(&self) -> Rate {
        Rate {
            burst: 2 * self.faulty + 2,
            tokens: 1,
            span: self.beat,
            per_view: 0,
        }
    }

    /// Blobs. In a round a member asks for all entries, the models of the outcome, and again for
    /// what did not come.
    fn asks(&self) -> Rate {
        let n = self.members as u64;
        Rate {
            burst: ASKS.max(8 * n),
            tokens: 4 * n,
            span: self.beat,
            per_view: 4 * n,
        }
    }

    /// Messages of a kind by one signer. Per view: what it says once, and again after one of the
    /// f + 1 re-issues of a set; per beat: what it says again, with room for beats out of step.
    fn said(&self, kind: Kind) -> Rate {
        let failed = self.view.saturating_sub(self.last_final + 1);
        let failed = failed.min(FAILED_VIEWS);
        let reissues = self.faulty + 1;
        let (per_view, per_beat, burst) = match kind {
            Kind::Contribution | Kind::Receipt | Kind::Proposal | Kind::Progress => (3, 3, 32),
            Kind::Bundle | Kind::Sheet | Kind::Scores | Kind::Inclusion => {
                (reissues + 2, 3, 32 + 4 * reissues)
            }
            Kind::Notarize | Kind::Finalize | Kind::Nullify => (3, 4 + 2 * failed, 64 + 4 * failed),
            Kind::SyncRequest => (0, 2, 8),
            Kind::Complete => (0, 1, 8),
            // These have budgets of their own.
            Kind::SyncResponse | Kind::Certificate | Kind::Evidence => (0, 0, 0),
        };
        Rate {
            burst,
            tokens: per_beat,
            span: self.beat,
            per_view,
        }
    }
}

/// Whether a message of that kind goes from one member to another, never to all.
fn is_private(kind: Kind) -> bool {
    match kind {
        Kind::Contribution
        | Kind::Receipt
        | Kind::Scores
        | Kind::Inclusion
        | Kind::Notarize
        | Kind::Finalize
        | Kind::SyncRequest
        | Kind::SyncResponse
        | Kind::Complete => true,
        Kind::Bundle
        | Kind::Sheet
        | Kind::Proposal
        | Kind::Nullify
        | Kind::Progress
        | Kind::Certificate
        | Kind::Evidence => false,
    }
}
