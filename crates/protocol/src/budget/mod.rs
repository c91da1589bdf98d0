//! Budgets: how much work others may cause at this member, charged before a message is opened.
//!
//! A *neighbour* is the member from whose connection bytes came, the *signer* the member that signed
//! them. A member sends directly only messages that it signed itself, and certificates and evidence,
//! which are not signed as a whole. By gossip a neighbour passes on messages of others after it has
//! checked them. So a neighbour pays for everything that comes from it.
//!
//! | budget of | pays for | is refilled |
//! |---|---|---|
//! | a neighbour | signature checks | by [`CHECKS`] a second, and with every view entered by what one view of all members costs |
//! | a neighbour | evidence and passages; requests for blobs | a little every heartbeat; for blobs also with every view |
//! | a neighbour | SyncResponses | by one for every question that was sent to it |
//! | a neighbour | frames of other epochs, of whatever kind; answers to them | with every heartbeat |
//! | all former members | answers to frames of other epochs | a few with every heartbeat |
//! | a signer | each kind of message | by what an honest member sends in one heartbeat, and in one view |
//!
//! Budgets are also refilled by views, because a fast federation ends hundreds of views in one heartbeat.
//! No single member can make others enter a new view, so none can refill its own budget that way.
//! Votes of views without a certificate are sent again with every heartbeat, so their budget grows with
//! the views since the last final block.
//!
//! A message that does not open costs its neighbour several times the checks that it caused, and
//! counts as an offence. After [`OFFENCES`] offences the neighbour is muted, for a time that doubles.
//! A neighbour that keeps sending far beyond its budget is muted too. A dropped message is not lost for
//! good, because members send everything again that was not answered.
//!
//! No member can spend the budget of another one. For gossip the signer's budget is charged only
//! after the signature was found to hold; and messages of past views, which anybody can send again,
//! are dropped before that.
//!
//! Time is an argument; no clock is read.

mod bucket;
mod elsewhere;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::time::Duration;

use crate::envelope::{OpenError, Opened};
use crate::frame::{Frame, Header};
use crate::message::{Allowance, Body, Kind, SignatureChecks};
use crate::parameters::Epoch;
use crate::roster::MemberIndex;
use crate::time::Time;

pub use bucket::{Bucket, Offences, Rate};

/// Signature checks per second that one neighbour may cause: 4.5 % of a core at 45 µs each.
pub const CHECKS: u64 = 1000;
/// Price of a check that failed, in checks.
const FAILED: u64 = 10;
/// Price of a check, in checks, if only a signature inside the message failed. That signature may have
/// held where the neighbour checked it, because single signatures and batches are checked by different
/// equations.
const FAILED_INSIDE: u64 = 3;
/// Lowest price of a message that can hold many signatures, in checks: it also has to be decoded and
/// compared with known certificates.
const LEAST: u64 = 4;
/// Offences that are tolerated before a mute. One more is tolerated for every 10 s that pass.
pub const OFFENCES: u64 = 10;
const OFFENCE: Duration = Duration::from_secs(10);
/// Messages beyond a budget that are tolerated before a mute, and how many more per second.
const EXCESS: (u64, u64) = (500, 50);
/// Most views since the last final block that the budget of votes grows with.
const FAILED_VIEWS: u64 = 4096;
/// Most unanswered questions to one member for which answers are accepted.
const ANSWERS: u8 = 8;
/// A SyncRequest is free if its asker has advanced by this many views since its furthest one: an
/// answer brings certificates of at least this number of views.
const PROGRESS: u64 = 16;
/// Least burst of blob requests: see [`Budget::blob_rate`].
const BLOB_REQUESTS: u64 = 4096;

