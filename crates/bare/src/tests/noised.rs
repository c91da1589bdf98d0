//! Secure-aggregation rounds with noise under faults: one sum of all ready members.

use protocol::message::{Kind, Phase};
use protocol::roster::quorum;

use crate::moments::Moment;

use super::*;

#[test]
fn without_faults_every_noised_round_takes_one_view() {
    for members in [4, 7] {
        for ended in run_all(&BareOptions::noised(members, Faults::none()), 0..5) {
            assert!(ended.views <= 5, "{members}: {ended:?}");
        }
    }
}

#[test]
fn noised_rounds_finish_under_losses_splits_and_crashes() {
    let faults = Faults {
        deaths: Deaths::None,
        ..Faults::without_byzantine()
    };
    for (members, usual) in [(4, 40), (7, 15), (10, 5)] {
        run_all(&BareOptions::noised(members, faults), seeds(usual));
    }
}

#[test]
fn noised_rounds_are_safe_under_all_faults() {
    for (members, usual) in [(4, 40), (7, 20), (10, 5)] {
        run_all(&BareOptions::noised(members, Faults::all()), seeds(usual));
    }
}

#[test]
fn noised_rounds_are_safe_with_twins_and_journals_that_were_put_back_or_lost() {
    for journal_loss in [JournalLoss::PutBack, JournalLoss::Hidden] {
        let faults = Faults {
            journal_loss,
            ..Faults::all()
        };
        run_all(&BareOptions::noised(7, faults), seeds(15));
    }
}

#[test]
fn noised_rounds_are_safe_with_changes_and_recoveries() {
    let mut options = BareOptions::noised(7, Faults::without_byzantine());
    options.changes = 1;
    run_all(&options, seeds(15));
    options.changes = 0;
    options.recoveries = true;
    run_all(&options, seeds(15));
}

#[test]
fn noised_rounds_are_safe_without_members_that_die_at_any_moment() {
    let moments = [
        Moment::Phase(Phase::Collecting),
        Moment::Sends(Kind::KeyList),
        Moment::Sends(Kind::MaskedVector),
        Moment::Sends(Kind::Proposal),
        Moment::Notarised,
        Moment::Final,
        Moment::Sends(Kind::Unmasking),
    ];
    for moment in moments {
        let faults = Faults {
            journal_loss: JournalLoss::Never,
            byzantine: Byzantine::None,
            deaths: Deaths::At(moment),
            ..Faults::all()
        };
        run_all(&BareOptions::noised(7, faults), seeds(4));
    }
}

/// The first property that one of 400 seeds violates.
fn violated(broken: BrokenMasks, options: BareOptions) -> String {
    let options = BareOptions {
        broken_masks: Some(broken),
        ..options
    };
    let failures = (0..400).filter_map(|seed| run(seed, &options).err());
    let mut wrong = failures.filter(|failure| !matches!(failure.kind, FailureKind::NotLive { .. }));
    let first = wrong.next().map(|failure| failure.kind.to_string());
    first.unwrap_or_else(|| "nothing".into())
}

#[test]
fn a_second_draw_of_noise_in_a_round_is_detected() {
    let faults = Faults {
        deaths: Deaths::None,
        byzantine: Byzantine::None,
        journal_loss: JournalLoss::Never,
        ..Faults::all()
    };
    let kind = violated(BrokenMasks::DrawnAgain, BareOptions::noised(7, faults));
    assert!(
        kind.starts_with("P7 ") && kind.contains("second draw"),
        "{kind}"
    );
}

/// Three of seven machines compute other outcomes, so that rounds are given up and done again.
fn given_up() -> BareOptions {
    BareOptions {
        strange_machines: 3,
        gives_up: true,
        ..BareOptions::noised(7, Faults::none())
    }
}

#[test]
fn a_noised_round_that_is_given_up_is_done_again_with_another_draw() {
    for ended in run_all(&given_up(), seeds(5)) {
        assert!(ended.epochs == 2 && ended.stalled.is_none(), "{ended:?}");
    }
}

#[test]
fn noise_that_is_kept_over_a_give_up_is_detected() {
    let kind = violated(BrokenMasks::DrawKept, given_up());
    assert!(
        kind.starts_with("P7 ") && kind.contains("in another round before"),
        "{kind}"
    );
}

#[test]
fn a_second_draw_of_a_twin_that_does_not_look_into_the_ledger_is_detected() {
    let faults = Faults {
        byzantine: Byzantine::Twins,
        journal_loss: JournalLoss::Never,
        deaths: Deaths::None,
        ..Faults::all()
    };
    let kind = violated(BrokenMasks::LedgerIgnored, BareOptions::noised(7, faults));
    assert!(kind.starts_with("P7 "), "{kind}");
}

