//! Groups that are known: HCCT finds them and keeps them until the last round.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use lab::{Summary, run};
use simulations::{Options, Scenario};

/// Nine silos that follow one of three true models, as in the experiment `planted`.
fn play(seed: u64, noise: f64, more: &str) -> Summary {
    planted(seed, noise, "groups = 3", more)
}

/// As [`play`], with the options of the data that say how many true models there are.
fn planted(seed: u64, noise: f64, truths: &str, more: &str) -> Summary {
    let text = format!(
        r#"
name = "planted"
seed = {seed}
rounds = 5
silos = 9

[task.table]
data = {{ synthetic = {{ {truths}, rows = [60, 60], noise = {noise:?} }} }}
model = {{ linear = {{ loss = "squared" }} }}

[strategy]
name = "hcct"
training = {{ epochs = 5, batch = 8, optimiser = {{ name = "sgd", rate = 0.03 }} }}
{more}
"#
    );
    let scenario = Scenario::parse("planted.toml", &text).unwrap();
    let options = Options {
        threads: 1,
        cache: true,
        references: false,
        ..Options::default()
    };
    run(&scenario, options).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns whether the groups after the last round are those of the true models.
fn found(summary: &Summary) -> bool {
    let names: Vec<_> = summary.silos.iter().map(|silo| silo.name.clone()).collect();
    let of = |group: usize| -> BTreeSet<String> {
        names.iter().skip(group).step_by(3).cloned().collect()
    };
    let last = summary.rounds.last().unwrap();
    let found = last.coalitions.iter().cloned();
    let found: BTreeSet<BTreeSet<String>> =
        found.map(|group| group.into_iter().collect()).collect();
    found == (0..3).map(of).collect()
}

#[test]
fn planted_groups_are_kept_in_eleven_of_twelve_problems() {
    for noise in [0.0, 0.3] {
        let kept = (1..=12).filter(|&seed| found(&play(seed, noise, "")));
        let kept = kept.count();
        assert!(kept >= 11, "noise {noise}: {kept} of 12");
    }
}

/// `groups = "auto"`, in the words of a strategy's table.
const FOUND: &str = "groups = \"auto\"";

#[test]
fn the_number_of_groups_is_found_for_one_truth_and_for_many() {
    for (truths, noise) in [(1, 1.0), (9, 1.0)] {
        let groups = format!("groups = {truths}");
        let of = |seed: &u64| planted(*seed, noise, &groups, FOUND);
        let summaries: Vec<_> = (1..=4).map(|seed| of(&seed)).collect();
        let counts: Vec<usize> = summaries
            .iter()
            .map(|summary| summary.rounds.last().unwrap().coalitions.len())
            .collect();
        let right = counts.iter().filter(|&&count| count == truths).count();
        assert!(right >= 3, "{truths} truths, noise {noise}: {counts:?}");
    }
}

/// Groups may be smaller than they could be: where a silo's own rows are nearly enough, that costs little, and silos that
/// gain by merging by less than a standard error stay alone.
#[test]
fn no_group_that_is_found_mixes_true_models() {
    let mut alone = 0;
    for (seed, noise) in [
        (1, 0.3),
        (2, 0.3),
        (3, 0.3),
        (4, 0.3),
        (1, 1.0),
        (2, 1.0),
        (3, 1.0),
    ] {
        let summary = planted(seed, noise, "groups = 3", FOUND);
        let names: Vec<_> = summary.silos.iter().map(|silo| silo.name.clone()).collect();
        let truth = |name: &String| names.iter().position(|own| own == name).unwrap() % 3;
        let last = summary.rounds.last().unwrap();
        for group in &last.coalitions {
            let truths: BTreeSet<usize> = group.iter().map(truth).collect();
            assert_eq!(truths.len(), 1, "seed {seed}: {group:?}");
        }
        alone += usize::from(last.coalitions.len() == 9);
    }
    assert!(alone <= 1, "nobody shares in {alone} of seven");
}

#[test]
fn groups_that_are_formed_anew_by_noise_fall_apart() {
    let kept = (1..=4).filter(|&seed| found(&play(seed, 1.0, "regroup = \"always\"")));
    assert!(kept.count() < 3);
}