/// Why a message is dropped unopened, or unheard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Denied {
    /// The neighbour is muted.
    #[error("the neighbour is muted")]
    Muted,
    /// The neighbour has used up its signature checks.
    #[error("its messages caused more signature checks than a neighbour may cause")]
    Checks,
    /// The signer has used up its budget for this kind.
    #[error("more {0:?} messages than an honest member sends")]
    TooMany(Kind),
    /// A message that another member signed was sent directly, and not by gossip.
    #[error("it sent directly a message that another member signed")]
    Foreign,
    /// A message of a kind that goes to one member only came by gossip.
    #[error("it published a {0:?} message, which goes to one member only")]
    Private(Kind),
    /// A message of a view that is over, or a certificate of a view before the last final block.
    #[error("the message belongs to a view that is over")]
    Stale,
    /// A SyncResponse without a question.
    #[error("a SyncResponse that this member did not ask for")]
    Unasked,
    /// Evidence against a member against whom there is evidence already.
    #[error("evidence against a member against whom there is evidence already")]
    Repeated,
    /// More messages of other epochs than a neighbour may send that is behind.
    #[error("more messages of other epochs than a member that is behind sends")]
    Elsewhere,
    /// A message of this epoch from a neighbour that is no member of it.
    #[error("a message of this epoch from a former member")]
    Guest,
}

impl Denied {
    /// Whether an honest neighbour never causes it.
    fn is_offence(self) -> bool {
        matches!(self, Self::Foreign | Self::Private(_))
    }

    /// Whether a budget is exceeded.
    fn is_excess(self) -> bool {
        matches!(
            self,
            Self::Checks | Self::TooMany(_) | Self::Unasked | Self::Elsewhere | Self::Guest
        )
    }
}

/// The way by which a message came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    /// Sent by the neighbour to this member.
    Direct,
    /// Passed on by the neighbour.
    Gossip,
}

/// Permission to open a message, to be passed to [`Budget::opened`] or [`Budget::refused`].
#[derive(Debug)]
pub struct Admitted {
    from: MemberIndex,
    path: Path,
    kind: Option<Kind>,
    /// Signature checks that were charged.
    charged: u64,
}

impl Admitted {
    /// The kind in the header, if there is such a kind.
    pub fn kind(&self) -> Option<Kind> {
        self.kind
    }
}

/// What a bucket pays for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purse {
    /// Signature checks.
    Checks,
    /// Evidence and passages.
    Evidence,
    /// Requests for blobs.
    Blobs,
    /// Frames of other epochs.
    Elsewhere,
    /// Answers to those, which lead a neighbour to this epoch.
    Led,
    /// Messages of a kind that it signed.
    Signed(Kind),
}

/// What is left of the budgets of one other, as neighbour and as signer.
#[derive(Default)]
struct PeerBudget {
    /// Those from which something was taken. All others are full, and take no memory: two
    /// members of a large federation send each other few kinds of messages.
    buckets: Vec<(Purse, Bucket)>,
    /// Those of a neighbour that was too much, or no honest one.
    mutes: Option<Box<Mutes>>,
    /// The furthest view from which it asked for more.
    asked: u64,
    /// Questions that it has not answered.
    answers: u8,
}

/// The misdeeds of a neighbour.
struct Mutes {
    offences: Offences,
    excess: Offences,
}

impl Mutes {
    fn none(now: Time) -> Box<Self> {
        Box::new(Self {
            offences: Offences::tolerating(OFFENCES, 1, OFFENCE, now),
            excess: Offences::tolerating(EXCESS.0, EXCESS.1, Duration::from_secs(1), now),
        })
    }
}

impl PeerBudget {
    fn is_muted(&self, now: Time) -> bool {
        let mutes = self.mutes.as_ref();
        mutes.is_some_and(|mutes| mutes.offences.is_muted(now) || mutes.excess.is_muted(now))
    }
}

/// The budgets that one member keeps for all others.
pub struct Budget {
    members: usize,
    faulty: u64,
    quorum: usize,
    heartbeat: Duration,
    /// When all budgets were full.
    started: Time,
    /// Whether rounds are masked. Certificates of their outcomes may be of earlier views.
    masked: bool,
    view: u64,
    /// View of the last final block.
    last_final: u64,
    /// Number of views entered.
    views: u64,
    /// Of members, and behind them of former members that came.
    peers: Vec<PeerBudget>,
    /// Answers to former members.
    guests: Bucket,
    /// Members against whom evidence was opened.
    accused: BTreeSet<MemberIndex>,
}

