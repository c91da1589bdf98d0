//! Journals that are put back from some records ago: at most f members restart with an older copy.

use super::*;

/// Journals are put back, and no member is faulty in another way.
pub(super) fn only_put_back() -> Faults {
    Faults {
        journal_loss: JournalLoss::PutBack,
        deaths: Deaths::None,
        byzantine: Byzantine::None,
        ..Faults::all()
    }
}

pub(super) fn six_rounds(members: usize, faults: Faults) -> BareOptions {
    let mut options = BareOptions::new(members, faults);
    options.rounds = 6;
    options
}

#[test]
fn federations_finish_although_journals_are_put_back() {
    let all = Faults {
        journal_loss: JournalLoss::PutBack,
        ..Faults::all()
    };
    run_all(&six_rounds(4, all), seeds(60));
    run_all(&six_rounds(7, all), seeds(20));
    run_all(&six_rounds(10, all), seeds(5));
}

#[test]
fn changes_come_into_force_although_journals_are_put_back() {
    for members in [4, 7] {
        let options = BareOptions {
            changes: 2,
            ..BareOptions::new(members, only_put_back())
        };
        run_all(&options, seeds(30));
    }
}

/// Whoever has forgotten something that others can show it learns that.
#[test]
fn journals_that_are_put_back_are_noticed() {
    let ended = run_all(&six_rounds(4, only_put_back()), seeds(80));
    let put_back: u64 = ended.iter().map(|ended| ended.put_back).sum();
    let outdated: u64 = ended.iter().map(|ended| ended.outdated).sum();
    println!("{outdated} of {put_back} were noticed");
    assert!(put_back > ended.len() as u64 / 2, "{put_back}");
    assert!(3 * outdated > put_back, "{outdated} of {put_back}");
}
