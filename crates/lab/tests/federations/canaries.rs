//! Audits of honest noise and of noise that is broken on purpose. The broken forms exist in this file only.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use lab::attack::{CanaryAudit, CanaryOptions, canary, canary_with};
use methods::Learner;
use methods::learner::{
    Capabilities, LearnError, Metrics, Split, Training, UnitGradients, UnitRows, Update, Watch,
};
use methods::params::{Layout, Params};
use protocol::parameters::RoundMode;
use simulations::{Federation, Options, Scenario};

const SIZE: CanaryOptions = CanaryOptions {
    canaries: None,
    runs: 20,
};

fn scenario(noise: &str) -> Scenario {
    let text = format!(
        "name = \"canaries\"
        seed = 3
        rounds = 4
        silos = 5
        [task.table]
        data = {{ synthetic = {{ target = \"logistic\", groups = 1, features = 20, scale = 1.0, rows = [50, 60] }} }}
        standardise = \"none\"
        model = {{ mlp = {{ hidden = [16] }} }}
        [privacy]
        mode = \"differential-privacy\"
        {noise}
        min-authors = 4
        colluders = 1
        [strategy]
        name = \"fedavg\"
        weight = \"equal\"
        training = {{ epochs = 1, batch = 0, optimiser = {{ name = \"sgd\", rate = 0.5 }} }}"
    );
    Scenario::parse("canaries.toml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn at(epsilon: f64) -> Scenario {
    scenario(&format!("epsilon = {epsilon:?}"))
}

/// The agreed z of a scenario.
fn z(scenario: &Scenario) -> f64 {
    let study = scenario.study(None).unwrap();
    let federation = Federation::of(scenario, &study).unwrap();
    match federation.epoch.protocol.privacy.mode() {
        RoundMode::Noised(_, noise) => noise.z.value(),
        other => panic!("{other:?}"),
    }
}

fn audited(scenario: &Scenario) -> CanaryAudit {
    let found = canary(scenario, &Options::default(), SIZE).unwrap();
    println!("{}", found.lines().join("\n"));
    found
}

/// Runs of an audit whose bound is above this ε.
fn above(found: &CanaryAudit, epsilon: f64) -> usize {
    let runs = found.runs.iter();
    runs.filter(|run| run.epsilon > epsilon).count()
}

#[test]
fn lower_bounds_of_honest_noise_are_above_the_claim_once_in_twenty_at_most() {
    for epsilon in [1.0, 2.0, 4.0] {
        let found = audited(&at(epsilon));
        assert!((found.epsilon.unwrap() - epsilon).abs() < 1e-3, "{found:?}");
        assert_eq!(found.above, above(&found, epsilon), "{found:?}");
        assert!(found.above <= 1, "{found:?}");
        assert!(found.canaries > 300 && found.most > 2.0, "{found:?}");
        let said = found.verdict();
        let expected = match found.most > epsilon {
            true => "does not prove the claim",
            false => "cannot contradict the claim",
        };
        assert!(said.contains(expected), "{said}");
        if epsilon == 4.0 {
            // It sees something where there is something to see.
            assert!(above(&found, 0.1) > 10, "{found:?}");
        }
    }
}

#[test]
fn without_noise_and_with_a_tenth_of_it_most_lower_bounds_are_above_the_claim() {
    for epsilon in [1.0, 2.0] {
        let tenth = z(&at(epsilon)) / 10.0;
        // 2⁻⁷ is the smallest z: noise of less than a hundredth of a row.
        for broken in [0.007_812_5, tenth] {
            let found = audited(&scenario(&format!("noise-multiplier = {broken:?}")));
            let above = above(&found, epsilon);
            assert!(
                above > 15,
                "noise-multiplier = {broken}: {above}, {found:?}"
            );
            let claimed = CanaryAudit { above, ..found };
            assert!(
                claimed
                    .verdict()
                    .contains("the claim or the program is wrong")
            );
        }
    }
}

#[test]
fn with_the_batch_clipped_in_place_of_rows_most_lower_bounds_are_above_the_claim() {
    for epsilon in [1.0, 2.0] {
        let of_batch = |inner| Arc::new(ClippedBatch { inner, norm: 1.0 }) as Arc<dyn Learner>;
        let found = canary_with(&at(epsilon), &Options::default(), SIZE, &of_batch).unwrap();
        println!("{}", found.lines().join("\n"));
        assert!(found.above > 15, "{found:?}");
    }
}

#[test]
fn a_scenario_without_noise_claims_nothing_that_could_be_audited() {
    let clear = Scenario::load("diabetes").unwrap();
    let why = canary(&clear, &Options::default(), SIZE).unwrap_err();
    assert!(why.to_string().contains("no noise"), "{why}");
}

/// Clips the mean gradient of all units in place of the gradient of each, a common mistake.
struct ClippedBatch {
    inner: Arc<dyn Learner>,
    norm: f64,
}

impl Learner for ClippedBatch {
    fn layout(&self) -> Arc<Layout> {
        self.inner.layout()
    }

    fn initial(&self, seed: u64) -> Params {
        self.inner.initial(seed)
    }

    fn train(
        &self,
        start: &Params,
        personal: &Params,
        training: &Training,
        seed: u64,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        self.inner.train(start, personal, training, seed, progress)
    }

    fn evaluate(&self, model: &Params, own: &Params, split: Split) -> Result<Metrics, LearnError> {
        self.inner.evaluate(model, own, split)
    }

    fn samples(&self) -> u64 {
        self.inner.samples()
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities {
            units: Some(self),
            ..Capabilities::NONE
        }
    }
}

impl UnitGradients for ClippedBatch {
    fn unit_gradients(
        &self,
        model: &Params,
        unit: UnitRows,
        with: &mut dyn FnMut(&[f64]),
    ) -> Result<f64, LearnError> {
        let (mut sum, mut units) = (vec![0.0; model.values().len()], 0_u32);
        let loss = self
            .inner
            .units()?
            .unit_gradients(model, unit, &mut |one| {
                sum.iter_mut().zip(one).for_each(|(sum, one)| *sum += one);
                units += 1;
            })?;
        let length = sum.iter().map(|one| one * one).sum::<f64>().sqrt() / f64::from(units);
        let factor = (self.norm / length).min(1.0) / f64::from(units);
        sum.iter_mut().for_each(|sum| *sum *= factor);
        (0..units).for_each(|_| with(&sum));
        Ok(loss)
    }
}
