//! Whole federations of hospitals whose patients have a time to an event.

#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::path::Path;

use lab::{Summary, run};
use learn::TaskStudy;
use simulations::random::Random;
use simulations::{Options, Scenario};

/// Writes the patients of four hospitals: the hazard is exp(2a − b), with a baseline of each hospital's own, and
/// some enter late. With `events` false all are censored.
fn hospitals(folder: &Path, events: impl Fn(usize) -> bool) -> String {
    let mut files = Vec::new();
    for hospital in 0..4 {
        let mut random = Random::new(7, &format!("hospital {hospital}"));
        let mut text = String::from("a,b,died,days,from\n");
        for _ in 0..70 {
            let mut draw = || random.uniform();
            let (a, b) = (2.0 * draw() - 1.0, 2.0 * draw() - 1.0);
            let hazard = (2.0 * a - b).exp() * (1 + hospital) as f64;
            let death = -draw().max(1e-9).ln() / hazard;
            let end = -draw().max(1e-9).ln();
            let died = u8::from(death <= end && events(hospital));
            let days = 1.0 + 1000.0 * death.min(end);
            let from = if draw() < 0.2 {
                days * draw() * 0.5
            } else {
                0.0
            };
            writeln!(text, "{a},{b},{died},{days},{from}").unwrap();
        }
        let path = folder.join(format!("{hospital}.csv"));
        std::fs::write(&path, text).unwrap();
        files.push(format!("{{ path = {:?} }}", path.display().to_string()));
    }
    files.join(", ")
}

fn scenario(files: &str, strategy: &str, model: &str, more: &str) -> String {
    format!(
        "name = \"survival\"
        seed = 3
        rounds = 6
        {more}
        [task.table]
        model = {model}
        standardise = \"silo\"
        [task.table.data.rows]
        files = [{files}]
        [task.table.schema]
        target = {{ event = \"died\", time = \"days\", entry = \"from\", at = [300.0] }}
        [[task.table.schema.feature]]
        name = [\"a\", \"b\"]
        [protocol]
        heartbeat = \"1s\"
        straggler-timeout = 30
        [strategy]
        {strategy}
        training = {{ epochs = 5, batch = 0, optimiser = {{ name = \"sgd\", rate = 0.2 }} }}"
    )
}

fn play(text: &str) -> Summary {
    let scenario =
        Scenario::parse("survival.toml", text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    run(&scenario, Options::default()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn strategies_learn_risk_scores_as_they_learn_anything_else() {
    let folder = tempfile::tempdir().unwrap();
    let files = hospitals(folder.path(), |_| true);
    for strategy in [
        "name = \"fedavg\"",
        "name = \"ditto\"",
        "name = \"hcct\"",
        "name = \"cs-rcfl\"\ncoalitions = 2",
    ] {
        for model in ["\"cox\"", "{ mlp = { hidden = [4] } }"] {
            let summary = play(&scenario(&files, strategy, model, ""));
            assert_eq!(summary.metric.name, "concordance");
            let second = summary
                .second_metric
                .as_ref()
                .map(|second| second.name.as_str());
            assert_eq!(
                second,
                Some("loss"),
                "rows enter late, so survival is not measured"
            );
            let found = summary.silos.iter().map(|silo| silo.coalition.unwrap());
            let mean = found.sum::<f64>() / 4.0;
            assert!(mean > 0.6, "{strategy}, {model}: {mean}");
            let notes = summary.notes.join("\n");
            assert!(
                notes.contains("rows are observed from a later time on"),
                "{notes}"
            );
        }
    }
}

#[test]
fn masked_rounds_learn_the_risk_scores_that_clear_ones_do() {
    let folder = tempfile::tempdir().unwrap();
    let files = hospitals(folder.path(), |_| true);
    let equal = "name = \"fedavg\"\nweight = \"equal\"";
    let masked = "[privacy]\nmode = \"secure-aggregation\"";
    let clear = play(&scenario(&files, equal, "\"cox\"", ""));
    let masked = play(&scenario(&files, equal, "\"cox\"", masked));
    for (clear, masked) in clear.silos.iter().zip(&masked.silos) {
        let apart = clear.coalition.unwrap() - masked.coalition.unwrap();
        assert!(apart.abs() < 0.02, "{}: {apart}", clear.name);
    }
}

#[test]
fn noise_is_refused_for_times_to_an_event_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let files = hospitals(folder.path(), |_| true);
    let noise = "[privacy]\nmode = \"differential-privacy\"\nepsilon = 2.0\nclipping-norm = 1.0\nmin-authors = 4";
    let text = scenario(
        &files,
        "name = \"fedavg\"\nweight = \"equal\"",
        "\"cox\"",
        noise,
    );
    let text = text.replace("standardise = \"silo\"", "standardise = \"none\"");
    let text = text.replace("epochs = 5", "epochs = 1");
    let why = match Scenario::parse("survival.toml", &text) {
        Err(error) => error.to_string(),
        Ok(scenario) => run(&scenario, Options::default())
            .err()
            .unwrap()
            .to_string(),
    };
    assert!(
        why.contains("predicts a time to an event, which does not go with noise"),
        "{why}"
    );
}

#[test]
fn a_hospital_without_an_event_is_named_and_four_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let study = |events: fn(usize) -> bool| {
        let files = hospitals(folder.path(), events);
        let text = scenario(&files, "name = \"fedavg\"", "\"cox\"", "");
        let scenario = Scenario::parse("survival.toml", &text).unwrap();
        scenario.task.study(None, None, 0)
    };
    let notes = study(|hospital| hospital != 2).unwrap().notes.join("\n");
    let expected =
        "at 1 of 4 silos every training row is censored, so that nothing is learned there: 2";
    assert!(notes.contains(expected), "{notes}");
    let why = study(|_| false).err().unwrap().to_string();
    assert!(
        why.starts_with("every training row is censored, so there is nothing to learn"),
        "{why}"
    );
}
