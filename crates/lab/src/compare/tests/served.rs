//! The models that silos would serve.

use super::*;

#[test]
fn silos_serve_the_models_of_a_strategy_or_their_own() {
    // With few rows a silo, and rounds enough, a strategy's models are worth serving.
    let few = SMALL
        .replace("silos = 4", "silos = 12")
        .replace("rounds = 3", "rounds = 12");
    let few = few
        .replace("rate = 0.02 }", "rate = 0.1 }")
        .replace("[0.02, 0.005]", "[0.1, 0.03]");
    let experiment = Experiment::parse("x.toml", &few, Path::new(""), &Choices::default()).unwrap();
    let comparison = compare(&experiment, CompareOptions::default()).unwrap();
    let rows = &comparison.variants[0].strategies;
    let row = |label: &str| rows.iter().find(|row| row.label == label).unwrap();
    assert!(row("pooled").served.is_none() && row("constant").served.is_none());
    let [local, equal, groups] =
        ["local", "equal", "groups"].map(|label| row(label).served.as_ref().unwrap());
    // Models that silos make alone are the same, whatever the silos are offered.
    assert!(local.own == equal.own && local.own == groups.own);
    let mae = |metrics: &[MetricResult]| metrics[0].inside.as_ref().unwrap().silos.unwrap().mean;
    let constant = row("constant").metrics[0].inside.as_ref().unwrap();
    assert!(mae(&equal.own) < constant.silos.unwrap().mean);
    for served in [local, equal, groups] {
        let all: f64 = served.candidates.values().sum();
        assert!((all - 12.0).abs() < 1e-9, "{:?}", served.candidates);
        let gain = served.inside.as_ref().unwrap();
        let difference = &gain.difference;
        assert_eq!(difference.wins + difference.ties + difference.losses, 12);
        assert_eq!(gain.by_chance, BY_CHANCE * gain.not_own as f64);
        // The gain is the difference of the means: lower is better.
        let by = difference.per_silo.unwrap().by;
        assert!((by - (mae(&served.own) - mae(&served.metrics))).abs() < 1e-3);
        assert_eq!(served.against.len(), 3);
        assert!(served.outside.is_none());
    }
    // A model that no other silo shares is not compared.
    let own = |name: &str| local.candidates.get(name).copied().unwrap_or(0.0);
    assert_eq!(own("coalition") + own("fine-tuned"), 0.0);
    let not_own = |served: &ServedSummary| served.inside.as_ref().unwrap().not_own;
    assert!(not_own(equal) + not_own(groups) > 0);

    let without = SMALL.replace("weight = \"equal\"", "weight = \"equal\"\nserved = false");
    let parse = |text: &str| {
        let quick = Choices {
            quick: true,
            ..Choices::default()
        };
        Experiment::parse("x.toml", text, Path::new(""), &quick).unwrap()
    };
    let served = |text: &str| -> Vec<bool> {
        let comparison = compare(&parse(text), CompareOptions::default()).unwrap();
        let rows = comparison.variants[0].strategies.iter();
        rows.map(|row| row.served.is_some()).collect()
    };
    assert_eq!(served(&without), [true, false, false, false, true]);
    let none = SMALL.replace("seeds = 2", "seeds = 2\nserved = false");
    assert_eq!(served(&none), [false; 5]);
}
