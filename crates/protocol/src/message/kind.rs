//! The kinds of messages. Everything that depends on the kind alone stands in one declaration of each.

use serde::{Deserialize, Serialize};

use super::Body;

/// Defines the kinds of messages, in the order of their numbers. A kind with a [`Body`] in brackets is
/// signed by its sender; the others prove what they say by the signatures in them, whoever sends them.
///
/// | field | says |
/// |---|---|
/// | `since` | the first message format that has the kind |
/// | `scope` | what the header names: `ROUND`, `VIEW`, `ROUND_AND_VIEW` or `NEITHER` |
/// | `path` | `Direct`: to single members, never by gossip; or `Gossip` |
/// | `of_lead` | whether the lead of its view alone may send it |
/// | `binds` | whether its sender must never forget it (R5) |
/// | `checks` | the signatures to check: see [`SignatureChecks`] |
/// | `allowance` | how many an honest member sends: see [`Allowance`] |
macro_rules! kinds {
    ($(
        $(#[$doc:meta])*
        $name:ident $(($body:ident))? = $number:literal {
            since: $since:literal,
            scope: $scope:ident,
            path: $path:ident,
            of_lead: $of_lead:literal,
            binds: $binds:literal,
            checks: $checks:ident,
            allowance: $allowance:ident $(($($limit:literal),*))?,
        }
    )*) => {
        /// The kind of a message. Its number stands in the signed header, in front of the body.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[repr(u8)]
        pub enum Kind {
            $($(#[$doc])* $name = $number,)*
        }

        impl Kind {
            /// All kinds, in the order of their numbers, which count from 1.
            pub const ALL: [Self; [$($number),*].len()] = [$(Self::$name,)*];

            /// What was declared of this kind.
            const fn declared(self) -> Declared {
                match self {
                    $(Self::$name => Declared {
                        since: $since,
                        scope: Scope::$scope,
                        path: KindPath::$path,
                        of_lead: $of_lead,
                        binds: $binds,
                        checks: SignatureChecks::$checks,
                        allowance: Allowance::$allowance $(($($limit),*))?,
                    },)*
                }
            }

            /// Whether messages of this kind are signed by their sender. The others prove what they
            /// say by the signatures in them, whoever sends them.
            pub const fn has_sender(self) -> bool {
                match self {
                    $($(Self::$name => $body::HAS_SENDER,)?)*
                    _ => false,
                }
            }
        }

        impl Body {
            /// All bodies are signed by the sender of the message.
            const HAS_SENDER: bool = true;

            /// The kind of the message that has this body.
            pub fn kind(&self) -> Kind {
                match self {
                    $($($body::$name { .. } => Kind::$name,)?)*
                }
            }
        }

        /// The numbers count from 1 in the order of the declarations.
        const _: () = {
            let numbers = [$($number),*];
            let mut at = 0;
            while at < numbers.len() {
                assert!(numbers[at] == at + 1, "the kinds are not in the order of their numbers");
                at += 1;
            }
        };
    };
}

kinds! {
    /// [`Body::Contribution`](super::Body::Contribution).
    Contribution(Body) = 1 {
        since: 1, scope: ROUND, path: Direct, of_lead: false, binds: true,
        checks: One, allowance: EachView,
    }
    /// [`Body::Receipt`](super::Body::Receipt).
    Receipt(Body) = 2 {
        since: 1, scope: VIEW, path: Direct, of_lead: true, binds: false,
        checks: One, allowance: EachView,
    }
    /// [`Body::ContributionList`](super::Body::ContributionList).
    ContributionList(Body) = 3 {
        since: 1, scope: ROUND_AND_VIEW, path: Gossip, of_lead: true, binds: false,
        checks: One, allowance: EachManifest,
    }
    /// [`Body::Scores`](super::Body::Scores).
    Scores(Body) = 4 {
        since: 1, scope: ROUND, path: Direct, of_lead: false, binds: false,
        checks: One, allowance: EachManifest,
    }
    /// [`Body::Manifest`](super::Body::Manifest).
    Manifest(Body) = 5 {
        since: 1, scope: ROUND_AND_VIEW, path: Gossip, of_lead: true, binds: false,
        checks: One, allowance: EachManifest,
    }
    /// [`Body::Inclusion`](super::Body::Inclusion).
    Inclusion(Body) = 6 {
        since: 1, scope: ROUND, path: Direct, of_lead: false, binds: false,
        checks: One, allowance: EachManifest,
    }
    /// [`Body::Proposal`](super::Body::Proposal).
    Proposal(Body) = 7 {
        since: 1, scope: VIEW, path: Gossip, of_lead: true, binds: true,
        checks: MembersAndQuorum, allowance: EachView,
    }
    /// [`Body::Notarize`](super::Body::Notarize).
    Notarize(Body) = 8 {
        since: 1, scope: VIEW, path: Direct, of_lead: false, binds: true,
        checks: One, allowance: Votes,
    }
    /// [`Body::Finalize`](super::Body::Finalize).
    Finalize(Body) = 9 {
        since: 1, scope: VIEW, path: Direct, of_lead: false, binds: true,
        checks: One, allowance: Votes,
    }
    /// [`Body::Nullify`](super::Body::Nullify).
    Nullify(Body) = 10 {
        since: 1, scope: VIEW, path: Gossip, of_lead: false, binds: true,
        checks: One, allowance: Votes,
    }
    /// [`Body::Progress`](super::Body::Progress).
    Progress(Body) = 11 {
        since: 1, scope: VIEW, path: Gossip, of_lead: true, binds: false,
        checks: One, allowance: EachView,
    }
    /// [`Body::SyncRequest`](super::Body::SyncRequest).
    SyncRequest(Body) = 12 {
        since: 1, scope: NEITHER, path: Direct, of_lead: false, binds: false,
        checks: One, allowance: Fixed(0, 2, 8),
    }
    /// [`Body::SyncResponse`](super::Body::SyncResponse).
    SyncResponse(Body) = 13 {
        since: 1, scope: NEITHER, path: Direct, of_lead: false, binds: false,
        checks: Held, allowance: Elsewhere,
    }
    /// A [`Certificate`](crate::certificate::Certificate), signed by its voters and not as a whole.
    Certificate = 14 {
        since: 1, scope: VIEW, path: Gossip, of_lead: false, binds: false,
        checks: Quorum, allowance: Elsewhere,
    }
    /// [`Evidence`](crate::evidence::Evidence), signed by the accused and not as a whole.
    Evidence = 15 {
        since: 1, scope: NEITHER, path: Gossip, of_lead: false, binds: false,
        checks: Two, allowance: Elsewhere,
    }
    /// [`Body::Complete`](super::Body::Complete).
    Complete(Body) = 16 {
        since: 1, scope: ROUND, path: Direct, of_lead: false, binds: false,
        checks: One, allowance: Fixed(0, 1, 8),
    }
    /// [`Body::Amendment`](super::Body::Amendment).
    Amendment(Body) = 17 {
        since: 1, scope: NEITHER, path: Direct, of_lead: false, binds: false,
        checks: One, allowance: Fixed(0, 2, 16),
    }
    // Up to 20 at once: 4 that stand and 16 that were withdrawn.
    /// [`Body::Approval`](super::Body::Approval).
    Approval(Body) = 18 {
        since: 1, scope: NEITHER, path: Direct, of_lead: false, binds: false,
        checks: One, allowance: Fixed(0, 8, 64),
    }
    /// A [`Passage`](super::Passage), signed by its voters and not as a whole.
    Passage = 19 {
        since: 1, scope: NEITHER, path: Gossip, of_lead: false, binds: false,
        checks: Held, allowance: Elsewhere,
    }
    /// [`Body::Standing`](super::Body::Standing).
    Standing(Body) = 20 {
        since: 1, scope: NEITHER, path: Direct, of_lead: false, binds: false,
        checks: One, allowance: Fixed(0, 2, 16),
    }
    /// [`Body::Confirmation`](super::Body::Confirmation).
    Confirmation(Body) = 21 {
        since: 1, scope: NEITHER, path: Direct, of_lead: false, binds: false,
        checks: One, allowance: Fixed(0, 2, 16),
    }
    /// [`Body::Abstain`](super::Body::Abstain).
    Abstain(Body) = 22 {
        since: 2, scope: ROUND, path: Direct, of_lead: false, binds: false,
        checks: One, allowance: Fixed(1, 1, 8),
    }
    /// [`Body::Keys`](super::Body::Keys).
    Keys(Body) = 23 {
        since: 3, scope: ROUND, path: Direct, of_lead: false, binds: true,
        checks: One, allowance: EachView,
    }
    /// [`Body::KeyList`](super::Body::KeyList).
    KeyList(Body) = 24 {
        since: 3, scope: ROUND_AND_VIEW, path: Gossip, of_lead: true, binds: false,
        checks: Held, allowance: EachManifest,
    }
    /// [`Body::MaskedVector`](super::Body::MaskedVector).
    MaskedVector(Body) = 25 {
        since: 3, scope: ROUND, path: Direct, of_lead: false, binds: true,
        checks: One, allowance: EachManifest,
    }
    /// [`Body::MaskedManifest`](super::Body::MaskedManifest).
    MaskedManifest(Body) = 26 {
        since: 3, scope: ROUND_AND_VIEW, path: Gossip, of_lead: true, binds: false,
        checks: One, allowance: EachManifest,
    }
    /// [`Body::Unmasking`](super::Body::Unmasking).
    Unmasking(Body) = 27 {
        since: 3, scope: ROUND, path: Direct, of_lead: false, binds: false,
        checks: One, allowance: EachView,
    }
    /// [`Body::Outcome`](super::Body::Outcome).
    Outcome(Body) = 28 {
        since: 3, scope: VIEW, path: Direct, of_lead: false, binds: true,
        checks: One, allowance: EachView,
    }
}

/// What is declared of a kind.
struct Declared {
    since: u8,
    scope: Scope,
    path: KindPath,
    of_lead: bool,
    binds: bool,
    checks: SignatureChecks,
    allowance: Allowance,
}

/// The way by which messages of a kind reach others.
#[derive(PartialEq, Eq)]
enum KindPath {
    /// To single members.
    Direct,
    /// To all, who pass them on.
    Gossip,
}

/// The signatures that opening a message of a kind has to check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignatureChecks {
    /// The signature of the sender.
    One,
    /// The signatures of two messages of one member.
    Two,
    /// A quorum of votes.
    Quorum,
    /// The signatures of the members that are included, and a quorum of votes for the parent.
    MembersAndQuorum,
    /// As many signatures as the bytes of the message can hold.
    Held,
}

/// How many messages of a kind an honest member sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Allowance {
    /// A few in a view, and again with every heartbeat.
    EachView,
    /// As `EachView`, and again after each reissue of the manifest.
    EachManifest,
    /// A few in a view; with every heartbeat those of all views since the last final block.
    Votes,
    /// At most these numbers of messages: in a view, in a heartbeat, and at once.
    Fixed(u64, u64, u64),
    /// Counted by another budget.
    Elsewhere,
}

impl Kind {
    /// The kind of that number, if there is one.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }

    /// The first message format that has this kind.
    pub fn since(self) -> u8 {
        self.declared().since
    }

    /// Whether messages of this kind belong to a round, and whether they belong to a view.
    pub fn scope(self) -> Scope {
        self.declared().scope
    }

    /// Whether messages of this kind go to single members, and never by gossip.
    pub fn is_private(self) -> bool {
        self.declared().path == KindPath::Direct
    }

    /// Whether the lead of its view alone may send a message of this kind.
    pub fn is_of_lead(self) -> bool {
        self.declared().of_lead
    }

    /// Whether a message of this kind binds its sender, who must never forget it (R5): with another one
    /// of the same header it may be [evidence](crate::evidence) of a fault.
    pub fn binds(self) -> bool {
        self.declared().binds
    }

    /// The signatures that opening a message of this kind has to check.
    pub(crate) fn checks(self) -> SignatureChecks {
        self.declared().checks
    }

    /// How many messages of this kind an honest member sends.
    pub(crate) fn allowance(self) -> Allowance {
        self.declared().allowance
    }
}

/// Whether a kind of message belongs to a round and to a view. The header holds a number from 1
/// where it does, and 0 where it does not. Other headers are refused before the signature is
/// checked, so that a signed statement has one meaning only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scope {
    /// Whether messages of the kind belong to a round.
    pub round: bool,
    /// Whether messages of the kind belong to a view.
    pub view: bool,
}

impl Scope {
    const ROUND: Self = Self::new(true, false);
    const VIEW: Self = Self::new(false, true);
    const ROUND_AND_VIEW: Self = Self::new(true, true);
    const NEITHER: Self = Self::new(false, false);

    const fn new(round: bool, view: bool) -> Self {
        Self { round, view }
    }

    /// Whether a header may hold this round and this view.
    pub fn allows(self, round: u64, view: u64) -> bool {
        (round != 0) == self.round && (view != 0) == self.view
    }
}
