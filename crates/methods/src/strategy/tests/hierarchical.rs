//! The hierarchical model over silos with rows.

use std::ops::ControlFlow;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use serde_json::Value;

use super::quadratic::QuadraticFederation;
use super::*;
use crate::learner::{
    Capabilities, LearnError, Learner, LinearRows, Metrics, Split, Training, Update,
};
use crate::matrix::Matrix;
use crate::mixed::{
    Family, MixedProgress, MixedSettings, Prior, SiteSums, Varying, is_whole, mode,
};
use crate::random::normal;
use crate::robust::ridge::PlainLoss;
use crate::robust::{LinearModel, Samples};
use crate::strategy::{AnswerWords, statistics_in_vain};

/// A silo with a linear model of two columns, and rows of its own.
#[derive(Clone)]
struct TestSite {
    rows: Samples,
    loss: PlainLoss,
}

impl Learner for TestSite {
    fn layout(&self) -> Arc<Layout> {
        Layout::new(vec![
            TensorSpec::new("weight", [1, 2], Role::Weight),
            TensorSpec::new("bias", [1], Role::Bias),
        ])
        .unwrap()
    }

    fn initial(&self, _: u64) -> Params {
        Params::zeros(&self.layout())
    }

    fn train(
        &self,
        _: &Params,
        _: &Params,
        _: &Training,
        _: u64,
        _: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        unreachable!("silos fit")
    }

    fn evaluate(&self, model: &Params, _: &Params, _: Split) -> Result<Metrics, LearnError> {
        let loss = self.loss.mean(&self.rows, &linear(model));
        Ok(Metrics {
            samples: self.samples(),
            values: [("loss".to_owned(), loss)].into(),
        })
    }

    fn samples(&self) -> u64 {
        self.rows.len() as u64
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities {
            linear_rows: Some(self),
            ..Capabilities::NONE
        }
    }
}

impl LinearRows for TestSite {
    fn linear_rows(&self, _: &Params, _: &Params) -> Result<Samples, LearnError> {
        Ok(self.rows.clone())
    }

    fn linear_loss(&self) -> PlainLoss {
        self.loss
    }
}

fn linear(model: &Params) -> LinearModel {
    let values = |name| model.tensor(name).unwrap().iter().map(|&v| f64::from(v));
    LinearModel {
        weights: values("weight").collect(),
        intercept: values("bias").sum(),
    }
}

/// Silos whose intercepts spread by 1 and whose slopes by `slopes` around common ones.
fn sites(count: usize, slopes: f64, loss: PlainLoss) -> Vec<TestSite> {
    let mut random = ChaCha8Rng::seed_from_u64(11);
    let mut site = || {
        let own = [
            0.3 + normal(&mut random),
            -0.8 + slopes * normal(&mut random),
            0.5 + slopes * normal(&mut random),
        ];
        let drawn: Vec<_> = (0..25)
            .map(|_| {
                let x = [normal(&mut random), normal(&mut random)];
                let output = own[0] + own[1] * x[0] + own[2] * x[1] + 0.6 * normal(&mut random);
                (
                    x,
                    if loss == PlainLoss::Logistic {
                        output.signum()
                    } else {
                        output
                    },
                )
            })
            .collect();
        let (features, targets): (Vec<_>, Vec<_>) = drawn.into_iter().unzip();
        let features = Matrix::from_rows(&features).unwrap();
        TestSite {
            rows: Samples::new(features, targets).unwrap(),
            loss,
        }
    };
    (0..count).map(|_| site()).collect()
}

fn strategy(options: Value) -> Box<dyn Strategy> {
    equipped::strategy("hierarchical", options)
}

/// A federation that went on to its end.
fn ended(options: Value, sites: Vec<TestSite>) -> QuadraticFederation {
    let mut federation = QuadraticFederation::new(strategy(options), sites);
    while !federation.strategy.ends(&federation.state) {
        federation.round();
        assert!(federation.round < 60, "{:?}", federation.state.memory);
    }
    federation
}

