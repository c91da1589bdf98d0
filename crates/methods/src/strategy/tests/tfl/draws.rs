//! Client sampling: who trains, whose losses count, who is absent.

use super::*;

#[test]
fn a_step_of_drfa_by_hand() {
    let strategy = strategy(
        "drfa",
        4,
        json!({ "sample": 2, "losses": { "uniform": 2 }, "rate": 0.05 }),
    );
    let lambda = [0.1, 0.4, 0.3, 0.2];
    let losses = [0.5, 0.25, 2.0, 1.0];
    let mut seen = BTreeSet::new();
    for round in 1..=40 {
        let state = with_memory(genesis(2), "drfa.lambda", &lambda);
        let trains = trains(&*strategy, &state, round, 4);
        let participants = strategy.plan(&state, round).participants.unwrap();
        assert!(trains.iter().all(|member| participants.contains(member)));
        let models: Vec<[f32; 2]> = (0..4).map(|k| [k as f32, 1.0]).collect();
        let entry = |&k: &u16| reporting(k, &models[usize::from(k)], losses[usize::from(k)]);
        let manifest = manifest(participants.iter().map(entry).collect());
        let outcome = super::round(&*strategy, &state, &manifest, round);
        // Of two draws one model counts whole, or two count half.
        let mean = trains.iter().map(|&k| f64::from(k)).sum::<f64>() / trains.len() as f64;
        assert_eq!(values(&outcome.state), [mean, 1.0]);
        // Two members' losses count twice, the others' not at all.
        let stepped = |reporting_pair: [usize; 2]| {
            let mut to = lambda;
            for k in reporting_pair {
                to[k] += 0.05 * 4.0 / 2.0 * f64::from(losses[k]);
            }
            crate::topology::project(&to).unwrap()
        };
        let got = memory(&outcome.state, "drfa.lambda");
        let reports: Vec<[usize; 2]> = (0..4)
            .flat_map(|a| (0..a).map(move |b| [b, a]))
            .filter(|pair| close(&stepped(*pair), got, 1e-12))
            .collect();
        let [reports] = reports[..] else {
            panic!("{got:?} is a step of {} pairs", reports.len());
        };
        let reports: BTreeSet<u16> = reports.iter().map(|&k| k as u16).collect();
        let both: BTreeSet<u16> = trains.iter().copied().chain(reports.clone()).collect();
        assert_eq!(participants, both.into_iter().collect::<Vec<_>>());
        seen.insert((trains, reports));
    }
    assert!(seen.len() > 15, "the draws hardly differ: {seen:?}");
}

#[test]
fn the_rate_decays_and_no_weight_falls_below_the_floor() {
    let losses = |all: [f32; 2]| {
        manifest(vec![
            reporting(0, &[0.0], all[0]),
            reporting(1, &[0.0], all[1]),
        ])
    };
    let options = json!({ "sample": 2, "losses": "all", "decay": 0.9 });
    let decaying = strategy("drfa", 2, options);
    for round in 1..5 {
        let state = genesis(1);
        let outcome = super::round(&*decaying, &state, &losses([1.0, 0.0]), round);
        let step = 0.1 * libm::pow(0.9, (round - 1) as f64) / 2.0;
        assert!(close(
            memory(&outcome.state, "drfa.lambda"),
            &[0.5 + step, 0.5 - step],
            1e-12
        ));
    }
    let floored = strategy("afl", 2, json!({ "lambda-floor": 0.001 }));
    let outcome = super::round(&*floored, &genesis(1), &losses([100.0, 0.0]), 2);
    let expected = [1.0 / 1.001, 0.001 / 1.001];
    assert!(close(
        memory(&outcome.state, "afl.lambda"),
        &expected,
        1e-12
    ));
}

#[test]
fn drawing_by_weights_is_right_on_average() {
    let lambda = [0.5, 0.05, 0.3, 0.0, 0.15];
    let models = [
        [1.0f32, -2.0],
        [30.0, 0.5],
        [-4.0, 1.0],
        [1e6, 1e6],
        [8.0, 0.0],
    ];
    let expected: Vec<f64> = (0..2)
        .map(|at| (0..5).map(|k| lambda[k] * f64::from(models[k][at])).sum())
        .collect();
    let strategy = strategy("tfl", 5, json!({ "participants": { "sample": 2 } }));
    let state = with_memory(genesis(2), "tfl.lambda", &lambda);
    let rounds = 6000;
    let mut sums = [[0.0; 2]; 2];
    for round in 1..=rounds {
        let entries = (0..5).map(|k| reporting(k, &models[usize::from(k)], 1.0));
        let outcome = super::round(
            &*strategy,
            &state,
            &manifest(entries.collect()),
            2 * round - 1,
        );
        for (at, value) in values(&outcome.state).into_iter().enumerate() {
            sums[at][0] += value;
            sums[at][1] += value * value;
        }
    }
    let n = rounds as f64;
    for (sums, expected) in sums.iter().zip(expected) {
        let mean = sums[0] / n;
        let error = ((sums[1] / n - mean * mean) / n).sqrt();
        assert!(
            (mean - expected).abs() < 4.0 * error,
            "{mean} {expected} ± {error}"
        );
    }
}

