//! Secure-aggregation rounds under faults.

use protocol::message::{Kind, Phase};

use crate::moments::Moment;
use crate::script::{Fault, FaultTime, KillTarget};

use super::*;

/// The groups of so many members: one of all, or two where that leaves three for each.
fn groups(members: usize) -> Vec<Vec<usize>> {
    match members {
        ..7 => vec![(0..members).collect()],
        _ => vec![(0..3).collect(), (3..members).collect()],
    }
}

pub(super) fn masked(members: usize, faults: Faults) -> BareOptions {
    let groups = groups(members);
    BareOptions {
        groups,
        ..BareOptions::new(members, faults)
    }
}

/// All faults, with Byzantine members that also misbehave in secure-aggregation rounds.
pub(super) fn all() -> Faults {
    Faults {
        byzantine: Byzantine::AnyMasked,
        ..Faults::all()
    }
}

/// Four members, of whom three are a group. The fourth only helps to open their sums.
pub(super) fn of_three(faults: Faults) -> BareOptions {
    BareOptions {
        groups: vec![vec![0, 1, 2]],
        ..masked(4, faults)
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
        ..Faults::without_byzantine()
    };
    for (members, usual) in [(4, 60), (7, 20), (10, 8)] {
        run_all(&masked(members, faults), seeds(usual));
    }
}

#[test]
fn masked_rounds_are_safe_under_all_faults() {
    for (members, usual) in [(4, 60), (7, 30), (10, 8)] {
        run_all(&masked(members, all()), seeds(usual));
    }
}

#[test]
fn masked_rounds_are_safe_with_twins_and_journals_that_were_put_back_or_lost() {
    for journal_loss in [JournalLoss::PutBack, JournalLoss::Hidden] {
        let faults = Faults {
            journal_loss,
            ..all()
        };
        run_all(&masked(7, faults), seeds(20));
    }
    let faults = Faults {
        byzantine: Byzantine::Twins,
        ..all()
    };
    run_all(&masked(7, faults), seeds(20));
}

#[test]
fn masked_rounds_go_on_without_a_member_that_is_in_no_group() {
    let at = Duration::ZERO;
    let kill = |at| Fault::Kill {
        who: KillTarget::Silo("3".into()),
        when: FaultTime::At(at),
        restart_after: None,
        journal_lost: false,
    };
    let mut options = of_three(Faults::none());
    options.script = vec![kill(at)];
    for ended in run_all(&options, seeds(10)) {
        assert_eq!((ended.dead, ended.stalled), (1, None));
    }
    run_all(&of_three(Faults::without_byzantine()), seeds(30));
    run_all(&of_three(all()), seeds(30));
}

#[test]
fn masked_rounds_are_safe_with_changes_and_recoveries() {
    let mut options = masked(7, Faults::without_byzantine());
    options.changes = 1;
    run_all(&options, seeds(15));
    options.changes = 0;
    options.recoveries = true;
    run_all(&options, seeds(15));
}

/// Members die for good at any moment of a round, also once it is final.
#[test]
fn masked_rounds_are_safe_without_members_that_die_at_any_moment() {
    let moments = [
        Moment::Phase(Phase::Collecting),
        Moment::Sends(Kind::KeyList),
        Moment::Sends(Kind::MaskedVector),
        Moment::Sends(Kind::MaskedManifest),
        Moment::Sends(Kind::Inclusion),
        Moment::Sends(Kind::Proposal),
        Moment::Sends(Kind::Notarize),
        Moment::Notarised,
        Moment::Sends(Kind::Finalize),
        Moment::Final,
        Moment::Sends(Kind::Unmasking),
        Moment::Sends(Kind::Outcome),
    ];
    for moment in moments {
        let faults = Faults {
            journal_loss: JournalLoss::Never,
            byzantine: Byzantine::None,
            deaths: Deaths::At(moment),
            ..all()
        };
        run_all(&masked(7, faults), seeds(4));
        run_all(&of_three(faults), seeds(4));
    }
}

#[test]
fn a_machine_that_computes_other_outcomes_follows_the_others() {
    let mut options = masked(4, Faults::none());
    options.strange_machines = 1;
    run_all(&options, seeds(10));
}

/// Two of four machines compute other outcomes, so nobody ever has one, until all institutions give the round
/// up: it is done again from the same state.
#[test]
fn a_round_that_no_quorum_can_certify_is_given_up_and_done_again() {
    for (members, strange) in [(4, 2), (7, 3)] {
        let mut options = masked(members, Faults::none());
        options.strange_machines = strange;
        let stuck = run(0, &options).unwrap_err();
        assert!(
            matches!(
                stuck.kind,
                FailureKind::NotLive { .. } | FailureKind::Masks(_)
            ),
            "{stuck}"
        );
        options.gives_up = true;
        for ended in run_all(&options, seeds(10)) {
            assert!(ended.epochs == 2 && ended.stalled.is_none(), "{ended:?}");
        }
    }
}

/// Institutions are impatient: they give up whatever round is open at their nodes, while one machine computes
/// other outcomes, members crash, and messages are lost. Who has adopted the outcome signs too, and then all
/// go on from it.
#[test]
fn rounds_that_are_given_up_too_early_are_safe() {
    let mut given_up = 0;
    for (members, strange) in [(4, 1), (4, 2), (7, 2), (7, 3)] {
        // Whoever dies for good would have to be named as lost.
        let faults = Faults {
            deaths: Deaths::None,
            ..Faults::without_byzantine()
        };
        let mut options = masked(members, faults);
        options.strange_machines = strange;
        options.gives_up = true;
        let ended = run_all(&options, seeds(20));
        given_up += ended.iter().filter(|run| run.epochs > 1).count();
    }
    assert!(given_up > 40, "{given_up}");
}

