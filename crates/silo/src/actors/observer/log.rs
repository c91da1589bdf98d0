//! Notices as lines of the log.

use protocol::Report;
use tracing::{debug, error, info, warn};

use crate::error::Stopped;
use crate::notice::Notice;

/// Logs a notice in the silo's span. `round` and `view` follow the reports.
pub(super) fn log(notice: &Notice, round: &mut u64, view: &mut u64) {
    match notice {
        Notice::Protocol(report) => log_report(report, round, view),
        Notice::Trained {
            round,
            loss,
            samples,
            seconds,
            ..
        } => {
            info!(round, view, loss, samples, seconds, "trained");
        }
        Notice::Adopted {
            round,
            outcome,
            state,
            coalition,
            ..
        } => {
            let coalitions = state.models.len();
            info!(round, view, %outcome, coalition, coalitions, "adopted");
        }
        Notice::Clipped { round, coordinates } => {
            warn!(
                round,
                view, coordinates, "numbers of the local model were clipped to be masked"
            );
        }
        Notice::WrongTranscript { .. } => {
            warn!(round, view, "the transcript of a masked vector is wrong");
        }
        Notice::VoidSum {
            round,
            authors,
            why,
        } => {
            warn!(round, view, ?authors, "a sum is void: {why}");
        }
        Notice::Searched { round, voids } => {
            let (void, search) = (&voids.rounds, &voids.search);
            warn!(
                round,
                view,
                ?void,
                ?search,
                "void sums show who may have corrupted them"
            );
        }
        Notice::Lost { messages } => {
            warn!(
                round,
                view, messages, "messages lost: the queue to the network is full"
            );
        }
        // Any node that can reach this silo can cause these, so they stay at debug level.
        Notice::Unopened {
            from,
            reason,
            times,
        } => {
            debug!(round, view, %from, reason, times, "a frame cannot be opened");
        }
        Notice::Dropped {
            from,
            reason,
            times,
        } => {
            debug!(round, view, %from, reason, times, "frames dropped");
        }
        Notice::Muted { member, span } => {
            warn!(round, view, %member, ?span, "a member is muted");
        }
        Notice::Missing(missing) => warn!(round, view, "{missing}"),
        Notice::Recovered { round } => info!(round, view, "the missing blobs are here again"),
        Notice::Listening => info!(round, view, "listening only, because the journal was lost"),
        Notice::Store { reason } => warn!(round, view, reason, "blobs cannot be stored"),
        Notice::Stopped(reason @ (Stopped::Asked | Stopped::EpochOver | Stopped::Killed)) => {
            info!(round, view, "{reason}");
        }
        Notice::Stopped(reason) => error!(round, view, "{reason}"),
    }
}

/// Logs how rounds and views go; `at_round` and `at_view` follow.
fn log_report(report: &Report, at_round: &mut u64, at_view: &mut u64) {
    match report {
        Report::Entered { view, lead, round } => {
            // A view may be entered before the round of the one before is known to be final.
            (*at_round, *at_view) = ((*at_round).max(*round), *view);
            debug!(round = at_round, view, %lead, "entered a view");
        }
        Report::Leading { view, round, phase } => debug!(round, view, ?phase, "leading"),
        Report::Contributed { round, blob } => info!(round, view = at_view, %blob, "contributed"),
        Report::TrainingFailed { round, reason } => {
            warn!(round, view = at_view, reason, "no contribution this round");
        }
        Report::Late { round, ready, over } => {
            warn!(
                round,
                view = at_view,
                ?ready,
                ?over,
                "the contribution came too late"
            );
        }
        Report::ReceiptUnkept {
            round,
            receipt,
            signed,
        } => {
            let (lead, view) = (receipt.sender, receipt.view);
            warn!(round, view, %lead, signed, "the lead left out what it had a receipt for");
        }
        Report::Nothing { member, round } => {
            info!(round, view = at_view, %member, "a member has nothing for this round");
        }
        Report::Refused {
            member,
            round,
            reason,
        } => {
            debug!(round, view = at_view, %member, %reason, "refused");
        }
        Report::Nullifying { view, reason } => {
            warn!(round = at_round, view, %reason, "voting against the view");
        }
        Report::Certified(certificate) => {
            let verdict = certificate.verdict;
            debug!(
                round = at_round,
                view = certificate.view,
                ?verdict,
                "certificate"
            );
        }
        Report::LeftOut {
            view,
            round,
            members,
            reason,
        } => {
            warn!(
                round,
                view,
                ?members,
                %reason,
                "the lead continues without some members"
            );
        }
        Report::Final {
            round,
            view,
            lead,
            block,
            authors,
        } => {
            info!(round, view, %lead, %block, authors = authors.len(), "final");
            *at_round = (*at_round).max(round + 1);
        }
        Report::HeavyEntry {
            round, rows, total, ..
        } => {
            tracing::warn!(round, rows, %total, "one entry has more than half of the weight");
        }
        _ => log_masked(report, *at_round, *at_view),
    }
}

