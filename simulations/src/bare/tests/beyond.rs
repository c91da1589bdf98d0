//! More members missing than a federation can bear, and journals that are lost.

use super::*;

/// Nobody promises progress here, but whatever is said must be safe, and a federation that does not
/// finish says who is stuck where.
#[test]
fn beyond_f_faults_only_safety_is_promised() {
    for members in [3, 4, 7] {
        let faults = match members {
            3 => without_liars(),
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
        assert!(!stalled.is_empty(), "{members}: some must be stuck");
        for diagnosis in stalled {
            assert!(diagnosis.members.iter().any(|member| !member.complete));
        }
    }
}

/// A member that comes back as if it were new, although its key has signed before.
#[test]
fn a_used_key_is_noticed_before_it_signs_anything() {
    let faults = Faults {
        amnesia: Amnesia::Hidden,
        deaths: Deaths::None,
        lies: Lies::None,
        ..Faults::all()
    };
    sweep(4, seeds(60), faults);
    sweep(
        7,
        seeds(10),
        Faults {
            lies: Lies::Any,
            ..faults
        },
    );
}

/// Old answers and small claims must not let a member without its journal vote too early.
#[test]
fn a_member_without_its_journal_is_not_fooled_by_old_answers() {
    let lies = Lies::Only(&[Behaviour::Replay, Behaviour::SyncSmallClaim]);
    let faults = Faults {
        deaths: Deaths::None,
        lies,
        beyond: 1,
        ..Faults::all()
    };
    let mut options = Options::new(4, faults);
    options.rounds = 14;
    run_all(&options, seeds(40));
}