impl Budget {
    /// Full budgets, for a member that starts now.
    pub fn new(epoch: &Epoch, now: Time) -> Self {
        let members = epoch.roster.len();
        let mut budget = Self {
            members,
            faulty: epoch.roster.faulty() as u64,
            quorum: epoch.roster.quorum(),
            heartbeat: epoch.heartbeat(),
            masked: epoch.protocol.privacy.masked().is_some(),
            view: 0,
            last_final: 0,
            views: 0,
            started: now,
            peers: Vec::new(),
            guests: Bucket::full(&Rate::per_second(0, 0), now),
            accused: BTreeSet::new(),
        };
        budget.fill_guests(now);
        budget.peers.resize_with(members, PeerBudget::default);
        budget
    }

    /// This member is in `view`, and the last final block that it knows is of view `last_final`.
    pub fn at(&mut self, view: u64, last_final: u64) {
        self.views += view.saturating_sub(self.view.max(1));
        self.view = self.view.max(view);
        self.last_final = self.last_final.max(last_final);
    }

    /// This member sent a SyncRequest to another, which may answer it now.
    pub fn asked(&mut self, member: MemberIndex) {
        if let Some(peer) = self.peers.get_mut(member.at()) {
            peer.answers = (peer.answers + 1).min(ANSWERS);
        }
    }

    /// Whether bytes from a neighbour may be opened. Charges what this is expected to cost; the true price
    /// is charged afterwards.
    ///
    /// # Errors
    /// [`Denied`], to be passed to [`denied`](Self::denied).
    pub fn admit(
        &mut self,
        now: Time,
        from: MemberIndex,
        path: Path,
        frame: impl Into<Frame>,
    ) -> Result<Admitted, Denied> {
        let frame = frame.into();
        let kind = frame.kind();
        if self.peer(from).is_muted(now) {
            return Err(Denied::Muted);
        }
        if from.at() >= self.members {
            return Err(Denied::Guest);
        }
        if let (Some(kind), Some(header)) = (kind, frame.header()) {
            self.check_path(from, path, kind, header)?;
            self.charge_kind(now, from, path, kind, header)?;
        }
        let cost = price(kind, frame.cost(self.members, self.quorum) as u64);
        let (checks, rate) = self.refilled(now, from, Purse::Checks);
        if !checks.is_open() {
            return Err(Denied::Checks);
        }
        let charged = checks.take(&rate, cost);
        Ok(Admitted {
            from,
            path,
            kind,
            charged,
        })
    }

    /// Checks that an honest neighbour may send this kind of message on that path.
    fn check_path(
        &self,
        from: MemberIndex,
        path: Path,
        kind: Kind,
        header: &Header,
    ) -> Result<(), Denied> {
        if kind == Kind::Certificate && header.view < self.last_final && !self.masked {
            return Err(Denied::Stale);
        }
        match path {
            Path::Direct if kind.has_sender() && self.signer(header) != Some(from) => {
                Err(Denied::Foreign)
            }
            Path::Gossip if kind.is_private() => Err(Denied::Private(kind)),
            // One view earlier is allowed: its sender may not know yet that the view is over.
            Path::Gossip if kind.has_sender() && header.view + 1 < self.view => Err(Denied::Stale),
            _ => Ok(()),
        }
    }

    /// Checks the budget for the kind. Charges it if the neighbour itself is the signer.
    fn charge_kind(
        &mut self,
        now: Time,
        from: MemberIndex,
        path: Path,
        kind: Kind,
        header: &Header,
    ) -> Result<(), Denied> {
        match kind {
            Kind::Evidence | Kind::Passage => {
                let (evidence, rate) = self.refilled(now, from, Purse::Evidence);
                if !evidence.is_open() {
                    return Err(Denied::TooMany(kind));
                }
                evidence.take(&rate, 1);
            }
            Kind::SyncResponse => {
                let peer = self.peer(from);
                let left = peer.answers.checked_sub(1);
                peer.answers = left.ok_or(Denied::Unasked)?;
            }
            Kind::Certificate => {}
            _ => {
                let Some(signer) = self.signer(header) else {
                    return Ok(());
                };
                let (signed, rate) = self.refilled(now, signer, Purse::Signed(kind));
                if !signed.is_open() {
                    return Err(Denied::TooMany(kind));
                }
                if path == Path::Direct {
                    signed.take(&rate, 1);
                }
            }
        }
        Ok(())
    }

