//! Checks everything inside a message that claims to be signed by a member other than its sender:
//! certificates, evidence, inclusions and reminders.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::certificate::{Certificate, CertificateError, Verdict, Vote};
use crate::evidence::{Evidence, EvidenceError, Signed};
use crate::identity::{Signature, SignatureClaim, Verifier};
use crate::message::{Body, Change, Confirmation, KeyList, Message, Recovery, RoundBlock};
use crate::parameters::Epoch;
use crate::recovery::set;
use crate::roster::MemberIndex;
use crate::statement::statement;

/// The votes of verified certificates, by view and verdict.
pub type KnownVotes = BTreeMap<(u64, Verdict), Arc<[Vote]>>;

/// What a member has verified before, so that it need not verify it again.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// The votes of verified certificates, by view and verdict.
    pub certificates: Arc<KnownVotes>,
    /// Members whose fault is proven: one proof is enough.
    pub accused: BTreeSet<MemberIndex>,
}

impl Known {
    /// Whether a certificate of the same view and verdict was verified. The votes of this one may
    /// still be forged, so nothing in it may be used.
    pub(crate) fn covers(&self, certificate: &Certificate) -> bool {
        let key = (certificate.view, certificate.verdict);
        self.certificates.contains_key(&key)
    }

    /// Whether this very certificate, vote by vote, was verified.
    pub(crate) fn verified(&self, certificate: &Certificate) -> bool {
        let key = (certificate.view, certificate.verdict);
        let votes = self.certificates.get(&key);
        votes.is_some_and(|votes| *votes == certificate.votes)
    }
}

impl Certificate {
    /// Checks that exactly q distinct members signed for the verdict.
    ///
    /// # Errors
    /// [`CertificateError`]: another number of votes, voters out of order, voters outside of the
    /// roster, or signatures that do not verify.
    pub fn verify(&self, epoch: &Epoch, verifier: &dyn Verifier) -> Result<(), CertificateError> {
        let quorum = epoch.roster.quorum();
        let ascending = self
            .votes
            .windows(2)
            .all(|pair| pair[0].member < pair[1].member);
        let enough = self.votes.len() == quorum;
        if !enough || !ascending {
            let got = if ascending { self.votes.len() } else { 0 };
            return Err(CertificateError::Votes {
                view: self.view,
                got,
                quorum,
            });
        }
        let statements: Vec<_> = self
            .votes
            .iter()
            .map(|vote| {
                let body = Body::vote(self.verdict, vote.checked);
                statement(epoch, 0, self.view, vote.member, &body)
            })
            .collect();
        let claims = self
            .votes
            .iter()
            .zip(&statements)
            .map(|(vote, message)| {
                let key = epoch.roster.key(vote.member);
                let key = key.ok_or(CertificateError::Stranger(vote.member))?;
                Ok(SignatureClaim {
                    key,
                    message,
                    signature: vote.signature,
                })
            })
            .collect::<Result<Vec<_>, CertificateError>>()?;
        if verifier.verify_all(&claims) {
            Ok(())
        } else {
            Err(CertificateError::Signature(self.view))
        }
    }
}

impl Evidence {
    /// Checks that the two messages conflict and that the accused signed both.
    ///
    /// # Errors
    /// [`EvidenceError`]: an honest member may sign both, or a signature is not the accused's.
    pub fn verify(&self, epoch: &Epoch, verifier: &dyn Verifier) -> Result<(), EvidenceError> {
        if !self.shows_conflict() {
            return Err(EvidenceError::NoConflict(self.member));
        }
        let holds = |signed: &Signed| {
            let message = statement(epoch, signed.round, signed.view, self.member, &signed.body);
            let key = epoch.roster.key(self.member);
            key.is_some_and(|key| {
                verifier.verify(&SignatureClaim {
                    key,
                    message: &message,
                    signature: signed.signature,
                })
            })
        };
        if holds(&self.first) && holds(&self.second) {
            Ok(())
        } else {
            Err(EvidenceError::Signature(self.member))
        }
    }
}