fn chosen(federation: &QuadraticFederation) -> Option<u64> {
    federation.state.memory.count("hierarchical.chosen")
}

#[test]
fn rounds_reach_the_exact_estimates_and_silos_keep_their_fit() {
    for (loss, family) in [
        (PlainLoss::Squared, Family::Gaussian),
        (PlainLoss::Logistic, Family::Binomial),
    ] {
        let silos = sites(12, 0.7, loss);
        let federation = ended(json!({ "varying": ["slopes"] }), silos.clone());
        let settings = MixedSettings::default();
        let mut at = MixedProgress::start(Varying::Slopes, 3, &settings);
        let mut rounds = 0;
        while !at.done {
            rounds += 1;
            let shape = at.shape(is_whole(rounds), family == Family::Gaussian);
            let inverse = at.inverse();
            let each = silos.iter().map(|silo| {
                let fit = mode(&silo.rows, family, at.prior()).unwrap();
                SiteSums::of(shape, at.prior(), &fit, inverse.as_ref())
            });
            let sum = each.reduce(|mut sum, one| {
                sum.add(&one);
                sum
            });
            at = at.step(&sum.unwrap(), 12.0, 300.0, &settings);
        }
        // One round more compares with fits alone.
        assert_eq!(federation.round, rounds + 1);
        let Some(Kept::Numbers(mean)) = federation.state.memory.get("hierarchical.slopes.mean")
        else {
            panic!("the members keep the mean");
        };
        let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-9;
        assert!(
            mean.iter().zip(&at.mean).all(near),
            "{mean:?} {:?}",
            at.mean
        );
        let model = &federation.state.models[0];
        for (silo, personal) in federation.learners.iter().zip(&federation.personal) {
            let own = linear(&silo.deployed(model, personal).unwrap());
            let rows = silo.linear_rows().unwrap();
            let rows = rows.linear_rows(model, personal).unwrap();
            let prior = Prior { ..at.prior() };
            let expected = mode(&rows, family, prior).unwrap().model();
            assert!((own.intercept - expected.intercept).abs() < 1e-5);
            assert!((own.weights[1] - expected.weights[1]).abs() < 1e-5);
        }
    }
}

#[test]
fn the_model_weighs_most_that_fits_how_silos_differ() {
    let of = |slopes: f64| {
        let federation = ended(json!({}), sites(16, slopes, PlainLoss::Squared));
        let alone = federation.state.models[0]
            .tensor("hierarchical.alone")
            .unwrap()[0];
        assert_eq!(alone, 0.0, "silos are better off together");
        chosen(&federation).unwrap()
    };
    // Places in the default list: nothing, intercept, one-strength, slopes.
    assert!(of(0.8) >= 2);
    let options = json!({ "varying": ["nothing", "intercept", "slopes"] });
    let intercepts = ended(options, sites(16, 0.0, PlainLoss::Squared));
    assert_eq!(chosen(&intercepts), Some(1));
}

#[test]
fn silos_are_served_the_average_of_all_models() {
    let federation = ended(json!({}), sites(5, 0.4, PlainLoss::Logistic));
    let kept = |name: &str| match federation.state.memory.get(name) {
        Some(Kept::Numbers(numbers)) => numbers.clone(),
        other => panic!("{name} is {other:?}"),
    };
    let weights = kept("hierarchical.weights");
    assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    let most = weights[chosen(&federation).unwrap() as usize];
    assert!(weights.iter().all(|&weight| weight <= most));
    assert!(most < 1.0 - 1e-6, "several count: {weights:?}");
    let model = linear(&federation.state.models[0]);
    let served = [model.intercept, model.weights[0], model.weights[1]];
    let means = Varying::ALL.map(|one| kept(&format!("hierarchical.{}.mean", one.name())));
    for (at, served) in served.iter().enumerate() {
        let average = weights.iter().zip(&means).map(|(w, mean)| w * mean[at]);
        assert!((served - average.sum::<f64>()).abs() < 1e-5);
    }
}

