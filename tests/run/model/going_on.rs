//! A federation that goes on from a model of an earlier one.

use std::fs;

use ::rota::agreement::Agreement;
use ::rota::node::institution::Institution;
use ::rota::node::model::HeldRounds;
use ::rota::silo::genesis_outcome;

use super::hospitals::{OUTCOME, config, events, scenario};
use super::*;

#[test]
fn a_federation_goes_on_from_exactly_the_model_that_it_names() {
    let scenario = scenario(
        "{ mlp = { hidden = [4] } }",
        "name = 'scaffold'",
        OUTCOME,
        "standardise = 'federation'",
    );
    let hospitals = TestHospitals::new("model-goes-on", &scenario);
    let first = TestHospitals::run(&hospitals.configs);
    let north = config(&hospitals.configs[0]);
    fs::create_dir_all(hospitals.folder.join("next")).unwrap();
    let out = hospitals.path("next/federation.toml");
    let go_on = [
        "federation",
        "continue",
        "--config",
        north,
        "--rounds",
        "2",
        "--strategy",
        "fedprox",
    ];
    let said = good(&[&go_on[..], &["--out", &out]].concat());
    assert!(
        said.contains("It continues from round 3 of stays"),
        "{said}"
    );

    // The agreement says whose it is, and its id depends on that.
    let earlier = Agreement::load(&hospitals.folder.join("federation.toml")).unwrap();
    let agreed = Agreement::load(out.as_ref()).unwrap();
    let held = HeldRounds::read(&hospitals.folder.join("north/state"), &earlier).unwrap();
    let continues = agreed.continues.clone().unwrap();
    assert_eq!(continues.federation, earlier.epoch.federation);
    assert_eq!(
        (continues.round, continues.block),
        (3, held.rounds.last().unwrap().block)
    );
    assert_ne!(agreed.epoch.federation, earlier.epoch.federation);
    let shown = good(&["federation", "show", &out]);
    for said in [
        format!("{:#}", continues.model),
        format!("{:#}", continues.federation),
        "as its members agreed on it in round 3".into(),
        "with the strategy fedprox, in 2 rounds, on the scale of the model that it starts from"
            .into(),
    ] {
        assert!(shown.contains(&said), "{said}: {shown}");
    }

    // Every way to come by the model: beside the agreement, a file, an earlier state.
    let file = hospitals.path("m.safetensors");
    fs::copy(hospitals.path("next/start.safetensors"), &file).unwrap();
    let ways = [
        "",
        "start-model = '../m.safetensors'",
        "start-model = 'state'",
    ];
    let configs = hospitals.configured("next.toml", "next/federation.toml", "next-state", &ways);
    let start = ::rota::learn::export::start_model(file.as_ref(), u64::MAX).unwrap();
    for config in &configs {
        let silo = Institution::load(config).unwrap();
        let found = silo.start().unwrap().unwrap();
        assert_eq!(found, start);
        // The state that the first round starts from has these parameters and no others.
        let equipped = silo.equipment(Some(&found)).unwrap().equipped;
        let (hash, state) = genesis_outcome(&*agreed.strategy, &*equipped, agreed.seed);
        assert_eq!(hash, agreed.epoch.protocol.start);
        assert_eq!(state.models, std::slice::from_ref(&start));
    }
    let second = TestHospitals::run(&configs);
    // It trains on: already the first round of the second is better than the first of the first, and
    // the model is another one in the end.
    let loss = |lines: &[serde_json::Value], round: u64| {
        let adopted = events(lines, "adopted");
        let round = adopted.iter().find(|line| line["round"] == round).unwrap();
        round["loss"].as_f64().unwrap()
    };
    for (first, second) in first.iter().zip(&second) {
        assert!(
            loss(second, 1) < loss(first, 2),
            "{} {}",
            loss(second, 1),
            loss(first, 2)
        );
        assert_eq!(events(second, "adopted").len(), 2);
    }
    let next = HeldRounds::read(&hospitals.folder.join("north/next-state"), &agreed).unwrap();
    let last = &next.rounds.last().unwrap().models[0];
    assert_ne!(last.hash.0, start.hash());
    // The scale is the one that the model came with, and no round agreed on another.
    let end = hospitals.path("end.safetensors");
    good(&[
        "model",
        "export",
        "--config",
        config(&configs[0]),
        "--out",
        &end,
        "--which",
        "global",
    ]);
    let end = ::rota::learn::export::start_model(end.as_ref(), u64::MAX).unwrap();
    for name in ["scale.mean", "scale.rest", "scale.deviation"] {
        assert_eq!(end.tensor(name), start.tensor(name));
    }
    assert_ne!(end.tensor("layer0.weight"), start.tensor("layer0.weight"));
    let listed = good(&["model", "show", "--config", config(&configs[0])]);
    assert!(
        listed.contains("| continues | the federation stays"),
        "{listed}"
    );

    // Without the model, or with another, a node does not start.
    let lost = |more: &str, state: &str| {
        let ways = [more, "", ""];
        let configs = hospitals.configured("lost.toml", "next/federation.toml", state, &ways);
        let run = output(&["run", "--config", config(&configs[0])]);
        assert_eq!(run.status.code(), Some(2));
        text(&run.stderr)
    };
    fs::remove_file(hospitals.path("next/start.safetensors")).unwrap();
    let said = lost("", "lost-state");
    assert!(
        said.contains("put the file start.safetensors that came with the agreement into"),
        "{said}"
    );
    let other = hospitals.path("other.safetensors");
    good(&[
        "model",
        "export",
        "--config",
        north,
        "--out",
        &other,
        "--which",
        "coalition",
        "--round",
        "2",
    ]);
    let said = lost("start-model = '../other.safetensors'", "lost-state");
    assert!(said.contains("has a model with the hash"), "{said}");
    // The node that has run keeps its own copy.
    let again = output(&[
        "run",
        "--until-done",
        "--grace",
        "1s",
        "--config",
        config(&configs[0]),
    ]);
    let said = text(&again.stdout);
    assert!(
        said.contains("all 2 rounds are done"),
        "{said}{}",
        text(&again.stderr)
    );

    // From an exported model, with its agreement; members come and go.
    good(&[
        "model", "export", "--config", north, "--out", &file, "--force",
    ]);
    fs::create_dir_all(hospitals.folder.join("third")).unwrap();
    let third = hospitals.path("third/federation.toml");
    let earlier = hospitals.path("federation.toml");
    let wrong = output(&[
        "federation",
        "continue",
        "--model",
        &file,
        "--earlier",
        &out,
        "--out",
        &third,
    ]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(
        text(&wrong.stderr).contains("is the agreement of"),
        "{}",
        text(&wrong.stderr)
    );
    good(&[
        "federation",
        "continue",
        "--model",
        &file,
        "--earlier",
        &earlier,
        "--out",
        &third,
        "--without",
        "east",
        "--name",
        "two of them",
    ]);
    let third = Agreement::load(third.as_ref()).unwrap();
    assert_eq!(
        (third.epoch.roster.len(), &*third.epoch.protocol.name),
        (2, "two of them")
    );
    assert_eq!(third.strategy_config.name(), "scaffold");
    for (more, expected) in [
        (
            &["--without", "west"][..],
            "there is no member \"west\" to leave out",
        ),
        (&["--strategy", "fedavgg"], "unknown strategy"),
        (&["--coalition", "4"], "there is no coalition 4"),
        (
            &["--round", "1000"],
            "does not hold the models of round 1000",
        ),
    ] {
        let out = hospitals.path("never/federation.toml");
        let refused = output(
            &[
                &["federation", "continue", "--config", north, "--out", &out],
                more,
            ]
            .concat(),
        );
        assert_eq!(refused.status.code(), Some(2), "{more:?}");
        let said = text(&refused.stderr);
        assert!(said.contains(expected), "{more:?}: {said}");
    }
}