/// Whether the inclusions of a round's block are signatures over its manifest by distinct members in
/// ascending order.
pub fn inclusions_hold(epoch: &Epoch, verifier: &dyn Verifier, block: RoundBlock<'_>) -> bool {
    let inclusions = block.inclusions;
    let distinct = inclusions.windows(2).all(|pair| pair[0].0 < pair[1].0);
    let body = Body::Inclusion {
        manifest: block.manifest,
    };
    // The signatures are checked in any case: the check is what a message like this costs.
    let hold = signatures_hold(epoch, verifier, block.round, &body, inclusions);
    distinct && hold
}

/// Whether the keys in a list are signed by distinct members in ascending order.
pub(crate) fn keys_hold(
    epoch: &Epoch,
    verifier: &dyn Verifier,
    round: u64,
    list: &KeyList,
) -> bool {
    let distinct = list
        .ready
        .windows(2)
        .all(|pair| pair[0].member < pair[1].member);
    let signed = list.ready.iter();
    let signed = signed.map(|ready| (ready.member, Body::Keys(ready.keys), ready.signature));
    let hold = bodies_hold(epoch, verifier, round, signed);
    distinct && hold
}

/// Whether the approvals of a change are their members' signatures. Whether they are enough and in
/// order is another question: see [`Change::check`].
pub(crate) fn approvals_hold(epoch: &Epoch, verifier: &dyn Verifier, change: &Change) -> bool {
    let amendment = change.amendment.hash();
    let approvals = change.approvals.iter().map(|approval| {
        let body = Body::Approval {
            amendment,
            number: approval.number,
            stands: true,
        };
        (approval.by, body, approval.signature)
    });
    bodies_hold(epoch, verifier, 0, approvals)
}

/// Whether the standings and confirmations of a recovery are their members' signatures.
pub(crate) fn standings_hold(epoch: &Epoch, verifier: &dyn Verifier, recovery: &Recovery) -> bool {
    let all = recovery.standings.iter();
    let set = set(all.map(|signed| (signed.by, &signed.standing)));
    let all = recovery.standings.iter();
    let standings = all.map(|signed| (signed.by, signed.standing.body(), signed.signature));
    let all = recovery.standings.iter();
    let confirmations = all.map(|signed| {
        let number = signed.number;
        let body = Confirmation { number, set }.body();
        (signed.by, body, signed.confirmation)
    });
    bodies_hold(epoch, verifier, 0, standings) && bodies_hold(epoch, verifier, 0, confirmations)
}

/// Whether members signed the same body, each for itself, in messages without a view.
fn signatures_hold(
    epoch: &Epoch,
    verifier: &dyn Verifier,
    round: u64,
    body: &Body,
    signatures: &[(MemberIndex, Signature)],
) -> bool {
    let signed = signatures.iter();
    let signed = signed.map(|(member, signature)| (*member, body.clone(), *signature));
    bodies_hold(epoch, verifier, round, signed)
}

/// Whether members signed these bodies in messages without a view.
fn bodies_hold(
    epoch: &Epoch,
    verifier: &dyn Verifier,
    round: u64,
    signed: impl Iterator<Item = (MemberIndex, Body, Signature)>,
) -> bool {
    let statements: Vec<_> = signed
        .map(|(by, body, signature)| (by, statement(epoch, round, 0, by, &body), signature))
        .collect();
    let claims: Option<Vec<_>> = statements
        .iter()
        .map(|(by, message, signature)| {
            let key = epoch.roster.key(*by)?;
            Some(SignatureClaim {
                key,
                message,
                signature: *signature,
            })
        })
        .collect();
    claims.is_some_and(|claims| verifier.verify_all(&claims))
}

/// Whether a message was signed by its sender, with a round and a view exactly where its kind has
/// them.
pub(crate) fn message_holds(epoch: &Epoch, verifier: &dyn Verifier, message: &Message) -> bool {
    let Message {
        round,
        view,
        sender,
        ref body,
        signature,
    } = *message;
    let statement = statement(epoch, round, view, sender, body);
    let holds = |key| {
        verifier.verify(&SignatureClaim {
            key,
            message: &statement,
            signature,
        })
    };
    let signed = epoch.roster.key(sender).is_some_and(holds);
    body.kind().scope().allows(round, view) && signed
}
