//! Runs in which so many members are gone that no quorum is left: the others go on without them.

use super::*;

fn gone(members: usize) -> BareOptions {
    let faults = Faults {
        deaths: Deaths::None,
        ..Faults::without_byzantine()
    };
    BareOptions {
        rounds: 6,
        recoveries: true,
        ..BareOptions::new(members, faults)
    }
}

#[test]
fn survivors_continue_whoever_is_gone_and_whatever_happens() {
    for (members, usual) in [(2, 60), (3, 60), (4, 60), (5, 30), (7, 10)] {
        let ended = run_all(&gone(members), seeds(usual));
        let recovered = ended.iter().filter(|ended| ended.epochs >= 2).count();
        println!(
            "{members} members: {recovered} of {} recovered",
            ended.len()
        );
        assert!(
            2 * recovered > ended.len(),
            "{recovered} of {}",
            ended.len()
        );
    }
}

#[test]
fn survivors_continue_however_often_people_name_the_wrong_lost() {
    for (members, usual) in [(3, 40), (4, 120), (5, 60), (7, 40), (10, 10)] {
        let options = BareOptions {
            errors: true,
            ..gone(members)
        };
        let ended = run_all(&options, seeds(usual));
        let recovered = ended.iter().filter(|ended| ended.epochs >= 2).count();
        println!(
            "{members} members: {recovered} of {} recovered",
            ended.len()
        );
        assert!(
            2 * recovered > ended.len(),
            "{recovered} of {}",
            ended.len()
        );
    }
}