#[test]
fn a_newcomer_is_given_the_global_model_and_members_their_own() {
    let silos = sites(10, 0.8, PlainLoss::Squared);
    let federation = ended(json!({}), silos.clone());
    let model = &federation.state.models[0];
    let silo = &federation.learners[0];
    let newcomer = Newcomer {
        learner: &**silo,
        personal: &silo.initial_personal(3),
        radius: &OwnRadius::default(),
        seed: 1,
    };
    let given = federation
        .strategy
        .unseen(&federation.state, federation.round, newcomer)
        .unwrap();
    assert_eq!(&given, model);
    let common = silo.deployed(&given, newcomer.personal).unwrap();
    assert_eq!(common.tensor("weight"), model.tensor("weight"));
    let losses = federation.losses();
    let of_common = silos
        .iter()
        .map(|site| site.loss.mean(&site.rows, &linear(&common)));
    let better = losses
        .iter()
        .zip(of_common)
        .filter(|(own, common)| *own < common)
        .count();
    assert_eq!(better, 10, "every silo's own fit is nearer to its rows");
}

#[test]
fn fits_without_a_fold_are_trained_around_the_final_model() {
    let federation = ended(json!({}), sites(8, 0.8, PlainLoss::Squared));
    let (model, silo) = (&federation.state.models[0], &federation.learners[2]);
    let mut go_on = |_| ControlFlow::Continue(());
    let initial = silo.initial_personal(0);
    let update = silo
        .train(model, &initial, &training(), 0, &mut go_on)
        .unwrap();
    assert_eq!(&update.shared, model);
    let fresh = linear(&silo.deployed(model, &update.personal).unwrap());
    let kept = linear(&silo.deployed(model, &federation.personal[2]).unwrap());
    assert_eq!(fresh, kept);
}

#[test]
fn rounds_after_the_end_change_nothing() {
    let mut federation = ended(json!({}), sites(6, 0.5, PlainLoss::Squared));
    let (state, losses) = (federation.state.clone(), federation.losses());
    for _ in 0..2 {
        federation.round();
        assert_eq!(federation.state, state);
        assert_eq!(federation.losses(), losses);
    }
}

/// The manifest of a round, and the state before it.
fn manifest_of(federation: &QuadraticFederation, round: u64) -> LoadedManifest {
    let plan = federation.strategy.plan(&federation.state, round);
    let each = federation.learners.iter().zip(&federation.personal);
    let entries = each.map(|(learner, personal)| {
        let participant = Participant {
            member: 0,
            coalition: 0,
            learner: &**learner,
            personal,
            radius: &federation.radius,
            seed: 1,
        };
        let mut go_on = |_| ControlFlow::Continue(());
        let (_, update) = federation
            .strategy
            .contribute(&federation.state, &plan, round, participant, &mut go_on)
            .unwrap();
        ModelEntry {
            model: update.shared,
            coalition: Some(0),
            weight: None,
            member: None,
        }
    });
    manifest(entries.collect(), None)
}

#[test]
fn settling_again_gives_the_same_bits() {
    let mut federation =
        QuadraticFederation::new(strategy(json!({})), sites(7, 0.5, PlainLoss::Logistic));
    for number in 1..6 {
        let manifest = manifest_of(&federation, number);
        let bits = || {
            let state = round(&*federation.strategy, &federation.state, &manifest, number).state;
            let models: Vec<Digest> = state.models.iter().map(Params::hash).collect();
            (models, format!("{:?}", state.memory))
        };
        assert_eq!(bits(), bits());
        let after = round(&*federation.strategy, &federation.state, &manifest, number).state;
        federation.round();
        assert_eq!(federation.state, after);
    }
}

