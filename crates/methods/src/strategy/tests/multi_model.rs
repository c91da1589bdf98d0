//! Strategies that find out who belongs together, over federations of two planted groups.

use serde_json::{Value, json};

use super::equipped::{strategy, strategy_for};
use super::quadratic::{QuadraticFederation, centre, layout, quadratic, trained};
use super::*;
use crate::learner::Learner;
use crate::params::Gate;

/// Three silos of either of two groups, in turn; a little different from each other.
fn silos() -> Vec<QuadraticLearner> {
    let goal = |silo: usize| {
        let own = 0.1 * (silo / 2) as f64;
        match silo % 2 {
            0 => [5.0 + own, 2.0, 1.0 - own, 3.0, 0.0],
            _ => [-5.0, -2.0 + own, -1.0, -3.0, own],
        }
    };
    (0..6).map(|silo| quadratic(goal(silo))).collect()
}

fn federation(name: &str, more: Value) -> QuadraticFederation {
    QuadraticFederation::new(strategy(name, more), silos())
}

/// What is left of the way to the own optimum after the training of a round.
const LEFT: f64 = 0.8 * 0.8 * 0.8 * 0.8 * 0.8;

/// Returns where a silo gets from somewhere.
fn train(silo: &QuadraticLearner, start: [f64; 5]) -> [f64; 5] {
    std::array::from_fn(|at| silo.centre()[at] + LEFT * (start[at] - silo.centre()[at]))
}

fn mean(of: &[[f64; 5]]) -> [f64; 5] {
    std::array::from_fn(|at| of.iter().map(|own| own[at]).sum::<f64>() / of.len() as f64)
}

/// The trained tensors of a model by themselves.
fn bare(model: &Params) -> Params {
    Params::gather(&layout(), &[model]).unwrap()
}

fn near(model: &Params, to: [f64; 5], tolerance: f64) -> bool {
    let own = trained(&bare(model));
    own.iter()
        .zip(to)
        .all(|(own, to)| (own - to).abs() < tolerance)
}

/// Returns where the two groups want to go.
fn optima() -> [[f64; 5]; 2] {
    [0, 1].map(|group| {
        let own: Vec<_> = silos().iter().skip(group).step_by(2).map(centre).collect();
        mean(&own)
    })
}

#[test]
fn planted_groups_are_found_and_served() {
    for (name, options) in [
        ("ifca", json!({})),
        ("ifca", json!({ "start": "k-means" })),
        ("ifca", json!({ "start": "random-groups" })),
        ("flsc", json!({ "models": 2, "select": 1 })),
        ("fesem", json!({})),
        ("cfl", json!({ "after": 4 })),
        ("cfl", json!({ "after": 4, "linkage": "complete" })),
        ("fedcollab", json!({})),
    ] {
        let federation = federation(name, options.clone()).rounds(25);
        let of = &federation.coalitions;
        assert_eq!(of, &[of[0], of[1]].repeat(3), "{name} {options}");
        assert_ne!(of[0], of[1], "{name} {options}");
        for (group, optimum) in optima().into_iter().enumerate() {
            let model = &federation.state.models[of[group] as usize];
            assert!(
                near(model, optimum, 1e-3),
                "{name} {options}: {:?}",
                trained(&bare(model))
            );
        }
    }
}

/// Two groups whose optima have something in common, which no model has at the start.
#[test]
fn equal_starts_collapse_to_one_group_and_random_starts_do_not() {
    let goal = |silo: usize| match silo % 2 {
        0 => [12.0, 3.0, 40_000.0, 60_000.0, 60_000.0],
        _ => [12.0, 3.0, -40_000.0, -60_000.0, -60_000.0],
    };
    for (name, select) in [("ifca", None), ("flsc", Some(1))] {
        let of = |start: &str| {
            let mut options = json!({ "models": 2, "start": start });
            if let Some(select) = select {
                options["select"] = json!(select);
            }
            let silos = (0..6).map(|silo| quadratic(goal(silo))).collect();
            let federation = QuadraticFederation::new(strategy(name, options), silos);
            assert_eq!(federation.state.models.len(), 2);
            federation.rounds(25).coalitions
        };
        assert_eq!(of("equal"), [0; 6], "{name}");
        let found = of("random");
        assert_eq!(found, [found[0], found[1]].repeat(3), "{name}");
        assert_ne!(found[0], found[1], "{name}");
    }
}