/// Runs with noise in which some members corrupt sums. `changes`: how often the agreement changes.
fn corrupted(members: usize, behaviour: Behaviour, changes: u32) -> Vec<Ended> {
    corrupted_sums_of(members, quorum(members), behaviour, changes)
}

/// The same with so many authors of a sum at least.
fn corrupted_sums_of(
    members: usize,
    fewest: usize,
    behaviour: Behaviour,
    changes: u32,
) -> Vec<Ended> {
    let faults = Faults {
        byzantine: Byzantine::Only(Box::leak(Box::new([behaviour]))),
        until: Duration::from_secs(12 * u64::from(changes)),
        ..Faults::none()
    };
    let options = BareOptions {
        rounds: 12,
        changes,
        fewest_authors: Some(fewest as u16),
        ..BareOptions::noised(members, faults)
    };
    run_all(&options, seeds(8))
}

/// Each void sum costs every author a line of its ledger. Where a sum needs more than half of the members, nobody
/// is searched.
#[test]
fn whoever_spoils_noised_sums_now_and_then_spoils_three_under_an_agreement_and_no_more() {
    for behaviour in [Behaviour::WrongStreams, Behaviour::WrongStreamsByTurns] {
        for members in [4, 7] {
            let ended = corrupted(members, behaviour, 0);
            let alive = ended.iter().filter(|run| run.dead == 0);
            let mut suspended = 0;
            for run in alive {
                assert_eq!((run.void, run.suspended), (3, 1), "{run:?}");
                assert!(run.stalled.is_some());
                suspended += 1;
            }
            assert!(suspended > 4, "{suspended}");
        }
    }
}

#[test]
fn a_change_of_the_agreement_gives_a_new_budget_of_voids() {
    let ended = corrupted(7, Behaviour::WrongStreamsByTurns, 1);
    for run in &ended {
        assert!(run.void <= 3 * run.epochs, "{run:?}");
    }
    assert!(ended.iter().any(|run| run.epochs == 2 && run.void > 3));
}

/// 1 + ⌈log₂ n⌉: a search halves the suspects with every void round after the first.
fn most_searched(members: usize) -> u64 {
    1 + u64::from(members.next_power_of_two().trailing_zeros())
}

#[test]
fn one_that_spoils_sums_is_found_by_halves_and_the_federation_goes_on_without_it() {
    let mut found = 0;
    for behaviour in [Behaviour::WrongStreams, Behaviour::WrongStreamsByTurns] {
        for (members, fewest) in [(4, 2), (5, 2), (6, 2), (6, 3)] {
            let ended = corrupted_sums_of(members, fewest, behaviour, 0);
            let one = |run: &&Ended| run.byzantine.len() == 1 && run.dead == 0;
            for run in ended.iter().filter(one) {
                assert!(run.void <= most_searched(members), "{run:?}");
                // A lead that corrupts sums may leave out a member, so that too few are ready for two of them.
                if 2 * fewest > quorum(members) && run.alone.is_empty() {
                    assert_eq!((run.suspended, run.stalled.is_some()), (1, true), "{run:?}");
                    continue;
                }
                assert_eq!(run.alone, run.byzantine, "{run:?}");
                assert_eq!((run.suspended, &run.stalled), (0, &None), "{run:?}");
                found += 1;
            }
        }
    }
    assert!(found > 12, "{found}");
}

/// One of them may have been left alone before the other was an author.
#[test]
fn two_that_spoil_sums_end_them_within_the_rounds_of_a_search() {
    let mut several = 0;
    for behaviour in [Behaviour::WrongStreams, Behaviour::WrongStreamsByTurns] {
        for (members, fewest) in [(7, 3), (10, 4)] {
            let ended = corrupted_sums_of(members, fewest, behaviour, 0);
            let more = |run: &&Ended| run.byzantine.len() > 1 && run.dead == 0;
            for run in ended.iter().filter(more) {
                assert_eq!((run.suspended, run.stalled.is_some()), (1, true), "{run:?}");
                // Two sums may be void in a round.
                assert!(run.void <= 2 * (most_searched(members) + 1), "{run:?}");
                several += 1;
            }
        }
    }
    assert!(several > 2, "{several}");
}

/// Worlds as `just sweep-noised` draws them.
#[test]
fn noised_rounds_are_safe_in_worlds_that_are_drawn() {
    for seed in seeds(20) {
        let world = BareOptions::noised_world(seed);
        let ended = run(seed, &world);
        assert!(ended.is_ok(), "{}\n{world:?}", ended.unwrap_err());
    }
}