#[test]
fn forged_contributions_are_refused_or_count_as_absent() {
    let federation =
        QuadraticFederation::new(strategy(json!({})), sites(5, 0.5, PlainLoss::Squared));
    let honest = manifest_of(&federation, 1);
    let (by, state) = (&*federation.strategy, &federation.state);
    let forged = |place: usize, value: f32| {
        let mut values = honest.entries[2].model.values().to_vec();
        values[place] = value;
        let mut manifest = honest.clone();
        manifest.entries[2].model = Params::from_values(honest.entries[2].model.layout(), &values);
        manifest
    };
    for value in [f32::NAN, f32::INFINITY] {
        let refused = by.admit(&forged(4, value).entries[2], 1).unwrap_err();
        assert!(refused.contains("not finite"), "{refused}");
    }
    let mut without = honest.clone();
    without.entries.remove(2);
    let expected = round(by, state, &without, 1).state;
    // Counts of sites and rows, and the first entry of W, which is a variance.
    for (place, value) in [(0, 7.0), (1, 0.5), (1, -3.0), (6, -1e6), (2, 3e38)] {
        let settled = round(by, state, &forged(place, value), 1).state;
        assert_eq!(settled, expected, "{value} at {place}");
    }
    // What is possible counts, but moves nothing without bounds.
    let pulled = round(by, state, &forged(4, 1e9), 1).state;
    assert!(
        pulled.models[0]
            .values()
            .iter()
            .all(|value| value.abs() <= 20.0)
    );
    // A round of nothing but forgeries leaves everything as it was.
    let mut all = forged(0, 7.0);
    let forged_entry = all.entries[2].clone();
    all.entries.fill(forged_entry);
    let after = round(by, state, &all, 1).state;
    assert_eq!(after.models, state.models);
}

#[test]
fn a_state_of_another_strategy_is_refused() {
    let federation =
        QuadraticFederation::new(strategy(json!({})), sites(3, 0.5, PlainLoss::Squared));
    let manifest = manifest_of(&federation, 1);
    let decision = Decision::fixed(vec![0; 3]);
    let refused = federation
        .strategy
        .settle(&genesis(), &manifest, &decision, 1);
    assert!(refused.unwrap_err().to_string().contains("no global model"));
    let decision = Decision::fixed(vec![0, 1, 0]);
    let refused = federation
        .strategy
        .settle(&federation.state, &manifest, &decision, 1);
    assert!(matches!(refused, Err(SettleError::Infeasible(_))));
}

#[test]
fn models_that_are_not_linear_and_absolute_loss_are_refused() {
    let refused = |learner: Arc<dyn Learner>, options: Value| {
        let equipped = strategy(options).equip(learner).map(drop);
        equipped.unwrap_err().to_string()
    };
    let site = |loss| Arc::new(sites(1, 0.0, loss).remove(0));
    let quadratic = Arc::new(super::quadratic::quadratic([1.0; 5]));
    let words = refused(quadratic, json!({}));
    assert!(words.contains("no rows of a linear model"), "{words}");
    let words = refused(site(PlainLoss::Absolute), json!({}));
    assert!(words.contains("needs squared loss"), "{words}");
    for options in [
        json!({ "personal": ["intercept"] }),
        json!({ "stop": { "patience": 2 } }),
    ] {
        let words = refused(site(PlainLoss::Squared), options);
        assert!(words.contains("needs a linear model"), "{words}");
    }
}

/// The manifest of a round that opens the sum alone.
fn summed(manifest: &LoadedManifest) -> LoadedManifest {
    let answers = manifest.entries.iter().map(|entry| &entry.model);
    let answers: Vec<AnswerWords> = answers
        .map(|model| AnswerWords::read(model).unwrap())
        .collect();
    let mut sum = vec![0i64; answers[0].integers().len()];
    for answer in &answers {
        let pairs = sum.iter_mut().zip(answer.integers());
        pairs.for_each(|(sum, own)| *sum = sum.wrapping_add(own));
    }
    let sum = AnswerWords::of_integers((7, answers.len() as u64), &sum);
    let mut alone = manifest.clone();
    alone.entries.truncate(1);
    alone.entries[0].model = sum.write();
    alone
}

fn integers(varying: Value) -> Value {
    json!({ "exponent": 0, "varying": varying })
}

