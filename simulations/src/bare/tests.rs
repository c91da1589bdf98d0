//! Many worlds. `ROTA_SEEDS` asks for more of them than fit into a run of all tests.

#![allow(clippy::unwrap_used)]

use protocol::member::{Config, Mutation};

use super::*;

fn seeds(usual: u64) -> std::ops::Range<u64> {
    0..std::env::var("ROTA_SEEDS")
        .ok()
        .and_then(|seeds| seeds.parse().ok())
        .unwrap_or(usual)
}

fn sweep(members: usize, seeds: impl IntoIterator<Item = u64>, faults: Faults) -> Vec<Ended> {
    let options = Options::new(members, faults);
    let run = |seed| run(seed, &options).unwrap_or_else(|failure| panic!("{failure}"));
    seeds.into_iter().map(run).collect()
}

#[test]
fn without_faults_every_round_takes_one_view() {
    for members in [1, 2, 3, 4, 7, 10] {
        for ended in sweep(members, 0..5, Faults::none()) {
            assert_eq!(ended.faults, 1, "healing is the only act");
            assert!(ended.views <= 4, "{members}: {ended:?}");
            // Some trainings take longer than the others are patient; none is done twice.
            let most = members as u64;
            assert!(
                ended
                    .trainings
                    .iter()
                    .all(|&done| 2 * done >= most && done <= most)
            );
        }
    }
}

#[test]
fn a_seed_is_a_run() {
    let options = Options::new(4, Faults::all());
    assert_eq!(run(1, &options).unwrap(), run(1, &options).unwrap());
    assert_ne!(
        run(1, &options).unwrap().trace,
        run(2, &options).unwrap().trace
    );
}

#[test]
fn four_members_live_with_everything() {
    let faults: u64 = sweep(4, seeds(150), Faults::all())
        .iter()
        .map(|ended| ended.faults)
        .sum();
    assert!(faults > 10_000, "{faults}");
}

#[test]
fn seven_and_ten_members_live_with_everything() {
    sweep(7, seeds(30), Faults::all());
    sweep(10, seeds(10), Faults::all());
}

#[test]
fn a_strategy_without_cross_evaluation_lives_with_everything() {
    let mut options = Options::new(4, Faults::all());
    options.cross_evaluate = false;
    for seed in seeds(50) {
        run(seed, &options).unwrap_or_else(|failure| panic!("{failure}"));
    }
}

#[test]
fn federations_too_small_for_liars_live_with_crashes() {
    let faults = Faults {
        amnesia: false,
        byzantine: false,
        ..Faults::all()
    };
    for members in [1, 2, 3] {
        // 452: votes against a view were not collected again after both members came back. 549: a
        // member that had missed the end heard nothing more from those that had not.
        sweep(members, seeds(20).chain([452, 549]), faults);
    }
}

/// Seeds that showed something once: members that ask a voter for blocks who has none or does not
/// answer, again and again (235, 445, 747, 1799, 2164), and a Receipt that comes while its proposal
/// is being checked (866, 1395, 2717, 2795).
#[test]
fn what_was_wrong_once_stays_right() {
    let seeds = [235, 445, 747, 866, 1395, 1799, 2164, 2717, 2795];
    sweep(4, seeds, Faults::all());
}

fn caught(options: &Options) -> bool {
    let wrong = |failure: &Failure| !matches!(failure, Failure::NotLive { .. });
    (0..400).any(|seed| run(seed, options).is_err_and(|failure| wrong(&failure)))
}

fn broken(rule: Mutation) -> bool {
    let mut options = Options::new(
        4,
        Faults {
            crashes: 6,
            ..Faults::all()
        },
    );
    options.alter = Some(Arc::new(move |config: Config| config.breaking(rule)));
    caught(&options)
}

#[test]
fn a_broken_rule_of_voting_is_noticed() {
    assert!(broken(Mutation::QuorumMinusOne));
    assert!(broken(Mutation::VotesForgotten));
    assert!(broken(Mutation::FinalizeAfterNullify));
    assert!(broken(Mutation::NotarizeTwice));
}

#[test]
fn a_broken_rule_of_proposing_is_noticed() {
    assert!(broken(Mutation::SkippedWithoutProof));
    assert!(broken(Mutation::InclusionMissing));
    assert!(broken(Mutation::ForgedScore));
    assert!(broken(Mutation::ReceiptIgnored));
    assert!(broken(Mutation::RoundFromNotarised));
}

#[test]
fn a_rule_that_the_surroundings_break_is_noticed() {
    let mut late = Options::new(
        4,
        Faults {
            inside: 0.03,
            crashes: 6,
            ..Faults::all()
        },
    );
    late.persist_last = true;
    let mut forget = late.clone();
    (forget.persist_last, forget.forget) = (false, true);
    assert!(caught(&late) && caught(&forget));
}
