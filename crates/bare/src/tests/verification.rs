//! Committees and rounds that nobody checks: safety, progress, and what a lead can do where it is
//! believed.

use super::*;

fn under(verification: Verification, members: usize, faults: Faults) -> BareOptions {
    let mut options = BareOptions::new(members, faults);
    options.verification = verification;
    options
}

/// All faults but Byzantine members.
fn crashes() -> Faults {
    Faults::without_byzantine()
}

#[test]
fn without_faults_every_round_takes_one_view_at_every_level() {
    for verification in Verification::ALL {
        for members in [1, 2, 3, 4, 7, 10] {
            for ended in run_all(&under(verification, members, Faults::none()), 0..5) {
                assert!(ended.views <= 4, "{verification} {members}: {ended:?}");
            }
        }
    }
}

#[test]
fn every_level_finishes_while_members_crash_and_die() {
    for verification in [
        Verification::Committee(1),
        Verification::Committee(3),
        Verification::Inclusion,
    ] {
        for members in [3, 4] {
            run_all(&under(verification, members, crashes()), seeds(60));
        }
        run_all(&under(verification, 7, crashes()), seeds(15));
    }
}

#[test]
fn a_committee_of_all_members_withstands_all_faults() {
    run_all(
        &under(Verification::Committee(4), 4, Faults::all()),
        seeds(100),
    );
    run_all(
        &under(Verification::Committee(7), 7, Faults::all()),
        seeds(15),
    );
}

/// Byzantine leads propose outcomes that do not follow from the models.
pub(super) fn wrong_outcomes(verification: Verification) -> BareOptions {
    let faults = Faults {
        deaths: Deaths::None,
        byzantine: Byzantine::Only(&[Behaviour::BadOutcome]),
        ..Faults::none()
    };
    under(verification, 7, faults)
}

#[test]
fn auditors_stop_wrong_outcomes_and_a_trusted_lead_does_not() {
    // The one auditor refuses, and the five that are neither auditor nor lead are a quorum.
    run_all(&wrong_outcomes(Verification::Committee(1)), seeds(30));
    // Where the lead is believed, so are its wrong outcomes.
    let believed = wrong_outcomes(Verification::Inclusion);
    assert!((0..60).any(|seed| run(seed, &believed).is_err()));
}