#[test]
fn equal_starts_let_flsc_choose_the_first_models() {
    let options = json!({ "models": 3, "select": 2, "start": "equal" });
    let after = federation("flsc", options).rounds(1).state.models;
    let models: Vec<_> = after.iter().map(bare).collect();
    assert_eq!(models[0], models[1]);
    assert_eq!(models[2], bare(&quadratic([0.0; 5]).initial(7)));
}

#[test]
fn one_model_is_fedavg_of_equals_bit_for_bit() {
    let average = federation("fedavg", json!({ "weight": "equal" })).rounds(4);
    for (name, options) in [
        ("ifca", json!({ "models": 1 })),
        ("flsc", json!({ "models": 1, "select": 1 })),
        ("fesem", json!({ "models": 1 })),
        ("cfl", json!({})),
        ("fedcollab", json!({ "c": 1e9, "weight": "equal" })),
    ] {
        let one = federation(name, options).rounds(4);
        let models: Vec<_> = one.state.models.iter().map(bare).collect();
        assert_eq!(models, average.state.models, "{name}");
    }
}

#[test]
fn flsc_of_one_model_is_ifca() {
    let both = ["ifca", "flsc"].map(|name| {
        let mut options = json!({ "models": 3, "start": "k-means" });
        if name == "flsc" {
            options["select"] = 1.into();
        }
        federation(name, options).rounds(6)
    });
    let [ifca, flsc] = both;
    assert_eq!(ifca.coalitions, flsc.coalitions);
    let models: Vec<_> = flsc.state.models.iter().map(bare).collect();
    assert_eq!(ifca.state.models, models);
}

#[test]
fn flsc_starts_from_the_mean_of_the_chosen_and_updates_them_all() {
    let mut federation = federation("flsc", json!({ "start": "k-means" })).rounds(1);
    let before: Vec<_> = federation.state.models.iter().map(bare).collect();
    federation.round();
    let mut updates: [Vec<[f64; 5]>; 3] = Default::default();
    for (silo, coalition) in silos().iter().zip(&federation.coalitions) {
        let mut order: Vec<usize> = (0..3).collect();
        order.sort_by(|&a, &b| silo.loss(&before[a]).total_cmp(&silo.loss(&before[b])));
        assert_eq!(*coalition as usize, order[0]);
        let start = mean(&[trained(&before[order[0]]), trained(&before[order[1]])]);
        for &chosen in &order[..2] {
            updates[chosen].push(train(silo, start));
        }
    }
    for ((model, before), updates) in federation.state.models.iter().zip(&before).zip(&updates) {
        let expected = if updates.is_empty() {
            trained(before)
        } else {
            mean(updates)
        };
        assert!(near(model, expected, 1e-4));
        // Which models were chosen is forgotten.
        assert_eq!(model.tensor("flsc.chosen"), Some([0.0; 3].as_slice()));
    }
}

#[test]
fn flsc_refuses_contributions_that_name_other_models_than_agreed() {
    let federation = federation("flsc", json!({})).rounds(1);
    let entry = |chosen: [f32; 3], coalition| {
        let zero = &federation.state.models[0];
        let at = zero
            .layout()
            .range(zero.layout().position("flsc.chosen").unwrap());
        ModelEntry {
            model: Params::build(zero.layout(), |into| into[at].copy_from_slice(&chosen)),
            coalition: Some(coalition),
            weight: None,
            member: None,
        }
    };
    let (strategy, state) = (&federation.strategy, &federation.state);
    let good = entry([1.0, 0.0, 1.0], 2);
    assert_eq!(strategy.admit(&good, 2), Ok(()));
    for bad in [
        entry([1.0, 1.0, 1.0], 2),
        entry([0.0, 0.0, 1.0], 2),
        entry([1.0, 0.5, 0.0], 0),
        entry([1.0, 1.0, 0.0], 2),
    ] {
        assert!(
            strategy
                .admit(&bad, 2)
                .unwrap_err()
                .contains("name 2 models")
        );
        let both = manifest(vec![good.clone(), bad], None);
        let error = strategy.decide(state, &both, 2).unwrap_err();
        assert!(
            matches!(error, DecideError::Unusable { entry: 1, .. }),
            "{error:?}"
        );
        let decision = Decision::fixed(vec![2, 2]);
        assert!(strategy.check(state, &both, &decision, 2).is_err());
    }
}

/// Entries that claim coalitions, over models that lie apart.
fn carried() -> (State, LoadedManifest) {
    let models = [[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]].map(model);
    let entries = vec![
        entry([9.0, 1.0], Some(1), 1),
        entry([1.0, 1.0], Some(1), 3),
        entry([8.0, 2.0], None, 1),
    ];
    (genesis().with(models.to_vec()), manifest(entries, None))
}

