#![allow(clippy::unwrap_used)]

use super::*;
use crate::learner::Optimiser;
use crate::params::{Role, TensorSpec};
use crate::strategy::{FedAvg, Method};
use crate::strategy::{StrategyConfig, WeightRule, build};

fn training() -> Training {
    Training {
        epochs: 1,
        batch: 0,
        optimiser: Optimiser::Sgd {
            rate: 0.1,
            momentum: 0.0,
            weight_decay: 0.0,
        },
        decay: None,
    }
}

fn layout() -> Arc<Layout> {
    let tensors = vec![
        TensorSpec::new("weight", [5], Role::Weight),
        TensorSpec::new("spread", [2], Role::Buffer),
    ];
    Layout::by_depth(tensors).unwrap()
}

fn model(seed: f32) -> Params {
    let values: Vec<f32> = (0..7)
        .map(|at| (seed * 1.7 + at as f32 * 0.9).sin() + 1.5)
        .collect();
    Params::from_values(&layout(), &values)
}

fn manifest() -> LoadedManifest {
    let entry = |(seed, rows): (f32, u64)| ModelEntry {
        model: model(seed),
        coalition: Some(0),
        weight: Some(rows),
        member: None,
    };
    LoadedManifest {
        entries: [(1.0, 40), (2.0, 17), (3.0, 3)].map(entry).into(),
        scores: None,
    }
}

/// A rule of a function.
struct Of<F>(F);

impl<F: Fn(&SeenRound<'_>) -> GroupCoefficients + Send + Sync> CustomRule for Of<F> {
    fn settle(&self, seen: &SeenRound<'_>) -> Result<GroupCoefficients, String> {
        Ok(self.0(seen))
    }
}