    /// The member of the roster that a header names as its sender.
    fn signer(&self, header: &Header) -> Option<MemberIndex> {
        header.sender.filter(|signer| signer.at() < self.members)
    }

    /// The message opened, after `checked` signature checks. Gossip is charged to its signer now.
    ///
    /// # Errors
    /// [`Denied`] if the message is to be dropped, to be passed to [`denied`](Self::denied).
    pub fn opened(
        &mut self,
        now: Time,
        admitted: &Admitted,
        checked: u64,
        opened: &Opened,
    ) -> Result<(), Denied> {
        self.correct_charge(admitted, checked);
        if let Opened::Evidence(evidence) = opened
            && !self.accused.insert(evidence.member)
        {
            return Err(Denied::Repeated);
        }
        let Opened::Message(message) = opened else {
            return Ok(());
        };
        let kind = message.body.kind();
        let (sender, purse) = (message.sender, Purse::Signed(kind));
        if admitted.path == Path::Gossip {
            let (signed, rate) = self.refilled(now, sender, purse);
            if !signed.is_open() {
                return Err(Denied::TooMany(kind));
            }
            signed.take(&rate, 1);
        }
        if let Body::SyncRequest { after, from, .. } = message.body {
            // A member that catches up may ask for the next page at once: once for every page, and
            // only as far as the chain goes.
            let place = after.max(from).min(self.view);
            if place >= self.peer(sender).asked + PROGRESS {
                let (signed, rate) = self.bucket(sender, purse);
                signed.give_back(&rate, 1);
            }
            let peer = self.peer(sender);
            peer.asked = peer.asked.max(place);
        }
        Ok(())
    }

    /// The message did not open, after `checked` signature checks. Gives how long the neighbour is to
    /// be muted, if a mute begins now.
    pub fn refused(
        &mut self,
        now: Time,
        admitted: &Admitted,
        checked: u64,
        error: &OpenError,
    ) -> Option<Duration> {
        let inside = matches!(
            error,
            OpenError::Certificate(_)
                | OpenError::Evidence(_)
                | OpenError::Inclusions
                | OpenError::Keys
                | OpenError::Approvals
                | OpenError::Passage(_)
        );
        let times = if inside { FAILED_INSIDE } else { FAILED };
        self.correct_charge(admitted, checked.max(1) * times);
        if inside {
            return None;
        }
        let mutes = self.mutes(admitted.from);
        mutes.offences.another(now)
    }

    /// Replaces the charged price by the real one.
    fn correct_charge(&mut self, admitted: &Admitted, checked: u64) {
        let cost = price(admitted.kind, checked);
        let (checks, rate) = self.bucket(admitted.from, Purse::Checks);
        match cost.checked_sub(admitted.charged) {
            Some(more) => drop(checks.take(&rate, more)),
            None => checks.give_back(&rate, admitted.charged - cost),
        }
    }

    /// A message of a neighbour was dropped. Gives how long the neighbour is to be muted, if a mute
    /// begins now.
    pub fn denied(&mut self, now: Time, from: MemberIndex, why: Denied) -> Option<Duration> {
        if why.is_offence() {
            self.mutes(from).offences.another(now)
        } else if why.is_excess() {
            self.mutes(from).excess.another(now)
        } else {
            None
        }
    }

    /// Whether a member may request this many blobs. Charges for them.
    pub fn admit_blob_request(&mut self, now: Time, by: MemberIndex, blobs: usize) -> bool {
        if by.at() >= self.members {
            return false;
        }
        let (left, rate) = self.refilled(now, by, Purse::Blobs);
        let open = left.is_open();
        if open {
            // A request costs something even if it names no blob.
            left.take(&rate, 1 + blobs as u64);
        }
        open
    }

    /// What is left of the budgets of another. Former members get theirs when they come.
    fn peer(&mut self, of: MemberIndex) -> &mut PeerBudget {
        if self.peers.len() <= of.at() {
            self.peers.resize_with(of.at() + 1, PeerBudget::default);
        }
        &mut self.peers[of.at()]
    }

    fn mutes(&mut self, of: MemberIndex) -> &mut Mutes {
        let started = self.started;
        let mutes = &mut self.peer(of).mutes;
        mutes.get_or_insert_with(|| Mutes::none(started))
    }