#[test]
fn draws_differ_from_round_to_round_and_not_from_member_to_member() {
    let options = json!({ "participants": { "sample": 3 }, "losses": { "uniform": 1 } });
    let of = |state: &State, round| {
        let one = strategy("tfl", 9, options.clone());
        let plan = one.plan(state, round);
        (plan.participants.unwrap(), trains(&*one, state, round, 9))
    };
    let state = genesis(3);
    let all: BTreeSet<_> = (1..30).map(|round| of(&state, round)).collect();
    assert!(all.len() > 20, "{all:?}");
    assert_eq!(of(&state, 4), of(&state.clone(), 4));
    // Another agreed seed, other draws; another model, the same.
    let other = crate::strategy::draws::seeded(state.clone(), 7);
    assert!((1..9).any(|round| of(&state, round) != of(&other, round)));
    let other = State::genesis(plain(&[0.0, 0.0, 1.0]));
    assert!((1..9).all(|round| of(&state, round) == of(&other, round)));
    for (participants, trains) in all {
        assert!((1..=3).contains(&trains.len()) && participants.len() <= 4);
        assert!(participants.is_sorted() && trains.iter().all(|k| participants.contains(k)));
    }
}

#[test]
fn without_replacement_as_many_train_as_are_drawn() {
    let options = json!({ "participants": { "sample": 0 }, "replacement": false });
    let strategy = strategy("tfl", 5, options);
    let state = genesis(1);
    for round in 1..20 {
        assert_eq!(
            strategy.plan(&state, round).participants,
            None,
            "all members report a loss"
        );
        assert_eq!(
            trains(&*strategy, &state, round, 5).len(),
            3,
            "half of five"
        );
    }
}

#[test]
fn who_only_tells_a_loss_is_not_in_the_mean() {
    let strategy = strategy("tfl", 4, json!({ "participants": { "sample": 1 } }));
    let state = genesis(1);
    let [drawn] = trains(&*strategy, &state, 1, 4)[..] else {
        panic!("one draw");
    };
    let entries = (0..4).map(|k| reporting(k, &[if k == drawn { 7.0 } else { 1e9 }], k.into()));
    let outcome = super::round(&*strategy, &state, &manifest(entries.collect()), 1);
    assert_eq!(values(&outcome.state), [7.0]);
    // All losses count.
    let lambda = memory(&outcome.state, "tfl.lambda");
    assert!(lambda.is_sorted() && lambda[0] < lambda[3]);
    // Nor is it in the table of last models.
    let last = outcome.state.tables["tfl.models"].iter();
    let last: Vec<_> = last.map(|model| model.values()[0]).collect();
    let expected: Vec<_> = (0..4).map(|k| if k == drawn { 7.0 } else { 0.0 }).collect();
    assert_eq!(last, expected);
}

#[test]
fn who_is_away_keeps_its_weight_and_its_prior() {
    for (divergence, q) in [("l2", 0.1), ("kl", 1.0), ("chi-squared", 0.5)] {
        let options = json!({ "period": 1, "divergence": divergence, "q": q });
        let strategy = strategy("tfl", 4, options);
        let lambda = [0.1, 0.2, 0.3, 0.4];
        let prior = [0.4, 0.3, 0.2, 0.1];
        let state = with_memory(genesis(2), "tfl.lambda", &lambda);
        let state = with_memory(state, "tfl.prior", &prior);
        let entries = vec![
            reporting(3, &[4.0, 0.0], 0.1),
            reporting(0, &[1.0, 2.0], 0.9),
            reporting(1, &[2.0, 1.0], 0.2),
        ];
        let outcome = super::round(&*strategy, &state, &manifest(entries), 2);
        let next = memory(&outcome.state, "tfl.lambda");
        assert_eq!(next[2], 0.3);
        assert!(close(&[next.iter().sum()], &[1.0], 1e-12) && next[0] > 0.1);
        // The mean is of those present, by their λ.
        let present = next[0] + next[1] + next[3];
        let expected = (next[0] + 2.0 * next[1] + 4.0 * next[3]) / present;
        assert!((values(&outcome.state)[0] - expected).abs() < 1e-6);
        let after = memory(&outcome.state, "tfl.prior");
        assert_eq!(after[2], 0.2);
        assert!(close(&[after.iter().sum()], &[1.0], 1e-12));
        let graph = adjacency(&outcome.state);
        assert!(graph[8..12].iter().all(|&edge| edge == 0.0));
    }
}

#[test]
fn who_is_left_of_a_draw_shares_the_mean() {
    let strategy = strategy("tfl", 6, json!({ "participants": { "sample": 6 } }));
    let state = genesis(1);
    // A round in which some members are drawn and some are not.
    let (round, drawn) = (1..)
        .map(|round| (round, trains(&*strategy, &state, round, 6)))
        .find(|(_, drawn)| (2..5).contains(&drawn.len()))
        .unwrap();
    let others = (0..6).filter(|k| !drawn.contains(k));
    let one = drawn[0];
    let entries = others.clone().map(|k| reporting(k, &[1e9], 1.0));
    let entries: Vec<_> = entries.chain([reporting(one, &[5.0], 1.0)]).collect();
    let outcome = super::round(&*strategy, &state, &manifest(entries), round);
    assert_eq!(values(&outcome.state), [5.0]);
    // No drawn member is present: the model stays as it is.
    let entries = others.map(|k| reporting(k, &[1e9], 1.0)).collect();
    let outcome = super::round(&*strategy, &state, &manifest(entries), round);
    assert_eq!(outcome.state.models, state.models);
    // No present member has any weight: all alike.
    let afl = self::strategy("afl", 3, json!({}));
    let state = with_memory(genesis(1), "afl.lambda", &[0.0, 0.0, 1.0]);
    let entries = vec![reporting(0, &[2.0], 1.0), reporting(1, &[4.0], 1.0)];
    let outcome = super::round(&*afl, &state, &manifest(entries), 2);
    assert_eq!(values(&outcome.state), [3.0]);
    assert_eq!(memory(&outcome.state, "afl.lambda"), [0.0, 0.0, 1.0]);
}