fn custom(
    name: &str,
    needs: &[&str],
    rule: impl Fn(&SeenRound<'_>) -> GroupCoefficients + Send + Sync + 'static,
) -> Box<dyn Strategy> {
    provide_rule(name, Arc::new(Of(rule)));
    let options = Custom {
        rule: name.into(),
        needs: needs.iter().map(|&need| need.into()).collect(),
    };
    build(&StrategyConfig::new(Method::Custom(options), training()), 3).unwrap()
}

fn settled(strategy: &dyn Strategy, state: &State) -> State {
    let manifest = manifest();
    let decision = strategy.decide(state, &manifest, 1).unwrap();
    strategy.check(state, &manifest, &decision, 1).unwrap();
    strategy
        .settle(state, &manifest, &decision, 1)
        .unwrap()
        .state
}

fn group(row: &[i64]) -> GroupCoefficients {
    GroupCoefficients {
        assignment: vec![0; 3],
        groups: vec![row.to_vec()],
        ..GroupCoefficients::default()
    }
}

#[test]
fn the_mean_by_coefficients_is_fedavg_bit_for_bit() {
    let state = State::genesis(model(0.0));
    let config = StrategyConfig::new(Method::named("custom").unwrap(), training());
    let found = settled(&*build(&config, 3).unwrap(), &state);
    let fedavg = settled(&FedAvg::new(training(), WeightRule::Exact), &state);
    assert_eq!(found.models, fedavg.models);
}

#[test]
fn a_step_beyond_the_mean_leaves_buffers_at_the_mean() {
    let state = State::genesis(model(0.0));
    let strategy = custom("beyond", &[], |_| group(&[-3, 2, 2, 3]));
    let found = settled(&*strategy, &state);
    let [start, a, b, c] = [0.0, 1.0, 2.0, 3.0].map(model);
    let at = |model: &Params, place: usize| f64::from(model.values()[place]);
    for place in 0..7 {
        let mean = 2.0 * at(&a, place) + 2.0 * at(&b, place) + 3.0 * at(&c, place);
        // In the file the buffer is first.
        let expected = if place < 2 {
            mean / 7.0
        } else {
            (mean - 3.0 * at(&start, place)) / 4.0
        };
        assert!(
            (at(&found.models[0], place) - expected).abs() < 1e-6,
            "{place}"
        );
    }
}

#[test]
fn what_a_rule_keeps_comes_back_in_the_next_round() {
    let strategy = custom("keeps", &["state", "gram", "rows"], |seen| {
        assert_eq!(seen.kept.len(), usize::from(!seen.numbers.is_empty()));
        let before = seen.starts.len() + seen.kept.len();
        let of = |row: [i64; 3]| [vec![0; before], row.to_vec()].concat();
        assert_eq!(seen.rows.as_deref(), Some(&[40, 17, 3][..]));
        let gram = seen.gram.as_ref().unwrap();
        assert!(gram[(0, 1)] == gram[(1, 0)] && gram[(2, 2)] > 0.0);
        GroupCoefficients {
            assignment: vec![0, 1, 1],
            groups: vec![of([1, 0, 0]), of([0, 1, 1])],
            kept: vec![of([0, 0, 1])],
            numbers: vec![0.1, f64::from(seen.round as u32)],
        }
    });
    let first = settled(&*strategy, &State::genesis(model(0.0)));
    assert_eq!((first.models.len(), &first.models[0]), (2, &model(1.0)));
    assert_eq!(first.tables[KEPT], [model(3.0)]);
    assert_eq!(
        first.memory.get(NUMBERS),
        Some(&Kept::Numbers(vec![0.1, 1.0]))
    );
    let second = settled(&*strategy, &first);
    assert_eq!(second.models.len(), 2);
}

#[test]
fn coefficients_that_fit_no_round_are_refused_in_words() {
    let state = State::genesis(model(0.0));
    let refused = |name: &str, settling: GroupCoefficients| {
        let strategy = custom(name, &[], move |_| settling.clone());
        strategy
            .decide(&state, &manifest(), 1)
            .unwrap_err()
            .to_string()
    };
    let cases = [
        (group(&[0, 1, 1]), "group 0 has 3 coefficients"),
        (group(&[1, 1, -1, -1]), "add up to 0"),
        (group(&[0, i64::MAX, 1, 1]), "above 2^53"),
        (
            GroupCoefficients {
                assignment: vec![0, 1, 0],
                ..group(&[0, 1, 1, 1])
            },
            "group 1",
        ),
        (
            GroupCoefficients {
                assignment: vec![0],
                ..group(&[0, 1, 1, 1])
            },
            "3 entries",
        ),
        (
            GroupCoefficients {
                numbers: vec![f64::NAN],
                ..group(&[0, 1, 1, 1])
            },
            "not finite",
        ),
        (
            GroupCoefficients {
                groups: vec![],
                ..group(&[])
            },
            "0 groups",
        ),
    ];
    for (nth, (settling, words)) in cases.into_iter().enumerate() {
        let said = refused(&format!("refused {nth}"), settling);
        assert!(said.contains(words), "{said}");
    }
    // A member refuses what a lead would make of it.
    let strategy = custom("good", &[], |_| group(&[0, 1, 1, 1]));
    let good = strategy.decide(&state, &manifest(), 1).unwrap();
    let altered = |change: &dyn Fn(&mut Claim)| {
        let mut claim = good.claim.clone().unwrap();
        change(&mut claim);
        let decision = Decision {
            claim: Some(claim),
            ..good.clone()
        };
        strategy.check(&state, &manifest(), &decision, 1).is_err()
    };
    assert!(!altered(&|_| ()));
    assert!(altered(&|claim| claim.objective = 1.0));
    assert!(altered(&|claim| claim.candidates[1].truncate(6)));
    assert!(altered(&|claim| claim.candidates[0][0] = u32::MAX));
    assert!(altered(&|claim| claim.candidates.clear()));
    assert!(
        strategy
            .check(&state, &manifest(), &Decision::fixed(vec![0; 3]), 1)
            .is_err()
    );
}

#[test]
fn a_rule_that_no_process_provides_is_refused_before_the_first_round() {
    let options = Custom {
        rule: "nobody's".into(),
        ..Custom::default()
    };
    let strategy = build(&StrategyConfig::new(Method::Custom(options), training()), 3).unwrap();
    let learner = crate::learner::QuadraticLearner::new(&[0.0]);
    let why = strategy
        .equip(Arc::new(learner))
        .err()
        .map(|error| error.to_string());
    assert!(why.is_some_and(|why| why.contains("nobody's") && why.contains("rota.simulate")));
    let needs = Custom {
        needs: vec!["everything".into()],
        ..Custom::default()
    };
    let wrong = build(&StrategyConfig::new(Method::Custom(needs), training()), 3);
    assert!(
        wrong
            .err()
            .is_some_and(|why| why.to_string().contains("numbers:NAME"))
    );
}
