//! Rounds in clear: contribution lists are scored, and manifests are signed for.
//!
//! | file | holds |
//! |---|---|
//! | `judge` | whether to vote for the block of a round in clear |
//! | `lead` | from the contributions to a block |
//! | `scoring` | this member's losses of the round's entries |
//! | `manifests` | the manifests of the round that are kept |
//! | `signing` | `Signing`: scoring the entries of a contribution list, signing for a manifest |

mod judge;
pub(in crate::member) mod lead;
pub(in crate::member) mod manifests;
pub(in crate::member) mod scoring;
pub(in crate::member) mod signing;

use crate::member::Member;
use crate::member::consensus::chain::Chain;
use crate::member::consensus::judge::{Opinion, Ruling};
use crate::member::consensus::stage::BlockDraft;
use crate::member::rounds::RoundKind;
use crate::member::rounds::judging::Judging;
use crate::member::rounds::lead::collect::Admission;
use crate::member::rounds::lead::{LeadTiming, Leading};
use crate::message::{Body, Content, Message};
use crate::refusal::Refusal;
use crate::roster::MemberIndex;
use crate::time::Time;
use crate::work::Request;

/// Rounds whose models members give each other.
pub(in crate::member) struct ClearRounds;

impl RoundKind for ClearRounds {
    fn work(&self, round: u64) -> Request {
        Request::Train { round }
    }

    fn takes(&self, body: &Body) -> bool {
        matches!(body, Body::Contribution(_))
    }

    fn admission(&self, leading: &Leading<'_>, message: &Message) -> Option<Admission> {
        leading.model_admission(message)
    }

    fn may_close(&self, _: &mut Leading<'_>, _: &[MemberIndex]) -> bool {
        true
    }

    fn close(&self, leading: &mut Leading<'_>, ready: &[MemberIndex]) {
        leading.contribution_list_up(ready);
    }

    fn go_on(&self, leading: &mut Leading<'_>) -> Result<Option<BlockDraft>, Refusal> {
        leading.go_on_in_clear()
    }

    fn unanswered(&self, leading: &Leading<'_>) -> Option<(Body, Vec<MemberIndex>)> {
        leading.unanswered_in_clear()
    }

    fn deadlines(&self, timing: &LeadTiming<'_>) -> Vec<Time> {
        timing.deadlines_in_clear()
    }

    fn rests_on(&self, leading: &Leading<'_>, content: &Content) -> Vec<Body> {
        leading.manifest_of(content)
    }

    fn answer(&self, member: &mut Member) {
        member.signing().score();
        member.signing().sign();
    }

    fn objection(&self, _: &Content) -> Option<Refusal> {
        // The block of a masked round is refused once its place is right.
        None
    }

    fn judge(&self, judging: &mut Judging<'_>) -> Result<Ruling, Opinion> {
        judging.vote_for_learning()
    }

    fn spans(&self, phases: u32) -> (u32, u32) {
        // Contributions, scores and inclusions may each be waited for until patience is over.
        (3, phases)
    }

    fn renewed_in(&self, chain: &Chain) -> u64 {
        chain.tip.view
    }
}