#[test]
fn sums_alone_give_the_bits_of_single_contributions() {
    for loss in [PlainLoss::Squared, PlainLoss::Logistic] {
        let by = strategy(integers(json!(["nothing", "intercept", "slopes"])));
        let mut federation = QuadraticFederation::new(by, sites(12, 0.7, loss));
        let mut number = 0;
        while !federation.strategy.ends(&federation.state) {
            number += 1;
            assert!(number < 60, "{:?}", federation.state.memory);
            let manifest = manifest_of(&federation, number);
            let by = &*federation.strategy;
            let clear = round(by, &federation.state, &manifest, number).state;
            let masked = round(by, &federation.state, &summed(&manifest), number).state;
            assert_eq!(clear, masked, "round {number}");
            assert_ne!(clear, federation.state);
            federation.state = clear;
        }
        assert_eq!(
            federation.state.memory.number("hierarchical.rows"),
            Some(12.0 * 25.0)
        );
        assert_eq!(federation.state.memory.get("hierarchical.refused"), None);
    }
}

#[test]
fn integers_lead_to_the_estimates_of_numbers_a_round_later() {
    for loss in [PlainLoss::Squared, PlainLoss::Logistic] {
        let pairs = ended(json!({ "varying": ["slopes"] }), sites(12, 0.7, loss));
        let whole = ended(integers(json!(["slopes"])), sites(12, 0.7, loss));
        assert_eq!(whole.round, pairs.round + 1);
        let kept = |of: &QuadraticFederation, name: &str| match of.state.memory.get(name) {
            Some(Kept::Numbers(numbers)) => numbers.clone(),
            other => panic!("{name} is {other:?}"),
        };
        for name in ["hierarchical.slopes.mean", "hierarchical.slopes.strengths"] {
            let (pairs, whole) = (kept(&pairs, name), kept(&whole, name));
            for (a, b) in pairs.iter().zip(&whole) {
                assert!((a - b).abs() < 1e-6, "{name}: {pairs:?}, {whole:?}");
            }
        }
        // The rounds opened no more than was announced.
        let fresh =
            QuadraticFederation::new(strategy(integers(json!(["slopes"]))), sites(12, 0.7, loss));
        let account = fresh.strategy.statistics(&fresh.state, 1..=whole.round);
        let opened = whole.state.memory.count("hierarchical.opened").unwrap();
        assert!(opened <= account.unwrap().most, "{opened}, {account:?}");
        assert!(pairs.strategy.statistics(&pairs.state, 1..=9).is_none());
    }
}

#[test]
fn the_account_has_all_numbers_that_rounds_may_open() {
    let by = strategy(integers(json!(["slopes"])));
    let mut federation = QuadraticFederation::new(by, sites(6, 0.8, PlainLoss::Squared));
    let account = |federation: &QuadraticFederation, rounds| {
        let account = federation.strategy.statistics(&federation.state, rounds);
        account.unwrap()
    };
    // Rows first; then 21 numbers with the whole matrix, and 18 with its diagonal.
    let most = |last| account(&federation, 1..=last).most;
    assert_eq!([0, 1, 2, 3, 4, 5].map(most), [0, 2, 23, 41, 62, 80]);
    assert_eq!(most(20), 2 + 3 * 21 + 16 * 18);
    let before = account(&federation, 1..=20);
    assert_eq!((before.before, before.rows), (0, None));
    assert_eq!((before.enough, before.values), (Some(9), 3));
    assert_eq!(before.unknowns_per_number, 3.0);
    // Rows alone begin nothing.
    federation.round();
    let counted = account(&federation, 2..=20);
    assert_eq!([before.begun, counted.begun], [false, false]);
    (1..3).for_each(|_| federation.round());
    let after = account(&federation, 4..=20);
    assert_eq!((after.before, after.rows), (41, Some(150.0)));
    assert_eq!(after.before + after.most, before.most);
    assert!(after.begun);
    let classes = strategy(integers(json!(["slopes"])));
    let classes = QuadraticFederation::new(classes, sites(6, 0.8, PlainLoss::Logistic));
    assert_eq!(account(&classes, 1..=2).enough, None);
}

