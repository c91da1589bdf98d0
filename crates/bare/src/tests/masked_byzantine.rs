//! Byzantine members in secure-aggregation rounds: what each behaviour leads to, and who is named for it.

use super::masked::masked;
use super::*;

/// Runs of seven members in two groups on a perfect network, two of them Byzantine with this behaviour.
/// Every run finishes its rounds, unless the group of an honest member may lack an author for ever.
fn seven(behaviour: Behaviour, rounds: u64) -> Vec<Ended> {
    let faults = Faults {
        byzantine: Byzantine::Only(Box::leak(Box::new([behaviour]))),
        ..Faults::none()
    };
    let options = BareOptions {
        rounds,
        ..masked(7, faults)
    };
    let ended = run_all(&options, seeds(12));
    let idle = ended.iter().all(|ended| ended.faults < 2);
    assert!(!idle, "{behaviour:?} does nothing");
    ended
}

/// Nobody but Byzantine members is named for these words. How many runs name somebody.
fn named(ended: &[Ended], words: &str) -> usize {
    let mut runs = 0;
    for run in ended {
        let mut named = run.named.iter().filter(|(_, why)| why.contains(words));
        runs += usize::from(named.clone().next().is_some());
        assert!(
            named.all(|(node, _)| run.byzantine.contains(node)),
            "{run:?}"
        );
    }
    runs
}

/// Returns whether a group has no Byzantine author.
fn some_group_honest(run: &Ended) -> bool {
    let of_first = run.byzantine.iter().filter(|node| **node < 3).count();
    of_first == 0 || of_first == run.byzantine.len()
}

fn finished(ended: &[Ended]) {
    for run in ended {
        assert_eq!(run.stalled, None, "{run:?}");
        assert_eq!(run.void, 0);
    }
}

#[test]
fn a_lead_with_many_lists_is_named_and_rounds_continue() {
    let ended = seven(Behaviour::ManyLists, 3);
    finished(&ended);
    assert!(named(&ended, "may not follow the one before") > 0);
}

#[test]
fn a_lead_with_another_list_for_each_member_costs_its_view_only() {
    let ended = seven(Behaviour::ListToEach, 3);
    finished(&ended);
    assert!(ended.iter().any(|run| run.views > 5));
}

#[test]
fn nobody_opens_a_list_with_foreign_keys_and_rounds_continue() {
    let ended = seven(Behaviour::ForeignKeys, 3);
    finished(&ended);
    assert!(ended.iter().any(|run| run.views > 5));
}

#[test]
fn a_lead_that_hides_a_vector_makes_no_round_of_a_broken_group() {
    finished(&seven(Behaviour::HiddenVector, 3));
}

#[test]
fn an_author_with_a_wrong_transcript_is_named_and_in_no_sum() {
    let ended = seven(Behaviour::WrongTranscript, 3);
    assert!(named(&ended, "a transcript is wrong") > 0);
    assert!(ended.iter().all(|run| run.void == 0));
    assert!(ended.iter().any(|run| run.stalled.is_none()));
}

#[test]
fn an_author_of_two_vectors_for_a_list_is_accused() {
    let ended = seven(Behaviour::TwoVectors, 3);
    assert!(ended.iter().any(|run| run.accused > 0));
    assert!(ended.iter().any(|run| run.stalled.is_none()));
}

#[test]
fn a_member_without_shares_is_not_needed() {
    finished(&seven(Behaviour::NoShares, 3));
}

#[test]
fn a_member_with_false_shares_is_named_and_not_needed() {
    let ended = seven(Behaviour::FalseShares, 3);
    finished(&ended);
    assert_eq!(named(&ended, "their proof does not hold"), ended.len());
}

#[test]
fn a_vote_for_a_forged_outcome_counts_for_nothing() {
    finished(&seven(Behaviour::FalseOutcome, 3));
}

#[test]
fn a_member_that_votes_for_two_outcomes_is_accused() {
    let ended = seven(Behaviour::TwoOutcomes, 3);
    for run in &ended {
        assert!(run.accused > 0, "{run:?}");
        // Others remind it of the vote that its journal lacks, and then it takes part no more.
        assert!(run.stalled.is_none() || !some_group_honest(run), "{run:?}");
    }
    assert!(ended.iter().any(some_group_honest));
}

#[test]
fn wrong_streams_void_sums_and_three_of_them_suspend_the_group() {
    // By turns: no two of them follow each other.
    for (behaviour, rounds) in [
        (Behaviour::WrongStreams, 5),
        (Behaviour::WrongStreamsByTurns, 9),
    ] {
        three_suspend(&seven(behaviour, rounds));
    }
}

fn three_suspend(ended: &[Ended]) {
    // Byzantine members may also die, and then corrupt no more sums.
    let alive: Vec<_> = ended.iter().filter(|run| run.dead == 0).collect();
    for run in &alive {
        // The groups of the authors that corrupt sums.
        let groups = if some_group_honest(run) { 1 } else { 2 };
        // A group that sat out some of the rounds had fewer sums.
        assert!(run.void <= 3 * groups, "{run:?}");
        assert_eq!(run.suspended == groups, run.void == 3 * groups, "{run:?}");
        // Where a group is left, it goes on.
        assert_eq!(run.stalled.is_some(), run.suspended == 2, "{run:?}");
    }
    let suspended = alive.iter().filter(|run| run.suspended > 0).count();
    assert!(2 * suspended > alive.len());
    let honest = alive.iter().filter(|run| some_group_honest(run)).count();
    assert!(honest > 0 && honest < alive.len());
}

#[test]
fn secure_aggregation_is_safe_with_any_byzantine_behaviour() {
    for behaviour in Behaviour::OF_MASKS {
        let faults = Faults {
            journal_loss: JournalLoss::Never,
            deaths: Deaths::None,
            byzantine: Byzantine::Only(Box::leak(Box::new([behaviour]))),
            ..Faults::all()
        };
        run_all(&masked(4, faults), seeds(4));
        run_all(&masked(7, faults), seeds(2));
    }
}
