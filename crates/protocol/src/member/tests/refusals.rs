//! Every refusal is said in a test that asserts all effects of that step. A new variant does not
//! compile here until it is given one, and a test that no longer says it fails.

use super::one::SAID;
use super::{clock, judge, lead, outcome, propose, round, sheet};
use crate::refusal::{Omission, Refusal};

/// A refusal, and the tests that show it.
macro_rules! shown {
    ($($refusal:pat => $($module:ident::$test:ident),+;)+) => {
        /// Does not compile while a variant is missing below.
        fn all_are_listed(refusal: &Refusal) {
            match refusal { $($refusal => (),)+ }
        }

        const SHOWN: &[(&str, fn(&Refusal) -> bool, fn())] = &[$($((
            stringify!($module::$test),
            |refusal| matches!(refusal, $refusal),
            $module::$test,
        ),)+)+];
    };
}

shown! {
    Refusal::NotTheLead { .. } => judge::what_only_leads_say_is_refused_from_others;
    Refusal::Contradiction(_) => judge::two_proposals_of_a_view_are_evidence_and_end_the_view,
        lead::two_different_contributions_of_a_round_are_evidence_and_the_first_counts;
    Refusal::BlockMisplaced =>
        judge::a_block_belongs_to_the_view_and_the_epoch_of_its_proposal;
    Refusal::NothingNotarised => judge::an_empty_block_needs_a_notarisation;
    Refusal::ParentUnproven => judge::an_empty_block_stands_on_what_its_certificate_is_about;
    Refusal::SkipUnproven => judge::a_parent_is_of_an_earlier_view;
    Refusal::ParentNotFinal => judge::a_round_starts_from_the_last_final_block;
    Refusal::WrongRound { .. } => judge::a_proposal_is_about_the_round_under_way;
    Refusal::WrongPlan { .. } => judge::a_proposal_follows_the_plan_that_the_state_gives,
        lead::each_objection_to_a_contribution_has_its_refusal;
    Refusal::Signers { .. } =>
        judge::every_entry_has_its_authors_signature_and_nobody_elses_is_there;
    Refusal::NotAParticipant(_) =>
        judge::a_signature_of_a_member_that_the_plan_does_not_name_is_refused,
        lead::a_member_that_the_plan_does_not_name_does_not_contribute;
    Refusal::TooFewEntries { .. } =>
        outcome::a_round_has_at_least_as_many_entries_as_its_plan_needs;
    Refusal::WrongNames => judge::shown_names_are_those_of_the_signers;
    Refusal::LeftOut => outcome::an_entry_with_a_receipt_of_the_view_must_be_in_the_sheet,
        outcome::a_receipt_that_comes_while_the_outcome_is_computed_counts;
    Refusal::WrongOutcome { .. } =>
        outcome::another_outcome_than_the_recomputed_one_is_refused;
    Refusal::Work(_) => outcome::a_decision_that_is_not_acceptable_is_refused,
        outcome::a_round_that_cannot_be_settled_is_refused,
        lead::a_model_that_is_no_use_is_refused_and_its_author_not_waited_for,
        round::models_that_cannot_be_had_are_fetched_when_the_bundle_is_said_again,
        round::a_model_that_cannot_be_evaluated_is_a_reason_against_the_view;
    Refusal::EntryCount { .. } =>
        round::the_entries_of_a_bundle_are_as_many_as_the_plan_allows;
    Refusal::EntryOrder =>
        round::the_entries_of_a_bundle_are_in_strictly_ascending_order;
    Refusal::ModelSize { .. } => round::the_models_of_a_bundle_have_the_agreed_size,
        lead::each_objection_to_a_contribution_has_its_refusal;
    Refusal::ModelTooLarge { .. } => lead::each_objection_to_a_contribution_has_its_refusal;
    Refusal::EntryFields => round::the_entries_of_a_bundle_carry_what_the_plan_asks_for,
        lead::each_objection_to_a_contribution_has_its_refusal;
    Refusal::EntryName => lead::where_names_are_shown_a_contribution_names_its_author;
    Refusal::SheetShape =>
        round::a_sheet_has_a_finite_score_for_every_entry_by_every_entry;
    Refusal::Scores => sheet::scores_are_finite_in_order_and_not_too_many;
    Refusal::StaleContribution { .. } =>
        lead::contributions_of_earlier_rounds_are_refused_once_and_later_ones_kept;
    Refusal::Metrics => lead::metrics_are_few_finite_and_named_briefly;
    Refusal::GaveUp { .. } => clock::a_view_whose_lead_votes_against_it_is_over;
    Refusal::Silent { .. } => clock::a_lead_may_be_silent_for_three_beats_or_twice_d;
    Refusal::Slow { .. } =>
        clock::a_lead_that_shows_progress_has_the_limit_of_the_charter_or_what_patience_and_d_need;
    Refusal::CouldNot { .. } =>
        propose::a_lead_that_cannot_decide_or_settle_votes_against_its_view;
    Refusal::TooFewLeft { reason: Omission::Scores, .. } =>
        sheet::with_too_few_scores_the_lead_votes_against_its_view;
    Refusal::TooFewLeft { reason: Omission::Inclusion, .. } =>
        sheet::a_sheet_is_issued_again_at_most_f_plus_1_times;
    Refusal::ViewsUnknown =>
        propose::a_lead_that_does_not_know_how_all_views_ended_does_not_propose;
}

#[test]
fn every_refusal_is_said_in_the_test_that_is_named_for_it() {
    all_are_listed(&Refusal::ViewsUnknown);
    for (test, is, run) in SHOWN {
        SAID.take();
        run();
        assert!(
            SAID.take().iter().any(is),
            "{test} no longer says its refusal"
        );
    }
}
