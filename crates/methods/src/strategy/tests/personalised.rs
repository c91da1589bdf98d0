//! FedNova, FedDyn, APFL, pFedMe and FedALA against their formulas, on quadratics.

use serde_json::{Value, json};

use super::equipped::strategy;
use super::quadratic::{QuadraticFederation, quadratic, trained};
use super::*;

/// The first of the trained values, which all begin at 7; see [`quadratic`].
const START: f64 = 7.0;

fn silos() -> Vec<QuadraticLearner> {
    vec![
        quadratic([0.0, 1.0, -1.0, 2.0, 3.0]).with_curvature(&[1.0, 0.5, 2.0, 1.0, 1.0]),
        quadratic([4.0, -1.0, 1.0, 1.0, -3.0]).with_curvature(&[0.2, 1.0, 1.0, 0.5, 2.0]),
    ]
}

fn federation(name: &str, more: Value) -> QuadraticFederation {
    QuadraticFederation::new(strategy(name, more), silos())
}

/// Training of so many plain steps at this rate.
fn steps(epochs: u32, rate: f64) -> Value {
    let optimiser = json!({ "name": "sgd", "rate": rate });
    json!({ "epochs": epochs, "batch": 0, "optimiser": optimiser })
}

fn close(got: f64, expected: f64) {
    let off = (got - expected).abs();
    assert!(
        off < 1e-5 * expected.abs().max(1.0),
        "{got}, not {expected}"
    );
}

/// The first trained value of a model.
fn first(model: &Params) -> f64 {
    trained(model)[0]
}

/// The global model after a round of FedNova from 0, given the models and rows of two silos.
fn nova(momentum: f64, rows: [u64; 2], reached: [f32; 2]) -> f64 {
    let optimiser = json!({ "name": "sgd", "rate": 0.1, "momentum": momentum });
    let training = json!({ "epochs": 2, "batch": 10, "optimiser": optimiser });
    let nova = strategy("fednova", json!({ "training": training }));
    let entries = reached.into_iter().zip(rows);
    let entries = entries.map(|(value, rows)| entry([value, 0.0], Some(0), rows));
    let outcome = round(&*nova, &genesis(), &manifest(entries.collect(), None), 1);
    weights(&outcome.state.models[0])[0].into()
}

#[test]
fn fednova_averages_changes_by_step() {
    // 2 and 6 steps, shares 1/4 and 3/4, 5 steps on average: 5·(1/4·2/2 + 3/4·9/6).
    close(nova(0.0, [10, 30], [2.0, 9.0]), 6.875);
    // ‖a‖₁ is 2.5 after two steps with momentum 1/2, and 10.0625·… after six by its definition.
    let a = |t: i32| {
        (1..=t)
            .map(|i| (0..i).map(|j| libm::pow(0.5, j.into())).sum::<f64>())
            .sum::<f64>()
    };
    close(a(2), 2.5);
    let mean = 0.25 * a(2) + 0.75 * a(6);
    let expected = mean * (0.25 * 2.0 / a(2) + 0.75 * 9.0 / a(6));
    close(nova(0.5, [10, 30], [2.0, 9.0]), expected);
    // With as many steps each it is the mean by rows.
    close(nova(0.9, [11, 19], [2.0, 9.0]), (22.0 + 171.0) / 30.0);
}

#[test]
fn feddyn_reaches_the_optimum_that_fedavg_misses() {
    let silos = silos();
    let optimum: [f64; 5] = std::array::from_fn(|i| {
        let [a, b] = [0, 1].map(|at: usize| (silos[at].curvature()[i], silos[at].centre()[i]));
        (a.0 * a.1 + b.0 * b.1) / (a.0 + b.0)
    });
    let off = |name, options| {
        let federation = federation(name, options).rounds(200);
        let each = trained(&federation.state.models[0])
            .into_iter()
            .zip(optimum);
        each.map(|(w, to)| (w - to).abs()).fold(0.0, f64::max)
    };
    let (average, dynamic) = (
        off("fedavg", json!({})),
        off("feddyn", json!({ "alpha": 0.5 })),
    );
    assert!(average > 0.1, "{average}");
    assert!(dynamic < 1e-3, "{dynamic}");
}

#[test]
fn feddyn_keeps_gradients_and_their_mean() {
    let federation = federation("feddyn", json!({ "alpha": 0.5 })).rounds(6);
    let correction = &federation.state.tables["feddyn.correction"][0];
    let own = |silo: usize| {
        let gradient = federation.personal[silo].tensor("feddyn.gradient.layer0.weight");
        f64::from(gradient.unwrap()[0])
    };
    // h = mean of g_k, and the correction is −h/α.
    close(first(correction), -(own(0) + own(1)) / 2.0 / 0.5);
    assert!(own(0).abs() > 1e-2);
}

