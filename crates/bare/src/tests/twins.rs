//! Two processes with one key: at most f members have a twin, new or on a copy of the disk.

use super::*;

fn twins() -> Faults {
    Faults {
        journal_loss: JournalLoss::Never,
        byzantine: Byzantine::Twins,
        ..Faults::all()
    }
}

/// Twins, and no other fault of a member.
pub(super) fn only_twins() -> Faults {
    Faults {
        deaths: Deaths::None,
        ..twins()
    }
}

#[test]
fn federations_with_up_to_f_twins_finish_under_all_faults() {
    run_all(&BareOptions::new(4, twins()), seeds(80));
    run_all(&BareOptions::new(7, twins()), seeds(20));
    run_all(&BareOptions::new(10, twins()), seeds(5));
}

#[test]
fn changes_come_into_force_with_twins() {
    for members in [4, 7] {
        let options = BareOptions {
            changes: 2,
            ..BareOptions::new(members, twins())
        };
        run_all(&options, seeds(30));
    }
}

/// Twins that contribute, propose or vote differently are found out by what they signed, or find out
/// by themselves that their journals lack something, and stop.
#[test]
fn twins_that_contradict_each_other_leave_evidence_or_stop() {
    let ended = run_all(&BareOptions::new(4, only_twins()), seeds(40));
    let accused = ended.iter().filter(|ended| ended.accused > 0).count();
    assert!(accused > 0);
    let found = |ended: &&Ended| ended.accused > 0 || ended.outdated > 0;
    let found = ended.iter().filter(found).count();
    // In others the twin started when all was done, or learned in time that its key was in use.
    assert!(4 * found > ended.len(), "{found} of {}", ended.len());
    // Without twins nobody is accused.
    let nobody = Faults {
        byzantine: Byzantine::None,
        ..only_twins()
    };
    let ended = run_all(&BareOptions::new(4, nobody), seeds(40));
    assert!(ended.iter().all(|ended| ended.accused == 0));
}
