//! Masked rounds (secure aggregation): sums of models are opened once their block is final (M2–M6).
//!
//! | file | holds |
//! |---|---|
//! | `kept` | the lists and manifests of the round that are kept |
//! | `sums` | the sums, as they are agreed |
//! | `stage` | how far a lead is, once the set is closed |
//! | `lead` | the list of who is ready, their vectors, the manifest of these, and the block |
//! | `answering` | `Masking`: answering lists, signing for manifests |
//! | `judge` | whether to vote for the block of a masked round |
//! | `outcomes` | votes for the outcome of a final masked round |
//! | `settling` | `Settling`: the outcome of a final masked round |

pub(in crate::member) mod answering;
mod judge;

pub(in crate::member) mod kept;
mod lead;
pub(in crate::member) mod outcomes;
pub(in crate::member) mod settling;
pub(in crate::member) mod stage;
mod sums;

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

/// Rounds of which only sums are opened.
pub(in crate::member) struct MaskedRounds;

impl RoundKind for MaskedRounds {
    fn work(&self, round: u64) -> Request {
        Request::Prepare { round }
    }

    fn takes(&self, body: &Body) -> bool {
        matches!(body, Body::Keys(_))
    }

    fn admission(&self, leading: &Leading<'_>, message: &Message) -> Option<Admission> {
        leading.keys_admission(message)
    }

    fn may_close(&self, leading: &mut Leading<'_>, ready: &[MemberIndex]) -> bool {
        leading.may_close_with(ready)
    }

    fn close(&self, leading: &mut Leading<'_>, ready: &[MemberIndex]) {
        leading.issue_list(ready);
    }

    fn go_on(&self, leading: &mut Leading<'_>) -> Result<Option<BlockDraft>, Refusal> {
        leading.go_on_masked()
    }

    fn unanswered(&self, leading: &Leading<'_>) -> Option<(Body, Vec<MemberIndex>)> {
        leading.unanswered_masked()
    }

    fn deadlines(&self, timing: &LeadTiming<'_>) -> Vec<Time> {
        timing.deadlines_masked()
    }

    fn rests_on(&self, leading: &Leading<'_>, content: &Content) -> Vec<Body> {
        leading.list_and_manifest_of(content)
    }

    fn answer(&self, member: &mut Member) {
        member.masking().mask();
        member.masking().sign();
    }

    fn objection(&self, content: &Content) -> Option<Refusal> {
        let foreign = matches!(content, Content::Learning(_));
        foreign.then_some(Refusal::OtherMode)
    }

    fn judge(&self, judging: &mut Judging<'_>) -> Result<Ruling, Opinion> {
        judging.vote_for_masked()
    }

    fn spans(&self, phases: u32) -> (u32, u32) {
        // Contributions, vectors and inclusions may each be waited for until patience is over, and then up to
        // three later lists.
        (4, phases.max(10))
    }

    fn renewed_in(&self, chain: &Chain) -> u64 {
        // Other keys than before would be a second contribution to a masked round, so the one that
        // was under way has to be over there.
        chain.learned.view
    }
}