#[test]
fn a_sum_that_no_silos_have_moves_nothing_and_a_refusal_ends() {
    let by = strategy(integers(json!(["slopes"])));
    let mut federation = QuadraticFederation::new(by, sites(5, 0.5, PlainLoss::Squared));
    federation.round();
    let honest = summed(&manifest_of(&federation, 2));
    let (by, state) = (&*federation.strategy, &federation.state);
    let settled = |change: &dyn Fn(&mut AnswerWords)| {
        let mut answer = AnswerWords::read(&honest.entries[0].model).unwrap();
        change(&mut answer);
        let mut manifest = honest.clone();
        manifest.entries[0].model = answer.write();
        round(by, state, &manifest, 2).state
    };
    let told = settled(&|_| {});
    assert_ne!(told.models, state.models);
    // Silos, rows, the first entry of W, and a word as of wrong masks.
    let forged: [(usize, u64); 4] = [(0, 4), (1, 3), (6, 1 << 63), (1, 0xdead_beef_dead_beef)];
    for (place, word) in forged {
        let settled = settled(&|answer| answer.words[place] = word);
        assert_eq!(settled.models, state.models, "{word} at {place}");
        assert!(!by.ends(&settled));
    }
    let refused = settled(&|answer| {
        answer.words.fill(0x0123_4567_89ab_cdef);
        answer.refused[AnswerWords::TOO_MANY_OPENED] = 2;
    });
    assert!(by.ends(&refused));
    assert_eq!(refused.models, state.models);
    let Some(Kept::Counts(rules)) = refused.memory.get("hierarchical.refused") else {
        panic!("the state keeps by which rules silos refused");
    };
    assert_eq!(rules[AnswerWords::TOO_MANY_OPENED], 2);
    let opened = |state: &State| state.memory.count("hierarchical.opened");
    assert_eq!(opened(&refused), opened(state), "nothing was opened");
    // A round that told nothing is marked, until the next one that does.
    let nothing = by.nothing_told(state, 2);
    assert!(statistics_in_vain(&nothing.memory));
    let mut again = round(by, &nothing, &honest, 2).state;
    // Whoever made it void has read its sum.
    let numbers = AnswerWords::read(&honest.entries[0].model)
        .unwrap()
        .words
        .len() as u64;
    assert_eq!(
        opened(&nothing),
        opened(state).map(|before| before + numbers)
    );
    assert_eq!(opened(&again), opened(&told).map(|once| once + numbers));
    let once = told.memory.get("hierarchical.opened").unwrap().clone();
    again.memory.insert("hierarchical.opened", once);
    assert_eq!(again, told);
}

#[test]
fn a_number_beyond_reach_is_refused_until_steps_are_larger() {
    let far = |exponent: u8| {
        let mut silos = sites(5, 0.5, PlainLoss::Squared);
        let rows = &silos[2].rows;
        // Squared residuals of more than 2²².
        let targets = rows.iter().map(|(_, target)| 1000.0 * target).collect();
        let features: Vec<Vec<f64>> = rows.iter().map(|(x, _)| x.to_vec()).collect();
        let features = Matrix::from_rows(&features).unwrap();
        silos[2].rows = Samples::new(features, targets).unwrap();
        let options = json!({ "exponent": exponent, "varying": ["slopes"] });
        let mut federation = QuadraticFederation::new(strategy(options), silos);
        federation.round();
        manifest_of(&federation, 2)
    };
    let refuses = |manifest: &LoadedManifest, silo: usize| {
        let answer = AnswerWords::read(&manifest.entries[silo].model).unwrap();
        answer.refused[AnswerWords::BEYOND_REACH] == 1
    };
    let fine = far(0);
    assert!(refuses(&fine, 2) && !refuses(&fine, 1));
    let coarse = far(10);
    assert!(!refuses(&coarse, 2));
}