#[test]
fn apfl_steps_its_own_model_by_the_mixture() {
    let training = steps(1, 0.2);
    let options = json!({ "alpha": 0.25, "training": training });
    let mut federation = federation("apfl", options);
    federation.round();
    federation.round();
    let (mut common, mut own) = (START, [START; 2]);
    for _ in 0..2 {
        let mut reached = [0.0; 2];
        for (at, silo) in silos().iter().enumerate() {
            let (h, c) = (silo.curvature()[0], silo.centre()[0]);
            let w = common - 0.2 * h * (common - c);
            let mixture = 0.25 * own[at] + 0.75 * w;
            own[at] -= 0.2 * 0.25 * h * (mixture - c);
            reached[at] = w;
        }
        common = (reached[0] + reached[1]) / 2.0;
    }
    close(first(&federation.state.models[0]), common);
    for (at, own) in own.into_iter().enumerate() {
        let kept = federation.personal[at]
            .tensor("apfl.layer0.weight")
            .unwrap()[0];
        close(kept.into(), own);
    }
}

#[test]
fn apfl_is_fedavg_for_all_and_training_alone_at_one() {
    let average = federation("fedavg", json!({})).rounds(20);
    let local = federation("local", json!({})).rounds(20);
    let alone = federation("apfl", json!({ "alpha": 1.0 })).rounds(20);
    assert_eq!(alone.state.models, average.state.models);
    for (own, alone) in alone.losses().iter().zip(local.losses()) {
        assert!((own - alone).abs() < 1e-6, "{own} {alone}");
    }
}

#[test]
fn pfedme_takes_the_steps_of_the_paper() {
    let options = json!({ "lambda": 2.0, "rate": 0.25, "local-rounds": 3, "beta": 0.5,
        "training": steps(2, 0.1) });
    let mut federation = federation("pfedme", options);
    federation.round();
    federation.round();
    let (mut common, mut own) = (START, [START; 2]);
    for _ in 0..2 {
        let mut copies = [common; 2];
        for (at, silo) in silos().iter().enumerate() {
            let (h, c) = (silo.curvature()[0], silo.centre()[0]);
            for _ in 0..3 {
                for _ in 0..2 {
                    own[at] -= 0.1 * (h * (own[at] - c) + 2.0 * (own[at] - copies[at]));
                }
                copies[at] -= 0.25 * 2.0 * (copies[at] - own[at]);
            }
        }
        common = 0.5 * common + 0.5 * (copies[0] + copies[1]) / 2.0;
    }
    close(first(&federation.state.models[0]), common);
    for (at, own) in own.into_iter().enumerate() {
        let kept = federation.personal[at].tensor("pfedme.layer0.weight");
        close(kept.unwrap()[0].into(), own);
    }
}

#[test]
fn fedala_mixes_as_its_weights_learned() {
    let options = json!({ "layers": 2, "steps": 2, "rate": 0.3, "training": steps(1, 0.2) });
    let mut federation = federation("fedala", options);
    // In the first round a silo's local model is the common one.
    let (mut common, mut own, mut weight) = (START, [START; 2], [1.0; 2]);
    for _ in 0..3 {
        federation.round();
        for (at, silo) in silos().iter().enumerate() {
            let (h, c) = (silo.curvature()[0], silo.centre()[0]);
            let mixed = |w: f64| own[at] + (common - own[at]) * w;
            for _ in 0..2 {
                let slope = h * (mixed(weight[at]) - c) * (common - own[at]);
                weight[at] = (weight[at] - 0.3 * slope).clamp(0.0, 1.0);
            }
            let start = mixed(weight[at]);
            own[at] = start - 0.2 * h * (start - c);
        }
        common = (own[0] + own[1]) / 2.0;
    }
    close(first(&federation.state.models[0]), common);
    let moved = weight.iter().any(|&weight| weight < 0.9);
    assert!(moved, "{weight:?}");
    for (at, weight) in weight.into_iter().enumerate() {
        let kept = federation.personal[at].tensor("fedala-weights.layer0.weight");
        close(kept.unwrap()[0].into(), weight);
    }
}

#[test]
fn fedala_with_still_weights_is_fedavg() {
    let still = federation("fedala", json!({ "rate": 1e-12 })).rounds(5);
    let average = federation("fedavg", json!({})).rounds(5);
    assert_eq!(still.state.models, average.state.models);
}
