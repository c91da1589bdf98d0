//! Every refusal is reported in a test that asserts all effects of that step. A new variant does not
//! compile here until a test is listed for it, and a listed test that no longer reports it fails.

use super::one::REPORTED;
use super::{
    amendments, clock, judge, lead, manifest, masked, masked_one, outcome, propose, round, rows,
    settled_one,
};
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
    Refusal::NotTheLead { .. } => judge::messages_of_leads_are_refused_from_other_members;
    Refusal::Contradiction(_) => judge::two_proposals_of_a_view_are_evidence_and_are_voted_against,
        lead::two_different_contributions_of_a_round_are_evidence_and_the_first_counts;
    Refusal::BlockMisplaced =>
        judge::a_block_of_another_view_or_epoch_than_its_proposal_is_refused;
    Refusal::Change(_) => amendments::a_change_that_breaks_a_rule_is_refused,
        amendments::an_amendment_that_cannot_come_into_force_is_refused;
    Refusal::NothingNotarised => judge::an_empty_block_without_a_notarisation_is_refused;
    Refusal::ParentUnproven => judge::an_empty_block_with_the_notarisation_of_another_parent_is_refused;
    Refusal::SkipUnproven => judge::a_parent_that_is_not_of_an_earlier_view_is_refused;
    Refusal::ParentNotFinal => judge::a_round_on_another_parent_than_the_last_final_block_is_refused;
    Refusal::WrongRound { .. } => judge::a_proposal_of_another_round_is_refused;
    Refusal::WrongPlan { .. } => judge::a_proposal_with_another_plan_is_refused,
        lead::each_objection_to_a_contribution_has_its_refusal;
    Refusal::Signers { .. } =>
        judge::a_sheet_without_exactly_one_signature_for_each_entry_is_refused;
    Refusal::NotAParticipant(_) =>
        judge::a_signature_of_a_member_that_the_plan_does_not_name_is_refused,
        lead::a_contribution_of_a_member_that_the_plan_does_not_name_is_refused;
    Refusal::TooFewEntries { .. } =>
        outcome::a_round_with_fewer_than_the_fewest_entries_is_refused;
    Refusal::WrongNames => judge::shown_names_that_are_not_those_of_the_signers_are_refused;
    Refusal::LeftOut => outcome::a_sheet_without_the_own_receipted_entry_is_refused,
        outcome::a_receipt_during_the_computation_of_the_outcome_counts;
    Refusal::WrongOutcome { .. } =>
        outcome::another_outcome_than_the_recomputed_one_is_refused;
    Refusal::Work(_) => outcome::a_decision_that_fails_its_check_is_refused,
        outcome::a_round_whose_outcome_cannot_be_computed_is_refused,
        lead::an_unusable_model_is_refused_and_its_author_not_waited_for,
        round::models_that_could_not_be_fetched_are_requested_again_with_the_next_bundle,
        round::a_model_that_cannot_be_evaluated_leads_to_nullify;
    Refusal::EntryCount { .. } =>
        round::a_bundle_with_too_few_or_too_many_entries_is_refused;
    Refusal::EntryOrder =>
        round::a_bundle_with_entries_out_of_order_is_refused;
    Refusal::ModelSize { .. } => round::a_bundle_with_a_model_of_another_size_is_refused,
        lead::each_objection_to_a_contribution_has_its_refusal;
    Refusal::ModelTooLarge { .. } => lead::each_objection_to_a_contribution_has_its_refusal;
    Refusal::EntryFields => round::a_bundle_with_fields_that_the_plan_does_not_ask_for_is_refused,
        lead::each_objection_to_a_contribution_has_its_refusal;
    Refusal::TooManyRows { .. } =>
        rows::a_contribution_that_claims_more_rows_than_its_author_declared_is_refused,
        rows::an_entry_with_a_name_is_held_against_what_that_member_declared;
    Refusal::ImpossibleRows { .. } =>
        rows::a_bundle_that_claims_more_rows_than_the_participants_declared_is_refused,
        rows::a_sheet_that_claims_more_rows_than_its_signers_declared_is_refused;
    Refusal::EntryName => lead::with_names_shown_a_contribution_must_name_its_author;
    Refusal::ManifestShape =>
        round::a_sheet_without_a_finite_score_of_every_entry_by_every_entry_is_refused;
    Refusal::Scores => manifest::scores_that_are_not_finite_out_of_order_or_too_many_are_refused;
    Refusal::StaleContribution { .. } =>
        lead::contributions_of_earlier_rounds_are_refused_once_and_later_ones_kept;
    Refusal::Metrics => lead::metrics_that_are_many_not_finite_or_named_too_long_are_refused;
    Refusal::GaveUp { .. } => clock::a_lead_that_votes_against_its_view_before_proposing_is_followed;
    Refusal::Silent { .. } => clock::a_lead_is_voted_down_after_silence_of_three_beats_or_twice_d;
    Refusal::Slow { .. } =>
        clock::a_lead_with_progress_is_voted_down_after_the_view_timeout;
    Refusal::CouldNot { .. } =>
        propose::a_lead_that_cannot_decide_or_compute_the_outcome_votes_against_its_view;
    Refusal::TooFewLeft { reason: Omission::Scores, .. } =>
        manifest::with_too_few_scores_the_lead_votes_against_its_view;
    Refusal::OtherMode => masked_one::messages_of_masked_rounds_are_refused_where_models_are_in_clear;
    Refusal::ListTooSmall { .. } =>
        masked_one::a_list_that_is_too_small_or_without_a_group_is_refused;
    Refusal::ForeignKeys => masked_one::a_list_with_foreign_keys_for_this_member_is_refused;
    Refusal::ListFollows => masked_one::a_list_that_is_no_part_of_the_one_before_is_refused;
    Refusal::OtherAuthors => masked_one::a_sheet_without_exactly_the_authors_is_refused;
    Refusal::OtherReady => masked_one::a_masked_round_with_other_ready_members_is_refused;
    Refusal::WrongState { .. } => masked_one::a_masked_round_from_another_state_is_refused;
    Refusal::Unmasking => settled_one::shares_that_are_unproven_or_of_no_ready_member_are_refused;
    Refusal::TooFewLeft { reason: Omission::Vector, .. } =>
        masked::without_a_vector_of_a_group_the_lead_votes_against_its_view;
    Refusal::TooFewLeft { reason: Omission::Inclusion, .. } =>
        manifest::a_sheet_is_issued_again_at_most_f_plus_1_times;
    Refusal::ViewsUnknown =>
        propose::a_lead_that_lacks_a_nullification_does_not_propose;
}

#[test]
fn every_refusal_is_reported_in_the_tests_listed_for_it() {
    all_are_listed(&Refusal::ViewsUnknown);
    for (test, is, run) in SHOWN {
        REPORTED.take();
        run();
        assert!(
            REPORTED.take().iter().any(is),
            "{test} no longer reports its refusal"
        );
    }
}
