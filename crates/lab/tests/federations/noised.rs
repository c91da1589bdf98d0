//! Rounds with noise: whole federations learn what plain gradient descent on all rows learns, within the
//! noise, whatever fails.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use learn::Study;
use methods::Params;
use methods::learner::UnitRows;
use methods::strategy::STRATEGIES;
use protocol::MemberIndex;
use silo::Notice;
use simulations::pool::Threads;
use simulations::{Federation, Options, RunRecord, Scenario, Surrounding, federate};

/// The strategies that take steps.
const STEPS: [&str; 4] = ["fedavg", "fedadam", "fedyogi", "fedadagrad"];

/// Hardly any noise, and a norm that no gradient reaches.
const FAINT: &str = "[privacy]\nmode = \"differential-privacy\"\nnoise-multiplier = 0.0078125\nclipping-norm = 200.0\nmin-authors = 4\n";

/// Noise for ε = 2, by which hardly anything is learned of so few rows.
const LOUD: &str = "[privacy]\nmode = \"differential-privacy\"\nepsilon = 2.0\nclipping-norm = 1.0\nmin-authors = 4\n";

const ROUNDS: usize = 6;

#[derive(Clone, Copy)]
enum TestTask {
    Linear,
    Logistic,
    Mlp,
}

fn text(task: TestTask, strategy: &str, privacy: &str, faults: &str) -> String {
    let (target, model) = match task {
        TestTask::Linear => ("linear", "{ linear = { loss = \"squared\" } }"),
        TestTask::Logistic => ("logistic", "\"logistic\""),
        TestTask::Mlp => ("logistic", "{ mlp = { hidden = [5] } }"),
    };
    let weight = if privacy.is_empty() { "exact" } else { "equal" };
    let training = "{ epochs = 1, batch = 0, optimiser = { name = \"sgd\", rate = 0.02 } }";
    format!(
        "name = \"steps\"
        seed = 5
        rounds = {ROUNDS}
        silos = 5
        [task.table]
        data = {{ synthetic = {{ target = \"{target}\", groups = 1, features = 3, scale = 1.0, rows = [60, 90] }} }}
        model = {model}
        {privacy}
        [protocol]
        heartbeat = \"1s\"
        straggler-timeout = 30
        [strategy]
        name = \"{strategy}\"
        weight = \"{weight}\"
        training = {training}
        {faults}"
    )
}

pub(super) fn parsed(text: &str) -> Scenario {
    Scenario::parse("steps.toml", text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Runs a federation in virtual time.
pub(super) fn run(scenario: &Scenario, study: &Study) -> RunRecord {
    run_in(Surrounding::Virtual, scenario, study)
}

fn run_in(surrounding: Surrounding<'_>, scenario: &Scenario, study: &Study) -> RunRecord {
    let faults = &scenario.faults;
    let federation = Federation::new(scenario, study, &scenario.strategy, faults)
        .unwrap_or_else(|error| panic!("{}: {error}", scenario.strategy.name()));
    let mut options = Options {
        surrounding,
        ..Options::default()
    };
    federate(
        scenario,
        &federation,
        faults,
        &mut options,
        &Threads::new(2),
    )
    .unwrap()
}

fn play(task: TestTask, strategy: &str, privacy: &str, faults: &str) -> RunRecord {
    let scenario = parsed(&text(task, strategy, privacy, faults));
    let study = scenario.study(None).unwrap();
    run(&scenario, &study)
}

/// The models that every member has in the end.
pub(super) fn models(record: &RunRecord) -> BTreeMap<MemberIndex, Vec<f32>> {
    let notices = record.notices.iter();
    let adopted = notices.filter_map(|(_, by, notice)| match notice {
        Notice::Adopted { model, .. } => Some((*by, model.values().to_vec())),
        _ => None,
    });
    adopted.collect()
}

/// The largest distance of two numbers of the models of two runs, whose members agree among themselves.
fn apart(found: &RunRecord, expected: &RunRecord) -> f32 {
    let (found, expected) = (models(found), models(expected));
    assert!(found.keys().eq(expected.keys()));
    let first = &found[&MemberIndex(0)];
    assert!(found.values().all(|model| model == first));
    let expected = &expected[&MemberIndex(0)];
    assert_eq!(first.len(), expected.len());
    let pairs = first.iter().zip(expected);
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

/// Returns how far the model of the first member moves between the first round and the last.
fn moved(record: &RunRecord) -> f32 {
    let notices = record.notices.iter();
    let mut adopted = notices.filter_map(|(_, by, notice)| match notice {
        Notice::Adopted { model, .. } if *by == MemberIndex(0) => Some(model),
        _ => None,
    });
    let (first, last) = (adopted.next().unwrap(), adopted.last().unwrap());
    let pairs = first.values().iter().zip(last.values());
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

/// In clear, models that weigh by rows after one step of all own rows are a step of all rows together.
#[test]
fn with_little_noise_steps_are_those_of_gradient_descent() {
    for task in [TestTask::Linear, TestTask::Logistic, TestTask::Mlp] {
        for strategy in ["fedavg", "fedadagrad"] {
            let more = match strategy {
                "fedadagrad" => "tau = 100.0\nrate = 200.0\nbeta1 = 0.9",
                _ => "",
            };
            let clear = play(task, strategy, "", more);
            let noised = play(task, strategy, FAINT, more);
            assert_eq!(noised.rounds.len(), ROUNDS);
            let (apart, moved) = (apart(&noised, &clear), moved(&clear));
            // Faint noise is still some.
            assert!(apart < 0.1 * moved, "{strategy}: {apart} of {moved}");
        }
    }
}

/// The gradient of the mean loss of all training rows of a study, none of which is clipped to this norm.
fn gradient(study: &Study, model: &Params, clip: f64) -> Vec<f64> {
    let (mut sum, mut rows) = (vec![0.0; model.values().len()], 0);
    for silo in &study.silos {
        let mut add = |gradient: &[f64]| {
            let square: f64 = gradient.iter().map(|number| number * number).sum();
            assert!(square.sqrt() < clip, "a row is clipped");
            sum.iter_mut()
                .zip(gradient)
                .for_each(|(sum, number)| *sum += number);
            rows += 1;
        };
        let units = silo.learner.units().unwrap();
        units
            .unit_gradients(model, UnitRows::One, &mut add)
            .unwrap();
    }
    sum.iter().map(|number| number / f64::from(rows)).collect()
}

#[test]
fn with_little_noise_momentum_is_that_of_gradient_descent() {
    for (task, clip) in [(TestTask::Linear, 200.0), (TestTask::Logistic, 20.0)] {
        let privacy = FAINT.replace("200.0", &format!("{clip:?}"));
        let scenario = parsed(&text(task, "fedavg", &privacy, "momentum = 0.9"));
        let study = scenario.study(None).unwrap();
        let mut model = study.silos[0].learner.initial(scenario.seed);
        let mut velocity = vec![0.0; model.values().len()];
        let mut plain = model.clone();
        for _ in 0..ROUNDS {
            let stepped = |model: &Params, step: &mut dyn FnMut(usize, f64) -> f64| {
                let gradient = gradient(&study, model, clip);
                Params::build(model.layout(), |values| {
                    for (at, value) in values.iter_mut().enumerate() {
                        let before = f64::from(model.values()[at]);
                        *value = (before - step(at, gradient[at])) as f32;
                    }
                })
            };
            plain = stepped(&plain, &mut |_, slope| 0.02 * slope);
            model = stepped(&model, &mut |at, slope| {
                velocity[at] = 0.9 * velocity[at] + 0.02 * slope;
                velocity[at]
            });
        }
        let record = run(&scenario, &study);
        let found = &models(&record)[&MemberIndex(0)];
        let far = |from: &Params| {
            let pairs = found.iter().zip(from.values());
            pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
        };
        let (apart, from_plain) = (far(&model), far(&plain));
        // Six steps of 0.02 along a mean of some 375 rows, with noise of C/1024 · 5 · √5 in each sum, of which
        // momentum makes up to four times as much.
        assert!(apart < 3e-5 * clip as f32, "{apart}");
        assert!(from_plain > 10.0 * apart, "{from_plain} {apart}");
    }
}

#[test]
fn the_agreed_noise_moves_the_model_and_a_run_repeats_exactly() {
    let faint = FAINT.replace("200.0", "1.0");
    let faint = play(TestTask::Logistic, "fedavg", &faint, "");
    let noised = play(TestTask::Logistic, "fedavg", LOUD, "");
    // z is 5.4 for six rounds; 0.02 · z · √(5/3) / 375 rows = .0004 in a round and for a number.
    let apart_by = apart(&noised, &faint);
    assert!((1e-4..0.01).contains(&apart_by), "{apart_by}");
    let again = play(TestTask::Logistic, "fedavg", LOUD, "");
    assert_eq!(models(&again), models(&noised));
}

#[test]
fn a_dead_lead_changes_the_model_only_by_faint_noise() {
    let calm = play(TestTask::Logistic, "fedavg", FAINT, "");
    for phase in [
        "waiting",
        "collecting",
        "masking",
        "including",
        "voting",
        "notarised",
    ] {
        let kill = format!(
            "[[fault]]\nkill = \"lead\"\nphase = \"{phase}\"\nround = 2\nrestart-after = \"8s\""
        );
        let cut = play(TestTask::Logistic, "fedavg", FAINT, &kill);
        let stops = |record: &RunRecord| record.protocol.as_ref().unwrap().stops.len();
        assert_eq!(stops(&cut), stops(&calm) + 1, "{phase}: no lead was killed");
        assert_eq!(cut.rounds.len(), ROUNDS);
        let apart = apart(&cut, &calm);
        assert!(apart < 0.02, "{phase}: {apart}");
    }
}

#[test]
fn rounds_continue_without_one_institution() {
    let kill = "[[fault]]\nkill = \"steps 4\"\nat = \"0s\"";
    let scenario = parsed(&text(TestTask::Linear, "fedavg", FAINT, ""));
    let study = scenario.study(None).unwrap();
    let name = &study.silos[4].name;
    let kill = kill.replace("steps 4", name);
    let scenario = parsed(&text(TestTask::Linear, "fedavg", FAINT, &kill));
    let record = run(&scenario, &study);
    assert_eq!(record.rounds.len(), ROUNDS);
    assert_eq!(models(&record).len(), 4);
}

#[test]
fn every_other_strategy_is_refused_at_the_start_with_a_remedy() {
    for info in STRATEGIES.iter().filter(|info| !STEPS.contains(&info.name)) {
        let text = text(TestTask::Logistic, info.name, FAINT, "");
        let text = text.replace("weight = \"equal\"", "");
        let refused = Scenario::parse("steps.toml", &text);
        let why = refused
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default();
        assert!(
            why.contains("`name` is") && why.contains("choose fedavg"),
            "{}: {why}",
            info.name
        );
    }
}

/// Masks cancel in the sum, so nothing is different where there are none.
#[test]
fn without_messages_private_rounds_learn_the_same_to_the_bit() {
    for (task, strategy, more) in [
        (TestTask::Logistic, "fedavg", ""),
        (TestTask::Linear, "fedadam", ""),
        (
            TestTask::Mlp,
            "fedadagrad",
            "tau = 100.0\nrate = 200.0\nbeta1 = 0.9",
        ),
    ] {
        let scenario = parsed(&text(task, strategy, LOUD, more));
        assert!(!scenario.needs_network());
        let study = scenario.study(None).unwrap();
        let mesh = run(&scenario, &study);
        let direct = run_in(Surrounding::Direct, &scenario, &study);
        assert_eq!(direct.mesh.name, "direct");
        assert_eq!(models(&direct), models(&mesh), "{strategy}");
        let losses = |record: &RunRecord| -> BTreeMap<_, _> {
            let notices = record.notices.iter();
            let trained = notices.filter_map(|(_, by, notice)| match notice {
                Notice::Trained {
                    round,
                    loss,
                    samples,
                    ..
                } => Some(((*by, *round), (loss.to_bits(), *samples))),
                _ => None,
            });
            trained.collect()
        };
        assert_eq!(losses(&direct), losses(&mesh), "{strategy}");
        let authors = |record: &RunRecord| -> Vec<_> {
            let rounds = record.rounds.iter();
            rounds.map(|round| round.authors.clone()).collect()
        };
        assert_eq!(authors(&direct), authors(&mesh), "{strategy}");
        // Vectors and transcripts of all five at the four others; the lists come on top of them.
        let (counted, sent) = (direct.blobs.unwrap(), mesh.blobs.unwrap());
        assert!(counted <= sent, "{strategy}: {counted} of {sent}");
        assert!(counted * 10 > sent * 3, "{strategy}: {counted} of {sent}");
    }
}

#[test]
fn secure_aggregation_without_noise_is_refused_without_messages() {
    let masked = "[privacy]\nmode = \"secure-aggregation\"\n";
    let scenario = parsed(&text(TestTask::Linear, "fedavg", masked, ""));
    assert!(scenario.needs_network());
    let study = scenario.study(None).unwrap();
    let federation = Federation::of(&scenario, &study).unwrap();
    let mut options = Options {
        surrounding: Surrounding::Direct,
        ..Options::default()
    };
    let refused = federate(&scenario, &federation, &[], &mut options, &Threads::new(1));
    let why = refused.err().unwrap().to_string();
    assert!(
        why.contains("a secure-aggregation round without noise needs messages"),
        "{why}"
    );
}
