//! More faulty members than a federation tolerates, and lost journals.

use super::*;

/// Progress is not promised here. Safety must hold, and a federation that does not finish must give
/// a diagnosis.
#[test]
fn more_than_f_faults_leave_safety_and_a_diagnosis() {
    for members in [3, 4, 7] {
        let faults = match members {
            3 => Faults::without_byzantine(),
            _ => Faults::all(),
        };
        let ended = sweep(
            members,
            seeds(60 / members as u64),
            Faults {
                beyond: 1,
                ..faults
            },
        );
        let stalled = ended.iter().filter_map(|ended| ended.stalled.as_ref());
        let stalled: Vec<_> = stalled.collect();
        assert!(!stalled.is_empty(), "{members}: some runs must stall");
        for diagnosis in stalled {
            assert!(diagnosis.members.iter().any(|member| !member.complete));
        }
    }
}

/// A member restarts as if it were new, although its key has signed before.
#[test]
fn a_hidden_loss_of_a_journal_violates_no_property() {
    let faults = Faults {
        journal_loss: JournalLoss::Hidden,
        deaths: Deaths::None,
        byzantine: Byzantine::None,
        ..Faults::all()
    };
    sweep(4, seeds(60), faults);
    sweep(
        7,
        seeds(10),
        Faults {
            byzantine: Byzantine::Any,
            ..faults
        },
    );
}

/// Replayed answers and small claims must not make a member without its journal vote too early.
#[test]
fn a_member_without_its_journal_votes_only_when_that_is_safe() {
    let byzantine = Byzantine::Only(&[Behaviour::Replay, Behaviour::SyncSmallClaim]);
    let faults = Faults {
        deaths: Deaths::None,
        byzantine,
        beyond: 1,
        ..Faults::all()
    };
    let mut options = BareOptions::new(4, faults);
    options.rounds = 14;
    run_all(&options, seeds(40));
}