#[test]
fn a_model_that_no_silo_chose_keeps_its_parameters() {
    let (state, manifest) = carried();
    let ifca = strategy("ifca", json!({ "models": 3 }));
    let outcome = round(&*ifca, &state, &manifest, 2);
    assert_eq!(outcome.assignment, [1, 1, 1]);
    let models: Vec<_> = outcome.state.models.iter().map(weights).collect();
    let mean = vec![6.0, (4.0f64 / 3.0) as f32];
    assert_eq!(models, [vec![0.0, 0.0], mean, vec![0.0, 10.0]]);
    let by_rows = strategy("ifca", json!({ "models": 3, "weight": "exact" }));
    let outcome = round(&*by_rows, &state, &manifest, 2);
    assert_eq!(weights(&outcome.state.models[1])[0], 4.0);
    for decision in [Decision::fixed(vec![1, 1, 0]), Decision::fixed(vec![1, 1])] {
        assert!(ifca.check(&state, &manifest, &decision, 2).is_err());
    }
    let beyond = ifca.settle(&state, &manifest, &Decision::fixed(vec![1, 1, 3]), 2);
    assert!(matches!(beyond, Err(SettleError::Infeasible(_))));
}

#[test]
fn fesem_assigns_to_the_nearest_centre_and_ignores_claims() {
    let (state, manifest) = carried();
    let fesem = strategy("fesem", json!({ "models": 3 }));
    let outcome = round(&*fesem, &state, &manifest, 2);
    assert_eq!(outcome.assignment, [1, 0, 1]);
    let models: Vec<_> = outcome.state.models.iter().map(weights).collect();
    assert_eq!(models, [[1.0, 1.0], [8.5, 1.5], [0.0, 10.0]]);
}

#[test]
fn the_first_round_divides_what_there_is() {
    let entries = [[1.0, 0.0], [1.1, 0.0], [-1.0, 0.0], [1.2, 0.0]];
    let entries = entries.map(|weights| entry(weights, Some(0), 1)).to_vec();
    let all = manifest(entries, None);
    let few = manifest(all.entries[..2].to_vec(), None);
    for (name, start) in [
        ("ifca", "random-groups"),
        ("fesem", "random"),
        ("ifca", "k-means"),
    ] {
        let divide = |models: usize, manifest: &LoadedManifest| {
            let options = json!({ "models": models, "start": start });
            let outcome = round(&*strategy(name, options), &genesis(), manifest, 1);
            assert_eq!(outcome.state.models.len(), models);
            outcome
        };
        let two = divide(2, &all).assignment;
        match start {
            "k-means" => assert_eq!(two, [0, 0, 1, 0]),
            _ => assert_eq!(two.iter().sum::<u32>(), 2, "two each"),
        }
        // More models than contributions: the last stay as they were.
        let models = divide(3, &few).state.models;
        assert_eq!(models[2], genesis().models[0]);
        assert_ne!(models[0], models[1]);
    }
    // The order of the entries means nothing.
    let turned = manifest(all.entries.iter().rev().cloned().collect(), None);
    let dealt = json!({ "start": "random-groups" });
    let of = |manifest: &LoadedManifest| {
        round(&*strategy("ifca", dealt.clone()), &genesis(), manifest, 1)
    };
    let mut mirrored = of(&turned).assignment;
    mirrored.reverse();
    assert_eq!(mirrored, of(&all).assignment);
}

#[test]
fn cfl_waits_until_the_common_model_has_settled() {
    let mut federation = federation("cfl", json!({ "after": 4 }));
    let mut sizes = Vec::new();
    for _ in 0..12 {
        federation.round();
        sizes.push(federation.state.models.len());
    }
    let split = sizes.iter().position(|&models| models == 2).unwrap();
    assert!(split >= 4, "{sizes:?}");
    assert!(
        sizes[..split].iter().all(|&models| models == 1),
        "{sizes:?}"
    );
    assert!(
        sizes[split..].iter().all(|&models| models == 2),
        "{sizes:?}"
    );
    for never in [json!({ "after": 4, "largest-above": 1e3 }), json!({})] {
        let whole = self::federation("cfl", never).rounds(12);
        assert_eq!(whole.coalitions, [0; 6]);
    }
}

