//! Learners in other programs, by a child that behaves and misbehaves: this test binary itself,
//! started with `--child`; with `--node` it is a node with a learner of its own. So there is no test harness around it, which would write to the child's
//! standard output.

#![allow(clippy::unwrap_used)]

mod child;
mod direct;
mod federations;
#[path = "../nodes/heard.rs"]
mod heard;
#[path = "../nodes/mod.rs"]
mod nodes;
mod one;
mod own;
mod pace;
mod start;
mod sums;

use std::panic::{AssertUnwindSafe, catch_unwind};

/// The tests, by name.
const TESTS: &[(&str, fn())] = &[
    (
        "programs_learn_the_same_without_messages",
        direct::programs_learn_the_same_without_messages,
    ),
    (
        "what_a_program_lacks_ends_a_comparison_before_its_runs",
        direct::what_a_program_lacks_ends_a_comparison_before_its_runs,
    ),
    (
        "a_programs_own_metric_is_summarised",
        direct::a_programs_own_metric_is_summarised,
    ),
    (
        "a_program_trains_and_measures",
        one::a_program_trains_and_measures,
    ),
    (
        "a_proximal_term_reaches_the_program",
        one::a_proximal_term_reaches_the_program,
    ),
    (
        "outputs_are_measured_row_by_row",
        one::outputs_are_measured_row_by_row,
    ),
    (
        "a_program_that_breaks_is_started_again",
        one::a_program_that_breaks_is_started_again,
    ),
    (
        "a_training_that_is_not_needed_is_stopped",
        one::a_training_that_is_not_needed_is_stopped,
    ),
    (
        "programs_end_in_the_middle_of_a_training",
        one::programs_end_in_the_middle_of_a_training,
    ),
    (
        "a_program_with_another_model_is_refused",
        one::a_program_with_another_model_is_refused,
    ),
    (
        "a_program_with_other_frozen_tensors_is_refused",
        one::a_program_with_other_frozen_tensors_is_refused,
    ),
    (
        "the_initial_model_may_come_from_the_program",
        one::the_initial_model_may_come_from_the_program,
    ),
    (
        "silos_share_a_bounded_number_of_programs",
        one::silos_share_a_bounded_number_of_programs,
    ),
    (
        "a_program_trains_the_model_of_a_table",
        one::a_program_trains_the_model_of_a_table,
    ),
    (
        "a_program_that_is_a_little_off_is_refused",
        one::a_program_that_is_a_little_off_is_refused,
    ),
    (
        "a_simulation_survives_a_program_that_breaks",
        federations::a_simulation_survives_a_program_that_breaks,
    ),
    (
        "what_a_program_says_is_passed_on_in_bounded_amounts",
        federations::what_a_program_says_is_passed_on_in_bounded_amounts,
    ),
    (
        "programs_and_rota_train_one_model_together",
        federations::programs_and_rota_train_one_model_together,
    ),
    (
        "programs_learn_from_sums_what_they_learn_in_clear",
        sums::programs_learn_from_sums_what_they_learn_in_clear,
    ),
    (
        "a_comparison_runs_the_program_where_its_scenario_is",
        federations::a_comparison_runs_the_program_where_its_scenario_is,
    ),
    (
        "what_a_program_lacks_is_said_before_the_first_round",
        federations::what_a_program_lacks_is_said_before_the_first_round,
    ),
    (
        "nodes_learn_with_programs",
        federations::nodes_learn_with_programs,
    ),
    (
        "nobody_waits_for_a_node_whose_program_always_fails",
        federations::nobody_waits_for_a_node_whose_program_always_fails,
    ),
    (
        "nobody_waits_for_a_node_that_has_nothing_to_train_on",
        federations::nobody_waits_for_a_node_that_has_nothing_to_train_on,
    ),
    (
        "a_node_that_is_late_is_told_by_how_much",
        federations::a_node_that_is_late_is_told_by_how_much,
    ),
    (
        "a_silo_that_gives_nothing_hardly_slows_the_others_down",
        pace::a_silo_that_gives_nothing_hardly_slows_the_others_down,
    ),
    (
        "a_check_says_that_the_others_will_not_wait_for_a_training",
        federations::a_check_says_that_the_others_will_not_wait_for_a_training,
    ),
    (
        "frozen_tensors_are_the_same_at_all_silos_of_a_simulation",
        federations::frozen_tensors_are_the_same_at_all_silos_of_a_simulation,
    ),
    (
        "an_agreement_takes_the_start_from_the_program",
        federations::an_agreement_takes_the_start_from_the_program,
    ),
    (
        "a_node_that_is_ended_takes_its_program_and_its_files_with_it",
        federations::a_node_that_is_ended_takes_its_program_and_its_files_with_it,
    ),
    (
        "a_federation_of_programs_goes_on",
        federations::a_federation_of_programs_goes_on,
    ),
    (
        "a_node_learns_with_rust_code_of_its_own",
        own::a_node_learns_with_rust_code_of_its_own,
    ),
    (
        "silos_start_from_what_the_first_program_holds",
        start::silos_start_from_what_the_first_program_holds,
    ),
    (
        "programs_with_other_meanings_of_the_same_names_are_refused",
        start::programs_with_other_meanings_of_the_same_names_are_refused,
    ),
    (
        "columns_in_another_order_are_refused_or_put_in_order",
        start::columns_in_another_order_are_refused_or_put_in_order,
    ),
    (
        "nodes_start_from_what_the_proposers_program_holds",
        start::nodes_start_from_what_the_proposers_program_holds,
    ),
    (
        "members_fetch_the_start_from_the_proposers_node",
        start::members_fetch_the_start_from_the_proposers_node,
    ),
    (
        "a_member_that_is_admitted_later_fetches_the_start",
        start::a_member_that_is_admitted_later_fetches_the_start,
    ),
    (
        "what_an_agreement_says_about_the_start",
        start::what_an_agreement_says_about_the_start,
    ),
    (
        "a_new_agreement_comes_with_the_proposers_start",
        start::a_new_agreement_comes_with_the_proposers_start,
    ),
    (
        "a_metric_that_no_program_measures_is_refused_at_the_start",
        federations::a_metric_that_no_program_measures_is_refused_at_the_start,
    ),
    (
        "describe_prints_the_task_of_a_program",
        federations::describe_prints_the_task_of_a_program,
    ),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, how, log] = arguments.as_slice()
        && flag == "--child"
    {
        return child::main(how, log);
    }
    if let [flag, config] = arguments.as_slice()
        && flag == "--node"
    {
        return own::node(config);
    }
    if arguments.iter().any(|argument| argument == "--list") {
        return TESTS.iter().for_each(|(name, _)| println!("{name}: test"));
    }
    let filters: Vec<_> = arguments
        .iter()
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let chosen = |name: &str| filters.is_empty() || filters.iter().any(|part| name.contains(*part));
    let mut failed = 0;
    for (name, test) in TESTS.iter().filter(|(name, _)| chosen(name)) {
        let passed = catch_unwind(AssertUnwindSafe(test)).is_ok();
        println!("test {name} ... {}", if passed { "ok" } else { "FAILED" });
        failed += i32::from(!passed);
    }
    std::process::exit(failed.min(1));
}
