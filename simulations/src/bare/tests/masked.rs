//! Masked rounds under faults.

use super::*;

/// The groups of so many members: one of all, or two where that leaves three for each.
fn groups(members: usize) -> Vec<Vec<usize>> {
    match members {
        ..7 => vec![(0..members).collect()],
        _ => vec![(0..3).collect(), (3..members).collect()],
    }
}

fn masked(members: usize, faults: Faults) -> Options {
    let groups = groups(members);
    Options {
        groups,
        ..Options::new(members, faults)
    }
}

#[test]
fn without_faults_every_masked_round_takes_one_view() {
    for members in [4, 7, 10] {
        for ended in run_all(&masked(members, Faults::none()), 0..5) {
            // In a view that no round needs, the lead waits for the last outcome.
            assert!(ended.views <= 5, "{members}: {ended:?}");
        }
    }
}

#[test]
fn masked_rounds_finish_under_losses_splits_and_crashes() {
    let faults = Faults {
        deaths: Deaths::None,
        ..without_byzantine()
    };
    for (members, usual) in [(4, 60), (7, 20), (10, 8)] {
        run_all(&masked(members, faults), seeds(usual));
    }
}

#[test]
fn masked_rounds_are_safe_under_all_faults() {
    for (members, usual) in [(4, 60), (7, 30), (10, 8)] {
        run_all(&masked(members, Faults::all()), seeds(usual));
    }
}

#[test]
fn masked_rounds_are_safe_with_twins_and_journals_that_were_put_back_or_lost() {
    for journal_loss in [JournalLoss::PutBack, JournalLoss::Hidden] {
        let faults = Faults {
            journal_loss,
            ..Faults::all()
        };
        run_all(&masked(7, faults), seeds(20));
    }
    let faults = Faults {
        byzantine: Byzantine::Twins,
        ..Faults::all()
    };
    run_all(&masked(7, faults), seeds(20));
}

#[test]
fn a_machine_that_computes_other_outcomes_follows_the_others() {
    let mut options = masked(4, Faults::none());
    options.strange_machine = Some(2);
    run_all(&options, seeds(10));
}