#[test]
fn clusters_keep_their_numbers_and_models_while_others_are_split() {
    // Cluster 1 is absent; cluster 0 is split at once.
    let options = json!({ "after": 0, "mean-below": 0.5, "largest-above": 0.5 });
    let cfl = strategy("cfl", options);
    let state = genesis().with(vec![model([0.0, 0.0]), model([7.0, 7.0])]);
    let moved = [[1.0, 0.1], [-1.0, 0.0], [1.0, 0.0], [-1.0, 0.1]];
    let entries = moved.map(|weights| entry(weights, Some(0), 1)).to_vec();
    let outcome = round(&*cfl, &state, &manifest(entries, None), 1);
    assert_eq!(outcome.assignment, [0, 2, 0, 2]);
    let models: Vec<_> = outcome.state.models.iter().map(weights).collect();
    assert_eq!(models, [[1.0, 0.05], [7.0, 7.0], [-1.0, 0.05]]);
}

#[test]
fn fedcollab_weighs_likeness_against_data() {
    let coalitions = |c: f64| {
        let federation = federation("fedcollab", json!({ "c": c })).rounds(1);
        federation.coalitions
    };
    assert_eq!(coalitions(0.0), [0, 1, 2, 3, 4, 5]);
    assert_eq!(coalitions(1.0), [0, 1, 0, 1, 0, 1]);
    assert_eq!(coalitions(1e6), [0; 6]);
    let later = federation("fedcollab", json!({})).rounds(1);
    let plan = later.strategy.plan(&later.state, 2);
    assert!(!plan.cross_evaluate && plan.weights);
    let equal = strategy("fedcollab", json!({ "weight": "equal" }));
    assert!(equal.plan(&later.state, 1).weights && !equal.plan(&later.state, 2).weights);
}

#[test]
fn fedcollab_refuses_dishonest_decisions() {
    let collab = strategy("fedcollab", json!({ "c": 1.0 }));
    let (state, manifest) = (genesis(), pairs());
    let honest = collab.decide(&state, &manifest, 1).unwrap();
    assert_eq!(honest.assignment, [0, 1, 0, 1]);
    // Pairs of ten rows each: C/√20, and half of a divergence of 0.15.
    let claimed = honest.claim.clone().unwrap();
    let expected = 1.0 / 20f64.sqrt() + 0.5 * (0.15 + 0.15) / 2.0;
    assert!(
        (claimed.objective - expected).abs() < 1e-12,
        "{}",
        claimed.objective
    );
    assert!((claimed.lower_bound - 1.0 / 40f64.sqrt()).abs() < 1e-12);
    let check = |decision: &Decision| collab.check(&state, &manifest, decision, 1);
    check(&honest).unwrap();
    let with = |assignment: &[u32]| Decision {
        assignment: assignment.to_vec(),
        ..honest.clone()
    };
    for infeasible in [with(&[1, 0, 1, 0]), with(&[0, 1]), with(&[0, 2, 0, 2])] {
        assert!(matches!(check(&infeasible), Err(Objection::Infeasible(_))));
    }
    for (objective, lower_bound) in [(0.0, claimed.lower_bound), (claimed.objective, f64::NAN)] {
        let lie = claiming(&honest, |claim| {
            (claim.objective, claim.lower_bound) = (objective, lower_bound);
        });
        assert!(matches!(check(&lie), Err(Objection::Misstated { .. })));
    }
    // Every silo alone: C/√10.
    let alone = claiming(&with(&[0, 1, 2, 3]), |claim| {
        claim.objective = 1.0 / 10f64.sqrt();
    });
    assert!(matches!(check(&alone), Err(Objection::NotBest { .. })));
    let mut bare = manifest.clone();
    bare.scores = None;
    assert_eq!(collab.decide(&state, &bare, 1), Err(DecideError::NoScores));
}

#[test]
fn pfedgraph_gives_every_silo_the_mean_of_those_like_it() {
    let federation = federation("pfedgraph", json!({})).rounds(25);
    assert_eq!(
        federation.coalitions,
        [0, 1, 2, 3, 4, 5],
        "every silo has its own"
    );
    for (silo, model) in federation.state.models.iter().enumerate() {
        assert!(
            near(model, optima()[silo % 2], 1e-2),
            "{silo}: {:?}",
            trained(model)
        );
    }
    let first = &federation.state.tables["pfedgraph.first"];
    assert_eq!(first, &[federation.learners[0].initial(7)]);
}