    /// A bucket of another as it was left, and its rate now.
    fn bucket(&mut self, of: MemberIndex, purse: Purse) -> (&mut Bucket, Rate) {
        let rate = self.rate(purse, self.failed_views());
        let known = self.peer(of).buckets.iter();
        let known = known.map(|(own, _)| own).position(|own| *own == purse);
        let at = known.unwrap_or_else(|| {
            let full = Bucket::full(&self.rate(purse, 0), self.started);
            let buckets = &mut self.peer(of).buckets;
            // Few will follow, and each member keeps these of all others.
            buckets.reserve_exact(1);
            buckets.push((purse, full));
            buckets.len() - 1
        });
        let buckets = &mut self.peer(of).buckets;
        (&mut buckets[at].1, rate)
    }

    /// A bucket of another, refilled until now, and its rate.
    fn refilled(&mut self, now: Time, of: MemberIndex, purse: Purse) -> (&mut Bucket, Rate) {
        let views = self.views;
        let (bucket, rate) = self.bucket(of, purse);
        bucket.refill(&rate, now, views);
        (bucket, rate)
    }

    /// Views since the last final block that ended without one.
    fn failed_views(&self) -> u64 {
        let failed = self.view.saturating_sub(self.last_final + 1);
        failed.min(FAILED_VIEWS)
    }

    /// How fast a bucket is refilled after this many failed views, and what it holds.
    fn rate(&self, purse: Purse, failed: u64) -> Rate {
        match purse {
            Purse::Checks => self.check_rate(),
            Purse::Evidence => self.evidence_rate(),
            Purse::Blobs => self.blob_rate(),
            Purse::Elsewhere => self.elsewhere_rate(),
            Purse::Led => self.answer_rate(1),
            Purse::Signed(kind) => self.kind_rate(kind, failed),
        }
    }

    /// Signature checks by neighbour. In a view all members together send about 11 n messages, and
    /// pass on the certificates of two collectors.
    fn check_rate(&self) -> Rate {
        let (n, q) = (self.members as u64, self.quorum as u64);
        Rate {
            per_view: 2 * n + 6 * q + 32,
            ..Rate::per_second(CHECKS, 4 * CHECKS + 40 * n)
        }
    }

    /// Evidence by neighbour. One for each faulty member would be enough.
    fn evidence_rate(&self) -> Rate {
        Rate {
            burst: 2 * self.faulty + 2,
            tokens: 1,
            span: self.heartbeat,
            per_view: 0,
        }
    }

    /// Blob requests by neighbour. In a round a member requests the models of all entries and of the
    /// outcome, and some of them again.
    fn blob_rate(&self) -> Rate {
        let n = self.members as u64;
        Rate {
            burst: BLOB_REQUESTS.max(8 * n),
            tokens: 4 * n,
            span: self.heartbeat,
            per_view: 4 * n,
        }
    }

    /// Messages of a kind by signer. Per view: those that it sends once, and again after each of the
    /// f + 1 reissues of a manifest. Per heartbeat: those that it repeats, with room for heartbeats out of step.
    fn kind_rate(&self, kind: Kind, failed: u64) -> Rate {
        let reissues = self.faulty + 1;
        let (per_view, per_heartbeat, burst) = match kind.allowance() {
            Allowance::EachView => (3, 3, 32),
            Allowance::EachManifest => (reissues + 2, 3, 32 + 4 * reissues),
            Allowance::Votes => (3, 4 + 2 * failed, 64 + 4 * failed),
            Allowance::Fixed(per_view, per_heartbeat, burst) => (per_view, per_heartbeat, burst),
            Allowance::Elsewhere => (0, 0, 0),
        };
        Rate {
            burst,
            tokens: per_heartbeat,
            span: self.heartbeat,
            per_view,
        }
    }
}

/// The price of a message with this many signatures, in checks.
fn price(kind: Option<Kind>, signatures: u64) -> u64 {
    let many = match kind.map(Kind::checks) {
        Some(
            SignatureChecks::Quorum | SignatureChecks::MembersAndQuorum | SignatureChecks::Held,
        ) => true,
        Some(SignatureChecks::One | SignatureChecks::Two) | None => false,
    };
    signatures.max(if many { LEAST } else { 1 })
}
