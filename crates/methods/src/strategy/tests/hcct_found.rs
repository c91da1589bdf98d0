//! HCCT that finds the number of groups: what it forms, what it measures, and what a lead may not do.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::equipped::strategy_for;
use super::hospital::{TestHospital, hospitals};
use super::quadratic::{QuadraticFederation, quadratic};
use super::*;

fn auto(name: &str, members: usize) -> Box<dyn Strategy> {
    strategy_for(members, name, json!({ "groups": "auto" }))
}

fn found(silos: Vec<TestHospital>, rounds: u64) -> QuadraticFederation {
    QuadraticFederation::new(auto("hcct", silos.len()), silos).rounds(rounds)
}

/// The entries of the round that forms groups.
fn formed(silos: &[TestHospital]) -> (State, LoadedManifest) {
    let strategy = auto("hcct", silos.len());
    let state = strategy.initial_state(&silos[0], 7);
    let after = found(silos.to_vec(), 1).state;
    let entries = silos
        .iter()
        .zip(after.models)
        .map(|(silo, model)| ModelEntry {
            model,
            coalition: Some(0),
            weight: Some(crate::Learner::samples(silo)),
            member: None,
        });
    let manifest = manifest(entries.collect(), None);
    (state, manifest)
}

#[test]
fn silos_of_one_kind_are_found_and_those_of_many_stay_alone() {
    for rows in [12, 20, 60] {
        let groups = found(hospitals(6, 2, rows), 2).coalitions;
        // Kinds alternate: none are mixed, and one silo at most stays apart.
        let of = |kind: usize| -> BTreeSet<u32> {
            groups.iter().skip(kind).step_by(2).copied().collect()
        };
        assert!(of(0).is_disjoint(&of(1)), "{rows}: {groups:?}");
        assert!(of(0).len() + of(1).len() <= 3, "{rows}: {groups:?}");
        // And stay so.
        assert_eq!(found(hospitals(6, 2, rows), 4).coalitions, groups);
    }
    assert_eq!(found(hospitals(4, 4, 60), 2).coalitions, [0, 1, 2, 3]);
    assert_eq!(found(hospitals(5, 1, 12), 2).coalitions, [0; 5]);
}

#[test]
fn tenfold_rows_change_no_group_and_count_tenfold_in_the_mean() {
    let mut silos = hospitals(6, 2, 60);
    silos[0] = hospitals(6, 2, 600).swap_remove(0);
    let first = found(silos.clone(), 1);
    let second = found(silos, 2);
    assert_eq!(second.coalitions, [0, 1, 0, 1, 0, 1]);
    let members = [0, 2, 4].map(|at| &first.state.models[at]);
    let weighted: Vec<_> = members.into_iter().zip([600.0, 60.0, 60.0]).collect();
    let mean = crate::params::weighted_mean(&weighted).unwrap();
    assert_eq!(second.state.models[0], mean);
}

#[test]
fn a_silo_alone_in_its_group_goes_on_by_exact_fits() {
    let silos = hospitals(4, 4, 60);
    let found = found(silos.clone(), 3);
    assert_eq!(found.coalitions, [0, 1, 2, 3]);
    let counts = found.state.memory.counts("coalitions.silos", 4);
    assert_eq!(counts, Some(&[1; 4][..]));
    // Those that silos make without any federation, however many rounds there are.
    let alone = strategy_for(4, "local", json!({ "fit": "exact" }));
    let alone = QuadraticFederation::new(alone, silos).rounds(1);
    let near = |a: &Params, b: &Params| {
        a.values()
            .iter()
            .zip(b.values())
            .all(|(a, b)| (a - b).abs() < 1e-6)
    };
    let mut pairs = found.state.models.iter().zip(&alone.state.models);
    assert!(
        pairs.all(|(own, alone)| near(own, alone)),
        "{:?}",
        found.state.models
    );
}

#[test]
fn nothing_but_the_models_stays_behind() {
    let first = found(hospitals(4, 2, 30), 1);
    assert_eq!(first.coalitions, [0, 1, 2, 3]);
    let kept = first.state.memory.candidates("coalitions.candidates", 4);
    assert_eq!(kept.map(<[_]>::len), Some(4));
    let second = found(hospitals(4, 2, 30), 2);
    assert!(second.state.memory.is_empty() && second.state.tables.is_empty());
}

#[test]
fn only_the_tree_cut_at_every_number_gives_candidates() {
    let silos = hospitals(6, 2, 60);
    let (state, manifest) = formed(&silos);
    let strategy = auto("hcct", 6);
    let honest = strategy.decide(&state, &manifest, 1).unwrap();
    let tree = strategy
        .merge_tree(&state, &|| Some(manifest.clone()), 1)
        .unwrap();
    let candidates = &honest.claim.as_ref().unwrap().candidates;
    let cuts: Vec<_> = (1..=6).map(|groups| tree.cut(groups)).collect();
    assert_eq!(*candidates, cuts);
    assert_eq!(candidates[1], [0, 1, 0, 1, 0, 1]);
    // Every member comes to the same decision by itself, and to the same state.
    let outcome = round(&*strategy, &state, &manifest, 1);
    let other = round(&*auto("hcct", 6), &state, &manifest, 1);
    assert_eq!(outcome.state, other.state);
    let mut lies = vec![
        claiming(&honest, |claim| drop(claim.candidates.pop())),
        claiming(&honest, |claim| {
            claim.candidates[1] = vec![0, 0, 0, 1, 1, 1]
        }),
        claiming(&honest, |claim| claim.candidates.clear()),
        claiming(&honest, |claim| claim.objective -= 0.1),
        claiming(&honest, |claim| claim.lower_bound = f64::NAN),
        Decision::fixed(honest.assignment.clone()),
    ];
    lies.push(Decision {
        assignment: vec![0, 1, 0, 1, 0, 1],
        ..honest
    });
    for lie in lies {
        let refused = strategy.check(&state, &manifest, &lie, 1);
        assert!(matches!(refused, Err(Objection::Infeasible(_))), "{lie:?}");
        assert!(
            strategy.settle(&state, &manifest, &lie, 1).is_err(),
            "{lie:?}"
        );
    }
    let unread = || panic!("no manifest is read where no groups are formed");
    assert_eq!(strategy.merge_tree(&state, &unread, 2), None);
}