/// Logs what only secure-aggregation rounds report, and passes on the rest.
fn log_masked(report: &Report, at_round: u64, at_view: u64) {
    match report {
        Report::OtherOutcome {
            round,
            computed,
            certified,
        } => {
            warn!(round, %computed, %certified, "this machine computed another outcome");
        }
        Report::GroupsIncomplete { round, members } => {
            warn!(round, ?members, "no group is complete");
        }
        Report::WrongVector { vector } => {
            warn!(round = vector.round, by = ?vector.sender, "a masked vector is wrong");
        }
        Report::OtherCircle { before, now } => {
            warn!(round = at_round, ?before, ?now, "a sum is not answered");
        }
        _ => log_change(report, at_round, at_view),
    }
}

/// Logs what members change, and what they do that they must not.
fn log_change(report: &Report, at_round: u64, at_view: u64) {
    match report {
        Report::Amendment {
            amendment,
            approved,
            needed,
            ..
        } => {
            let (amendment, approvals) = (amendment.hash(), approved.len());
            info!(view = at_view, %amendment, approvals, needed, "an amendment");
        }
        Report::AmendmentForgotten { amendment } => {
            info!(view = at_view, %amendment, "an amendment that nobody approved is forgotten");
        }
        Report::Recovery {
            lost,
            signed,
            needed,
            ..
        } => {
            let signed = signed.len();
            warn!(
                view = at_view,
                ?lost,
                signed,
                needed,
                "members want to continue without others"
            );
        }
        Report::RecoveryHeld { confirmed, awaits } => warn!(
            view = at_view,
            ?confirmed,
            ?awaits,
            "a correction waits: this member has confirmed to continue without others"
        ),
        Report::LeftBehind {
            recovery,
            by,
            round,
        } => {
            warn!(round, view = at_view, %recovery, ?by, "others have gone on without this member");
        }
        Report::Fault(evidence) => {
            let (member, charge) = (evidence.member, evidence.charge());
            error!(round = at_round, view = at_view, %member, charge, "a member broke the rules");
        }
        _ => log_standing(report, at_round, at_view),
    }
}

/// Logs whether this member takes part, and how far members are.
fn log_standing(report: &Report, at_round: u64, at_view: u64) {
    match report {
        Report::KeyUsedBefore => error!(
            round = at_round,
            view = at_view,
            "this institution's key has signed things in this federation and its journal was empty: \
             its state was lost, or another process uses the key. It only listens now"
        ),
        Report::KeyElsewhere => error!(
            round = at_round,
            view = at_view,
            "another process uses this institution's key. Until it is started again, this silo signs \
             nothing more"
        ),
        Report::Outdated(what) => error!(
            round = at_round,
            view = at_view,
            "the journal lacks {what}: it is an older copy, or another process uses the key. This \
             silo signs nothing more in this epoch"
        ),
        Report::Listening {
            answers,
            needed,
            until,
        } => info!(
            view = at_view,
            answers, needed, until, "listening only, because the journal was lost"
        ),
        Report::TakingPart => info!(view = at_view, "taking part again"),
        Report::Complete { last } => info!(view = at_view, last, "the last round is complete"),
        Report::MemberComplete { member } => {
            info!(view = at_view, %member, "a member has completed all rounds");
        }
        // Logged above.
        Report::Entered { .. }
        | Report::Leading { .. }
        | Report::Contributed { .. }
        | Report::TrainingFailed { .. }
        | Report::Late { .. }
        | Report::ReceiptUnkept { .. }
        | Report::Nothing { .. }
        | Report::Refused { .. }
        | Report::Nullifying { .. }
        | Report::Certified(_)
        | Report::LeftOut { .. }
        | Report::Final { .. }
        | Report::HeavyEntry { .. }
        | Report::OtherOutcome { .. }
        | Report::GroupsIncomplete { .. }
        | Report::OtherCircle { .. }
        | Report::WrongVector { .. }
        | Report::Amendment { .. }
        | Report::AmendmentForgotten { .. }
        | Report::Recovery { .. }
        | Report::RecoveryHeld { .. }
        | Report::LeftBehind { .. }
        | Report::Fault(_) => {}
    }
}
