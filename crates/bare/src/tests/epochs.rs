//! Changes of the agreement under every fault: members join, leave, are excluded and get other
//! keys, and rounds are added, while others die, lie and restart.

use super::*;

fn changing(members: usize, changes: u32, faults: Faults) -> BareOptions {
    BareOptions {
        changes,
        ..BareOptions::new(members, faults)
    }
}

#[test]
fn changes_come_into_force_without_faults() {
    for members in [1, 2, 3, 4, 7, 10] {
        let faults = Faults {
            until: Duration::from_secs(30),
            ..Faults::none()
        };
        for ended in run_all(&changing(members, 3, faults), seeds(20)) {
            assert_eq!(ended.epochs, 4);
        }
    }
}

#[test]
fn changes_come_into_force_under_all_faults() {
    for members in [4, 7] {
        let ended = run_all(&changing(members, 3, Faults::all()), seeds(60));
        for (seed, ended) in ended.iter().enumerate() {
            assert_eq!(ended.epochs, 4, "seed {seed} of {members}: {ended:?}");
        }
    }
    run_all(&changing(10, 2, Faults::all()), seeds(15));
}

#[test]
fn changes_take_effect_in_few_members_under_crashes_and_deaths() {
    for members in [1, 2, 3] {
        run_all(
            &changing(members, 3, Faults::without_byzantine()),
            seeds(60),
        );
    }
}

#[test]
fn changes_come_into_force_under_every_rotation() {
    for rotation in Rotation::ALL {
        let faults = match rotation {
            // A fixed lead may die, and nobody takes its place.
            Rotation::Fixed => Faults {
                until: Duration::from_secs(30),
                ..Faults::none()
            },
            _ => Faults::all(),
        };
        let mut options = changing(4, 2, faults);
        options.rotation = rotation;
        run_all(&options, seeds(20));
    }
}