/// As many members as an agreement allows collude, in the smallest group that it allows then.
pub(super) fn most_colluders(members: usize, faults: Faults) -> BareOptions {
    let colluders = worlds::most_colluders(members);
    BareOptions {
        groups: vec![(0..colluders + 2).collect()],
        colluders,
        ..BareOptions::new(members, faults)
    }
}

#[test]
fn no_choice_of_colluders_knows_more_than_final_sums() {
    for (members, usual) in [(4, 20), (5, 20), (6, 20), (7, 15)] {
        run_all(&most_colluders(members, all()), seeds(usual));
    }
    let mut options = most_colluders(7, Faults::without_byzantine());
    options.changes = 1;
    run_all(&options, seeds(10));
    options.changes = 0;
    options.recoveries = true;
    run_all(&options, seeds(10));
}

/// Returns whether something happened that must not. That nothing happens is another failure.
pub(super) fn is_unsafe(failure: &RunFailure) -> bool {
    let late = || failure.kind.to_string().starts_with("L5 ");
    !matches!(failure.kind, FailureKind::NotLive { .. }) && !late()
}

/// The property that one of 400 seeds violates.
pub(super) fn violated(options: &BareOptions) -> String {
    let failures = (0..400).filter_map(|seed| run(seed, options).err());
    let first = failures.map(|failure| *failure).find(is_unsafe);
    first.map_or_else(|| "nothing".into(), |first| first.kind.to_string())
}

#[test]
fn secrets_that_are_kept_after_adoption_are_detected() {
    let options = BareOptions {
        broken_masks: Some(BrokenMasks::SecretKept),
        ..masked(4, Faults::none())
    };
    for seed in 0..3 {
        let failure = run(seed, &options).unwrap_err();
        assert!(failure.to_string().contains("P6 "), "{failure}");
    }
}

#[test]
fn secrets_and_vectors_that_are_not_durable_are_detected() {
    let crashes = Faults {
        crashes: 12,
        loss: 0.3,
        deaths: Deaths::None,
        byzantine: Byzantine::None,
        journal_loss: JournalLoss::Never,
        ..all()
    };
    for broken in [BrokenMasks::SecretNotDurable, BrokenMasks::VectorNotDurable] {
        let options = BareOptions {
            broken_masks: Some(broken),
            ..masked(4, crashes)
        };
        let kind = violated(&options);
        // S4 and P3 both say so; the first of them that is checked is named.
        let two = kind.contains("two vectors");
        assert!(two, "{broken:?}: {kind}");
    }
}

#[test]
fn false_shares_that_are_accepted_are_detected() {
    let faults = Faults {
        byzantine: Byzantine::Only(&[Behaviour::FalseShares]),
        ..Faults::none()
    };
    let options = BareOptions {
        broken_masks: Some(BrokenMasks::FalseSharesAccepted),
        ..masked(7, faults)
    };
    let kind = violated(&options);
    assert!(kind.starts_with("P5 "), "{kind}");
}

/// With the consent of all, members answer the new group, and what becomes visible is what was said: the
/// vector of the one that is taken from the group. Without it they answer no such sum
/// (`protocol::member::tests::consent`).
#[test]
fn a_group_that_changes_with_the_consent_of_all_shows_what_was_said() {
    let soon = Faults {
        until: Duration::from_secs(12),
        ..Faults::none()
    };
    let options = BareOptions {
        groups: vec![vec![0, 1, 2, 3]],
        changes: 1,
        rounds: 6,
        regroup: Some(Regroup::Taken),
        shows: true,
        ..BareOptions::new(8, soon)
    };
    let shown = violated(&options);
    assert!(shown.contains("the input of 3 alone"), "{shown}");
}

/// Worlds as `just sweep-masked` draws them.
#[test]
fn masked_rounds_are_safe_in_worlds_that_are_drawn() {
    for seed in seeds(12) {
        let world = BareOptions::masked_world(seed);
        let ended = run(seed, &world);
        assert!(ended.is_ok(), "{}\n{world:?}", ended.unwrap_err());
    }
}

/// Changes that leave fewer members, to whose agreement as many colluders are no longer allowed, a run that is
/// given up at the moment of a change, a member that lost its journal unnoticed and is a member no more, and a
/// journal that is put back to before a round that was final. In the last a member whose journal was lost
/// unnoticed was stopped while it asked others what its key had signed, and then asked nobody.
#[test]
fn drawn_worlds_that_once_failed_hold() {
    for seed in [1387, 1800, 1992, 2558, 12274, 46017, 98430] {
        let ended = run(seed, &BareOptions::masked_world(seed));
        assert!(ended.is_ok(), "{}", ended.unwrap_err());
    }
}

/// A group with a member whose transcripts are always wrong, of which every view was over at once, and groups
/// with a member that lost its journal unnoticed, which nothing can replace before the agreement changes. In the
/// last two members flood the others meanwhile.
#[test]
fn worlds_in_which_no_group_can_be_whole_wait() {
    for seed in [17, 345, 895, 86408] {
        let ended = run(seed, &BareOptions::masked_world(seed));
        let ended = ended.unwrap_or_else(|failure| panic!("{failure}"));
        assert!(ended.views < 500, "seed {seed}: {} views", ended.views);
    }
}