#[test]
fn measured_from_the_round_before_silos_of_a_group_drift_apart() {
    let apart = |since: &str| {
        let federation = federation("pfedgraph", json!({ "since": since })).rounds(25);
        let models = &federation.state.models;
        let [a, b] = [&models[0], &models[4]].map(trained);
        (0..5)
            .map(|at| (a[at] - b[at]) * (a[at] - b[at]))
            .sum::<f64>()
    };
    let (first, round) = (apart("first"), apart("round"));
    assert!(first < 1e-6 && round > 1e-2, "{first} {round}");
}

#[test]
fn pfedgraph_with_a_strong_prior_equals_fedavg() {
    for since in ["first", "round"] {
        let graph = federation("pfedgraph", json!({ "alpha": 1e9, "since": since })).rounds(3);
        let average = federation("fedavg", json!({})).rounds(3);
        for model in &graph.state.models {
            assert!(
                near(model, trained(&average.state.models[0]), 1e-4),
                "{since}"
            );
        }
    }
}

#[test]
fn pfedgraph_solves_its_program_and_keeps_the_models_of_absent_silos() {
    // Changes from 0 of (1, 0), (1, 0) and (0, 1): cosines 1 and 0, with p = ¼, ¼, ½.
    let graph = strategy_for(4, "pfedgraph", json!({ "alpha": 0.5 }));
    let moved = [([2.0, 0.0], 1), ([1.0, 0.0], 1), ([0.0, 3.0], 2)];
    let entries = moved.map(|(weights, rows)| entry(weights, Some(0), rows));
    let one = round(&*graph, &genesis(), &manifest(entries.to_vec(), None), 1);
    assert_eq!(one.assignment, [0, 1, 2]);
    // p + cos = (5/4, 5/4, 1/2) is nearest to (½, ½, 0); (1/4, 1/4, 3/2) to (0, 0, 1).
    let models: Vec<_> = one.state.models.iter().map(weights).collect();
    assert_eq!(models, [[1.5, 0.0], [1.5, 0.0], [0.0, 3.0]]);
    // The second is absent, the third claims its own, and there is a newcomer.
    let entries = vec![entry([0.0, 5.0], Some(2), 1), entry([4.0, 0.0], None, 1)];
    let two = round(&*graph, &one.state, &manifest(entries, None), 2);
    assert_eq!(two.assignment, [2, 3]);
    let models: Vec<_> = two.state.models.iter().map(weights).collect();
    assert_eq!(models, [[1.5, 0.0], [1.5, 0.0], [0.0, 5.0], [4.0, 0.0]]);
}

#[test]
fn robust_rules_take_the_place_of_the_mean() {
    for name in ["ifca", "flsc", "fesem", "cfl", "fedcollab"] {
        let mut options = json!({ "aggregation": { "name": "coordinate-median" } });
        match name {
            "cfl" => options["after"] = 4.into(),
            "flsc" => options["select"] = 1.into(),
            _ => {}
        }
        if ["ifca", "fesem", "flsc"].contains(&name) {
            options["models"] = 2.into();
        }
        let federation = federation(name, options).rounds(25);
        let model = &federation.state.models[federation.coalitions[0] as usize];
        // The median of 5, 5.1 and 5.2 is their mean; of three sixes none.
        assert!(
            near(model, optima()[0], 1e-3),
            "{name}: {:?}",
            trained(&bare(model))
        );
    }
}

#[test]
fn what_is_remembered_is_all_in_the_state() {
    for (name, options) in [
        ("maxfl", json!({})),
        ("maxfl", json!({ "variant": "joins" })),
        ("fedfa", json!({})),
        ("superquantile", json!({})),
        ("ifca", json!({})),
        ("flsc", json!({})),
        ("fesem", json!({})),
        ("cfl", json!({})),
        ("fedcollab", json!({})),
        ("pfedgraph", json!({})),
    ] {
        let whole = federation(name, options.clone()).rounds(4);
        let mut cut = federation(name, options.clone()).rounds(2);
        // As it is written and read again, at another member.
        let read = |model: &Params| {
            let layout = cut.learners[0].layout();
            let norm = f64::INFINITY;
            Gate { layout, norm }.admit(model.document()).unwrap()
        };
        let table = |(name, models): (&String, &Vec<Params>)| {
            (name.clone(), models.iter().map(read).collect())
        };
        cut.state = State {
            models: cut.state.models.iter().map(read).collect(),
            memory: cut.state.memory.clone(),
            tables: cut.state.tables.iter().map(table).collect(),
        };
        cut.strategy = strategy(name, options);
        let cut = cut.rounds(2);
        assert_eq!(cut.state.models, whole.state.models, "{name}");
        assert_eq!(cut.coalitions, whole.coalitions, "{name}");
    }
}
