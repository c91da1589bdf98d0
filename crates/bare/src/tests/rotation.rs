//! Every rotation of leads under all faults: safety, and progress within the bound of L1.

use super::*;

const FOLLOWING: [Rotation; 4] = [
    Rotation::EveryRounds(2),
    Rotation::EveryRounds(5),
    Rotation::OnFailure,
    Rotation::Reliability,
];

fn under(rotation: Rotation, members: usize, faults: Faults) -> BareOptions {
    let mut options = BareOptions::new(members, faults);
    (options.rotation, options.rounds) = (rotation, 6);
    options
}

#[test]
fn without_faults_a_round_takes_one_view_under_every_rotation() {
    for rotation in Rotation::ALL {
        for members in [1, 2, 3, 4, 7] {
            for ended in run_all(&under(rotation, members, Faults::none()), 0..5) {
                // The view after a round has begun when the round is known to be final.
                assert!(ended.views <= 7, "{rotation} {members}: {ended:?}");
            }
        }
    }
}

/// Faults end, up to f crashed and Byzantine members stay, and every honest member must finish
/// within 2f + 4 views a round.
#[test]
fn every_rotation_but_fixed_finishes_under_all_faults() {
    for rotation in FOLLOWING {
        run_all(&under(rotation, 4, Faults::all()), seeds(60));
        run_all(&under(rotation, 7, Faults::all()), seeds(12));
        run_all(&under(rotation, 10, Faults::all()), seeds(3));
        run_all(&under(rotation, 3, Faults::without_byzantine()), seeds(20));
    }
}

#[test]
fn every_rotation_but_fixed_finishes_whenever_members_die() {
    for rotation in FOLLOWING {
        let faults = Faults {
            deaths: Deaths::Any,
            ..Faults::none()
        };
        let ended = run_all(&under(rotation, 7, faults), seeds(20));
        let dead: u64 = ended.iter().map(|ended| ended.dead).sum();
        assert!(dead > 10, "{rotation}: {dead}");
    }
}

/// A fixed lead is not promised to make progress. Everything else holds, and the runs that end early
/// are those whose lead died or is Byzantine.
#[test]
fn under_a_fixed_lead_safety_holds_and_only_its_failure_stops() {
    let ended = run_all(&under(Rotation::Fixed, 4, Faults::all()), seeds(12));
    let stalled = ended.iter().filter_map(|ended| ended.stalled.as_ref());
    for diagnosis in stalled {
        assert_ne!(diagnosis.members[0].fault, "", "{diagnosis}");
    }
    // Without faults of its own it loses nothing.
    let complete = ended.iter().filter(|ended| ended.stalled.is_none());
    assert!(complete.count() > ended.len() / 2);
}
