//! People who approve changes late, twice, withdraw that and approve again, and proposers who show them
//! other bytes under the same words; and members that flood the others with all that.

use super::*;

fn erring(members: usize, changes: u32, faults: Faults) -> BareOptions {
    BareOptions {
        changes,
        errors: true,
        ..BareOptions::new(members, faults)
    }
}

#[test]
fn changes_come_into_force_whatever_people_say_first() {
    for members in [2, 3, 4, 7] {
        for ended in run_all(&erring(members, 2, Faults::none()), seeds(15)) {
            assert!(ended.epochs >= 3, "{members}: {ended:?}");
        }
    }
}

#[test]
fn changes_come_into_force_whatever_is_said_first_or_fails() {
    for (members, usual) in [(3, 20), (4, 30), (7, 8)] {
        let faults = match members {
            3 => Faults::without_byzantine(),
            _ => Faults::all(),
        };
        run_all(&erring(members, 2, faults), seeds(usual));
    }
}

/// The words of a member that floods the others take no room from theirs.
#[test]
fn changes_come_into_force_under_floods_of_words_about_changes() {
    for behaviour in Behaviour::OF_CHANGES {
        let faults = Faults {
            until: Duration::from_secs(30),
            byzantine: Byzantine::Only(Box::leak(Box::new([behaviour]))),
            ..Faults::none()
        };
        let ended = run_all(&erring(4, 2, faults), seeds(4));
        let quiet = ended.iter().all(|ended| ended.faults < 10);
        assert!(!quiet, "{behaviour:?} does nothing");
    }
}

/// Institutions that name the wrong members, while another member floods them with such words.
#[test]
fn survivors_continue_under_standing_and_confirmation_floods() {
    for behaviour in [Behaviour::FloodStandings, Behaviour::FloodConfirmations] {
        let faults = Faults {
            until: Duration::from_secs(30),
            byzantine: Byzantine::Only(Box::leak(Box::new([behaviour]))),
            ..Faults::none()
        };
        let options = BareOptions {
            rounds: 6,
            recoveries: true,
            errors: true,
            ..BareOptions::new(5, faults)
        };
        // The member that floods says nothing that its institution wants, so that where it is among
        // those that remain nothing is recovered. That is the only reason why a run may not live, and two
        // recoveries would be a failure.
        let (mut recovered, mut all) = (0, 0);
        for seed in seeds(20) {
            all += 1;
            match run(seed, &options) {
                Ok(ended) => recovered += usize::from(ended.epochs >= 2),
                Err(failure) => {
                    let stuck = matches!(failure.kind, FailureKind::NotLive { .. });
                    let mut members = failure.diagnosis.members.iter();
                    let remains = |fault: &str| {
                        fault.contains("Byzantine") && !fault.contains("continue without it")
                    };
                    let flooded = members.any(|member| remains(&member.fault));
                    assert!(stuck && flooded, "{failure}");
                }
            }
        }
        assert!(4 * recovered >= all, "{behaviour:?}: {recovered} of {all}");
    }
}
