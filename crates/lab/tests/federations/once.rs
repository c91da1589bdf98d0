//! Federations that solve a linear model from one differentially private sum: all end with the model of ridge regression on
//! all rows, within the noise, whoever dies.

#![allow(clippy::unwrap_used)]

use learn::Study;
use methods::learner::UnitRows;
use protocol::MemberIndex;
use simulations::{RunRecord, Scenario};

use super::noised::{models, parsed, run};

/// The ridge of the tests.
const RIDGE: f64 = 0.5;

/// Norms that no row exceeds, and hardly any noise.
const FAINT: &str = "noise-multiplier = 0.0078125";

/// ε = 1.
const LOUD: &str = "epsilon = 1.0";

fn text(classes: bool, noise: &str, faults: &str) -> String {
    let (target, model, within) = match classes {
        true => ("logistic", "\"logistic\"", ""),
        false => (
            "linear",
            "{ linear = { loss = \"squared\" } }",
            "max-target = 8.0",
        ),
    };
    format!(
        "name = \"once\"
        seed = 5
        rounds = 1
        silos = 5
        [task.table]
        data = {{ synthetic = {{ target = \"{target}\", groups = 1, features = 3, scale = 1.0, rows = [600, 900] }} }}
        model = {model}
        [privacy]
        mode = \"differential-privacy\"
        mechanism = \"sufficient-statistics\"
        max-row-norm = 8.0
        {within}
        ridge = {RIDGE}
        {noise}
        min-authors = 4
        [protocol]
        heartbeat = \"1s\"
        straggler-timeout = 30
        [strategy]
        name = \"fedavg\"
        weight = \"equal\"
        training = {{ epochs = 1, batch = 0, optimiser = {{ name = \"sgd\", rate = 0.1 }} }}
        {faults}"
    )
}

fn play(scenario: &Scenario) -> (Study, RunRecord) {
    let study = scenario.study(None).unwrap();
    let record = run(scenario, &study);
    (study, record)
}

/// The weights and the intercept of all members' model, the same for all. In a model the bias comes first.
fn model(record: &RunRecord) -> Vec<f64> {
    let models = models(record);
    let first = &models[&MemberIndex(0)];
    assert!(models.values().all(|model| model == first));
    let (bias, weights) = first.split_at(1);
    let line = weights.iter().chain(bias);
    line.map(|value| f64::from(*value)).collect()
}

/// The inverse of a matrix, by elimination.
fn inverse(mut matrix: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let width = matrix.len();
    for (at, row) in matrix.iter_mut().enumerate() {
        row.extend((0..width).map(|to| f64::from(to == at)));
    }
    for at in 0..width {
        let pivot = matrix[at][at];
        matrix[at].iter_mut().for_each(|entry| *entry /= pivot);
        let above = matrix[at].clone();
        for (_, row) in matrix.iter_mut().enumerate().filter(|(row, _)| *row != at) {
            let factor = row[at];
            let pairs = row.iter_mut().zip(&above);
            pairs.for_each(|(entry, above)| *entry -= factor * above);
        }
    }
    matrix
        .into_iter()
        .map(|row| row[width..].to_vec())
        .collect()
}

/// Ridge regression on all rows of a study.
struct ExactRidge {
    model: Vec<f64>,
    /// (A/N + λ)⁻¹.
    inverse: Vec<Vec<f64>>,
    rows: f64,
}

impl ExactRidge {
    fn of(study: &Study) -> Self {
        let (mut matrix, mut right, mut rows) = (vec![vec![0.0; 4]; 4], vec![0.0; 4], 0.0);
        for silo in &study.silos {
            let units = silo.learner.units().unwrap();
            let linear = units.least_squares().unwrap();
            let mut add = |unit: &[(&[f32], f64)]| {
                let (features, target) = unit[0];
                let line: Vec<_> = features.iter().map(|value| f64::from(*value)).collect();
                let line = [&line[..], &[1.0]].concat();
                let square: f64 = line.iter().map(|value| value * value).sum();
                assert!(square <= 64.0 && target.abs() <= 8.0, "a row is shortened");
                for at in 0..4 {
                    (0..4).for_each(|to| matrix[at][to] += line[at] * line[to]);
                    right[at] += line[at] * target;
                }
                rows += 1.0;
            };
            linear.unit_rows(UnitRows::One, &mut add).unwrap();
        }
        for at in 0..4 {
            matrix[at].iter_mut().for_each(|entry| *entry /= rows);
            matrix[at][at] += RIDGE;
            right[at] /= rows;
        }
        let inverse = inverse(matrix);
        let row = |row: &Vec<f64>| row.iter().zip(&right).map(|(a, b)| a * b).sum();
        Self {
            model: inverse.iter().map(row).collect(),
            inverse,
            rows,
        }
    }

    fn apart(&self, model: &[f64]) -> f64 {
        let pairs = model.iter().zip(&self.model);
        pairs.map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
    }

    /// To first order how far noise with this deviation in every number of the sum moves the model: its root
    /// mean square. Noise of the matrix is divided by √2 off the diagonal.
    fn moved_by(&self, noise: f64) -> f64 {
        let whole: f64 = self.model.iter().map(|weight| weight * weight).sum();
        let of = |at: usize| 1.0 + (whole + self.model[at] * self.model[at]) / 2.0;
        let columns = (0..4).map(|at| {
            let column: f64 = self.inverse.iter().map(|row| row[at] * row[at]).sum();
            column * of(at)
        });
        noise / self.rows * columns.sum::<f64>().sqrt()
    }
}

#[test]
fn with_little_noise_the_model_is_that_of_ridge_regression() {
    for classes in [false, true] {
        let (study, record) = play(&parsed(&text(classes, FAINT, "")));
        assert_eq!(record.rounds.len(), 1);
        let exact = ExactRidge::of(&study);
        let apart = exact.apart(&model(&record));
        let length = exact.apart(&[0.0; 4]);
        assert!(
            apart < 0.01 && length > 0.3,
            "{classes}: {apart} of {length}"
        );
    }
}

#[test]
fn noise_for_epsilon_one_moves_the_model_by_its_deviation() {
    for (classes, within) in [(false, 8.0_f64), (true, 2.0)] {
        let (study, record) = play(&parsed(&text(classes, LOUD, "")));
        let exact = ExactRidge::of(&study);
        // noise-multiplier = 1.0001 / 0.268051 for one round; five parts of the noise, of which three stay unknown.
        let clip = 8.0 * (64.0 + within * within).sqrt();
        let noise = 3.731 * clip * (5.0_f64 / 3.0).sqrt();
        let (apart, expected) = (exact.apart(&model(&record)), exact.moved_by(noise));
        assert!(
            (0.2..2.5).contains(&(apart / expected)),
            "{classes}: {apart}, {expected}"
        );
    }
}

#[test]
fn members_have_equal_bits_after_leads_died_in_any_phase() {
    let calm = model(&play(&parsed(&text(false, FAINT, ""))).1);
    for phase in [
        "waiting",
        "collecting",
        "masking",
        "including",
        "voting",
        "notarised",
    ] {
        let kill = format!(
            "[[fault]]\nkill = \"lead\"\nphase = \"{phase}\"\nround = 1\nrestart-after = \"8s\""
        );
        let scenario = parsed(&text(false, FAINT, &kill));
        let (_, record) = play(&scenario);
        assert_eq!(models(&record).len(), 5, "{phase}");
        let found = model(&record);
        let apart = found.iter().zip(&calm).map(|(a, b)| (a - b).abs());
        let apart = apart.fold(0.0, f64::max);
        assert!(apart < 0.1, "{phase}: {apart}");
        let again = model(&play(&scenario).1);
        assert_eq!(again, found, "{phase}");
    }
}

#[test]
fn what_is_not_solved_at_once_is_refused_before_round_one() {
    let linear = text(false, LOUD, "");
    let classes = text(true, LOUD, "");
    let mlp = "{ mlp = { hidden = [5] } }";
    let cases = [
        (
            linear.replace("{ linear = { loss = \"squared\" } }", mlp),
            "choose",
            "cannot be solved at once",
        ),
        (
            classes.replace("\"logistic\"\n", &format!("{mlp}\n")),
            "\"logistic\"",
            "cannot be solved at once",
        ),
        (
            classes.replace("ridge =", "max-target = 1.0\nridge ="),
            "leave it out",
            "−2 and 2",
        ),
        (
            linear.replace("rounds = 1", "rounds = 3"),
            "mechanism = \"gradients\"",
            "must be 1",
        ),
        (
            linear.replace("name = \"fedavg\"", "name = \"fedyogi\""),
            "choose fedavg",
            "no steps",
        ),
    ];
    for (text, choose, why) in cases {
        let said = Scenario::parse("once.toml", &text)
            .err()
            .unwrap()
            .to_string();
        let lower = said.to_lowercase();
        assert!(lower.contains(choose) && said.contains(why), "{said}");
    }
}
