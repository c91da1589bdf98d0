#![allow(clippy::unwrap_used)]
use learn::TaskStudy;
use std::ops::ControlFlow;

use methods::learner::Optimiser;

use super::*;

/// Four silos of patients, the first with these behaviours, the last with the last of them as well.
fn silos(behaviours: &[Behaviour]) -> (Vec<StudySilo>, Vec<Arc<dyn Learner>>) {
    let task: task::TaskConfig = toml::from_str(
        "[table]\ndata = 'diabetes'\nstandardise = 'silo'\nmodel = { linear = { loss = 'absolute' } }",
    )
    .unwrap();
    let study = task.study(Some(4), None, 7).unwrap();
    let mut lies: Vec<_> = behaviours.iter().map(|one| (0, *one)).collect();
    lies.extend(behaviours.last().map(|one| (3, *one)));
    let learners = lying(&study.silos, &lies, 7).unwrap();
    (study.silos, learners)
}

fn trained(learner: &dyn Learner, start: &Params, round: u64) -> Vec<f64> {
    let training = Training {
        epochs: 2,
        batch: 8,
        optimiser: Optimiser::Sgd {
            rate: 0.05,
            momentum: 0.0,
            weight_decay: 0.0,
        },
        decay: None,
    };
    let go_on = &mut |_| ControlFlow::Continue(());
    let seed = learner.seed(5, round);
    let update = learner.train(start, &Params::empty(), &training, seed, go_on);
    let update = update.unwrap();
    let pairs = update.shared.values().iter().zip(start.values());
    pairs.map(|(to, from)| f64::from(to - from)).collect()
}

fn length(update: &[f64]) -> f64 {
    update.iter().map(|value| value * value).sum::<f64>().sqrt()
}

#[test]
fn a_flipped_update_is_the_honest_one_reversed_and_tripled() {
    let (silos, learners) = silos(&[Behaviour::SignFlip]);
    let start = silos[0].learner.initial(1);
    let honest = trained(&*silos[0].learner, &start, 1);
    let told = trained(&*learners[0], &start, 1);
    for (honest, told) in honest.iter().zip(&told) {
        assert!((told + 3.0 * honest).abs() < 1e-5, "{told} of {honest}");
    }
    let other = trained(&*silos[1].learner, &start, 1);
    assert_eq!(
        trained(&*learners[1], &start, 1),
        other,
        "others are honest"
    );
}

#[test]
fn noise_is_thrice_as_long_as_the_update_and_new_in_each_round() {
    let (silos, learners) = silos(&[Behaviour::Noise]);
    let start = silos[0].learner.initial(1);
    let noise = |round: u64| -> Vec<f64> {
        let honest = trained(&*silos[0].learner, &start, round);
        let told = trained(&*learners[0], &start, round);
        let factor = 1.0 / length(&honest);
        let pairs = told.iter().zip(&honest);
        pairs
            .map(|(told, honest)| factor * (told - honest))
            .collect()
    };
    let rounds: Vec<Vec<f64>> = (1..=40).map(noise).collect();
    let mean = rounds.iter().map(|noise| length(noise)).sum::<f64>() / 40.0;
    assert!((2.5..3.5).contains(&mean), "{mean}");
    assert_ne!(rounds[0], rounds[1]);
}

#[test]
fn colluding_members_contribute_equal_models() {
    let (silos, learners) = silos(&[Behaviour::Collusion]);
    let start = silos[0].learner.initial(1);
    let told = trained(&*learners[0], &start, 2);
    assert_eq!(told, trained(&*learners[3], &start, 2));
    assert_ne!(told, trained(&*learners[3], &start, 3));
    assert_eq!(learners[3].samples(), silos[3].learner.samples());
    let honest = trained(&*silos[0].learner, &start, 2);
    let along: f64 = told
        .iter()
        .zip(&honest)
        .map(|(told, honest)| told * honest)
        .sum();
    assert!(
        along < 0.0,
        "it does not point against what was learned: {along}"
    );
}

#[test]
fn shuffled_labels_change_the_training_and_nothing_else() {
    let (silos, learners) = silos(&[Behaviour::ShuffledLabels]);
    let start = silos[0].learner.initial(1);
    let honest = trained(&*silos[0].learner, &start, 1);
    assert_ne!(honest, trained(&*learners[0], &start, 1));
    let loss = |learner: &dyn Learner| {
        let metrics = learner.evaluate(&start, &Params::empty(), Split::Test);
        metrics.unwrap()
    };
    assert_eq!(loss(&*silos[0].learner), loss(&*learners[0]));
}

#[test]
fn false_losses_are_ten_times_as_large_and_the_model_is_honest() {
    let (silos, learners) = silos(&[Behaviour::FalseLosses]);
    let start = silos[0].learner.initial(1);
    let told = trained(&*learners[0], &start, 1);
    assert_eq!(told, trained(&*silos[0].learner, &start, 1));
    for radius in [0.0, 0.1] {
        let loss = |learner: &Arc<dyn Learner>| {
            let loss = learner.loss(&start, &Params::empty(), radius, Split::Train);
            loss.unwrap()
        };
        let (honest, told) = (loss(&silos[0].learner), loss(&learners[0]));
        assert!(
            (told - 10.0 * honest).abs() < 1e-9 * told,
            "{told} of {honest}"
        );
    }
}

#[test]
fn false_row_claims_join_any_other_lie_and_do_not_change_models() {
    let absurd = |behaviours: &[Behaviour]| {
        let (silos, learners) = silos(behaviours);
        let start = silos[0].learner.initial(1);
        let training = Training {
            epochs: 1,
            batch: 8,
            optimiser: Optimiser::Sgd {
                rate: 0.05,
                momentum: 0.0,
                weight_decay: 0.0,
            },
            decay: None,
        };
        let go_on = &mut |_| ControlFlow::Continue(());
        let update = learners[0].train(&start, &Params::empty(), &training, 5, go_on);
        update.unwrap()
    };
    let (claims, reversed) = (&[Behaviour::FalseRows][..], Behaviour::SignFlip);
    assert_eq!(absurd(claims).samples, 9_000_000_000_000_000);
    let honest = absurd(&[Behaviour::FalseLosses]);
    assert_eq!(absurd(claims).shared.values(), honest.shared.values());
    assert!(honest.samples < 442);
    for both in [
        [Behaviour::FalseRows, reversed],
        [reversed, Behaviour::FalseRows],
    ] {
        let update = absurd(&both);
        assert_eq!(update.samples, 9_000_000_000_000_000);
        assert_ne!(update.shared.values(), honest.shared.values());
    }
}