#[test]
fn the_lead_must_take_the_groups_of_least_reported_loss() {
    let silos = hospitals(6, 2, 60);
    let (state, manifest) = formed(&silos);
    let strategy = auto("hcct", 6);
    let state = round(&*strategy, &state, &manifest, 1).state;
    let layout = strategy.expects(&state, manifest.entries[0].model.layout(), None, 2);
    let losses: Vec<f32> = (0..=MOST).map(|at| [4.0, 1.0, 2.0][at.min(2)]).collect();
    let entry = |own: u32| ModelEntry {
        model: Params::from_values(&layout, &losses),
        coalition: Some(own),
        weight: Some(60),
        member: None,
    };
    let manifest = super::manifest((0..6).map(entry).collect(), None);
    let honest = strategy.decide(&state, &manifest, 2).unwrap();
    assert_eq!(honest.assignment, [0, 1, 0, 1, 0, 1]);
    assert!(strategy.check(&state, &manifest, &honest, 2).is_ok());
    let moved = Decision {
        assignment: vec![0, 1, 2, 3, 4, 5],
        ..honest
    };
    assert!(strategy.check(&state, &manifest, &moved, 2).is_err());
    assert!(strategy.settle(&state, &manifest, &moved, 2).is_err());
    let without_rows = ModelEntry {
        weight: None,
        ..entry(0)
    };
    assert!(strategy.admit(&without_rows, 2).is_err());
}

#[test]
fn more_than_32_silos_have_a_tree_cut_at_some_numbers() {
    let silos = hospitals(40, 2, 12);
    let (state, manifest) = formed(&silos);
    let strategy = auto("hcct", 40);
    let decision = strategy.decide(&state, &manifest, 1).unwrap();
    let candidates = &decision.claim.as_ref().unwrap().candidates;
    assert!(candidates.len() <= MOST + 1);
    assert_eq!(candidates[0], [0; 40]);
    assert_eq!(*candidates.last().unwrap(), decision.assignment);
    assert!(strategy.check(&state, &manifest, &decision, 1).is_ok());
}

#[test]
fn silos_without_held_out_rows_and_unused_options_are_refused() {
    let silos = vec![quadratic([1.0; 5]), quadratic([2.0; 5])];
    let federation = QuadraticFederation::new(auto("hcct", 2), silos).rounds(1);
    let (state, strategy) = (&federation.state, &federation.strategy);
    assert_eq!(federation.coalitions, [0, 1]);
    let participant = Participant {
        member: 0,
        coalition: 0,
        learner: &*federation.learners[0],
        personal: &federation.personal[0],
        radius: &federation.radius,
        seed: 1,
    };
    let go_on = &mut |_| std::ops::ControlFlow::Continue(());
    let plan = strategy.plan(state, 2);
    let error = strategy.contribute(state, &plan, 2, participant, go_on);
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("give the number of coalitions or groups"),
        "{error}"
    );
    let refused = |name: &str, more: Value| {
        let mut config = json!({ "name": name, "groups": "auto", "training": training() });
        let more = more.as_object().unwrap().clone();
        config.as_object_mut().unwrap().extend(more);
        let config: StrategyConfig = serde_json::from_value(config).unwrap();
        config.validate(3).unwrap_err().to_string()
    };
    for (more, option) in [
        (json!({ "alpha": "own" }), "alpha"),
        (json!({ "freeze": 1 }), "freeze"),
        (json!({ "grouping": "paper" }), "grouping"),
        (json!({ "regroup": "always" }), "regroup"),
    ] {
        for name in ["hcct", "hcct-e", "hcct-p"] {
            let error = refused(name, more.clone());
            let expected = format!("option {option} must be left out with groups = \"auto\"");
            assert!(error.contains(&expected), "{error}");
        }
    }
}

#[test]
fn a_name_drafts_the_found_number_and_old_files_mean_the_same() {
    let from_file = |name: &str| -> StrategyConfig {
        serde_json::from_value(json!({ "name": name, "training": training() })).unwrap()
    };
    for name in ["hcct", "hcct-e", "hcct-p"] {
        let plain = from_file(name);
        let written = serde_json::to_value(&plain).unwrap();
        assert_eq!(written["groups"], 0, "{name}: agreements keep their ids");
        assert_eq!(
            (plain.least_rounds(), written["freeze"].as_u64()),
            (1, Some(3))
        );
        let drafted = from_file("fedavg").switch(name).unwrap();
        assert_eq!(serde_json::to_value(&drafted).unwrap()["groups"], "auto");
        assert_eq!(drafted.least_rounds(), 2);
        assert_eq!(plain.switch(name).unwrap(), plain);
    }
}
