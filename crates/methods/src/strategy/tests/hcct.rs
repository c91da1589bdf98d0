//! HCCT, HCCT-E and HCCT-P over whole federations of quadratics.

use serde_json::{Value, json};

use super::equipped::{strategy, strategy_for};
use super::quadratic::{QuadraticFederation, quadratic};
use super::*;

/// Two silos with nearly one goal, and one with the opposite; they differ most in layer 1.
fn three() -> Vec<QuadraticLearner> {
    vec![
        quadratic([9.0, 2.0, 5.0, 5.0, 1.0]),
        quadratic([9.0, 2.2, 5.0, 4.5, 1.0]),
        quadratic([7.5, -2.0, -5.0, -5.0, 0.5]),
    ]
}

fn federation(name: &str, more: Value) -> QuadraticFederation {
    QuadraticFederation::new(strategy(name, more), three())
}

#[test]
fn silos_of_one_direction_are_grouped_and_of_opposite_ones_not() {
    for name in ["hcct", "hcct-e", "hcct-p"] {
        let federation = federation(name, json!({})).rounds(3);
        assert_eq!(federation.coalitions, [0, 0, 1], "{name}");
        assert_eq!(federation.state.models.len(), 2);
    }
}

/// An entry of ten rows whose training moved its group's model by this in the first two numbers.
fn moved_from(state: &State, own: u32, moved: [f32; 2]) -> ModelEntry {
    let start = &state.models[own as usize];
    ModelEntry {
        model: Params::build(start.layout(), |into| {
            into.copy_from_slice(start.values());
            into[0] += moved[0];
            into[1] += moved[1];
        }),
        coalition: Some(own),
        weight: Some(10),
        member: None,
    }
}

#[test]
fn merges_are_told_down_to_one_group_as_long_as_groups_are_formed() {
    let strategy = strategy("hcct", json!({ "freeze": 1 }));
    let state = federation("hcct", json!({})).state;
    let moves = [[1.0, 0.1], [-1.0, 0.0], [1.0, -0.1]];
    let manifest = manifest(moves.map(|moved| moved_from(&state, 0, moved)).into(), None);
    let tree = strategy.merge_tree(&state, &|| Some(manifest.clone()), 1);
    let tree = tree.unwrap();
    let groups: Vec<_> = tree.merges.iter().map(|merge| merge.groups).collect();
    assert_eq!(groups, [[0, 2], [0, 1]]);
    assert!(tree.merges[0].benefit > 0.0 && tree.merges[1].benefit < 0.0);
    // Each alone has the cosine of its own direction, and a share of .5 of its rows: 3 · (1 − .5).
    assert!((tree.alone - 1.5).abs() < 1e-6, "{}", tree.alone);
    let unread = || panic!("no sheet is read where no groups are formed");
    assert_eq!(strategy.merge_tree(&state, &unread, 2), None);
}

#[test]
fn one_group_equals_fedavg_and_no_merge_equals_local_training_bit_for_bit() {
    for grouping in ["paper", "trained"] {
        let all = json!({ "alpha": { "common": 1e9 }, "grouping": grouping });
        let all = federation("hcct", all).rounds(3);
        let mean = federation("fedavg", json!({})).rounds(3);
        assert_eq!(all.state.models, mean.state.models);
    }
    let none = json!({ "alpha": { "common": 0.0 } });
    let none = federation("hcct", none).rounds(3);
    let alone = federation("local", json!({})).rounds(3);
    assert_eq!(none.state.models, alone.state.models);
}

#[test]
fn every_member_may_have_its_own_alpha() {
    let build = |alphas: &[f64]| strategy_for(3, "hcct", json!({ "alpha": { "each": alphas } }));
    let run = |alphas: &[f64]| QuadraticFederation::new(build(alphas), three()).rounds(2);
    let alike = run(&[1e9; 3]);
    let mean = federation("fedavg", json!({})).rounds(2);
    assert_eq!(alike.state.models, mean.state.models);
    assert_eq!(run(&[0.0; 3]).coalitions, [0, 1, 2]);
    // An α goes with its member, wherever the entry of that member stands.
    let state = federation("hcct", json!({})).state;
    let entry = |member, moved| ModelEntry {
        member: Some(member),
        ..moved_from(&state, 0, moved)
    };
    let [a, b, opposite] = [[1.0, 0.1], [0.0, 1.0], [-1.0, 0.0]];
    let groups = |alphas: &[f64], order: [(u16, [f32; 2]); 3]| {
        let manifest = manifest(
            order.map(|(member, moved)| entry(member, moved)).into(),
            None,
        );
        build(alphas)
            .decide(&state, &manifest, 1)
            .unwrap()
            .assignment
    };
    // Of ten rows each: twice as many make all join, and a member that asks for none stays alone.
    assert_eq!(
        groups(&[20.0; 3], [(0, a), (1, b), (2, opposite)]),
        [0, 0, 0]
    );
    let last = [20.0, 20.0, 0.0];
    assert_eq!(groups(&last, [(0, a), (1, b), (2, opposite)]), [0, 0, 1]);
    assert_eq!(groups(&last, [(2, opposite), (1, b), (0, a)]), [0, 1, 1]);
    let strategy = build(&last);
    assert_eq!(strategy.names(), Names::Shown);
    let nameless = manifest(vec![moved_from(&state, 0, a)], None);
    let refused = strategy.decide(&state, &nameless, 1);
    assert!(matches!(
        refused,
        Err(DecideError::Unusable { entry: 0, .. })
    ));
}

#[test]
fn members_of_a_new_group_bring_what_they_received() {
    let first = federation("hcct", json!({ "grouping": "paper" })).rounds(1);
    // All trained together, so both groups start from the mean of all.
    let mean = federation("fedavg", json!({})).rounds(1).state.models;
    assert_eq!(first.state.models, [mean[0].clone(), mean[0].clone()]);
    let trained = federation("hcct", json!({})).rounds(1);
    assert_ne!(trained.state.models[0], trained.state.models[1]);
}

#[test]
fn silos_hold_what_their_group_trained_and_not_what_the_next_one_starts_from() {
    let paper = json!({ "grouping": "paper", "alpha": "own", "freeze": 0 });
    let mut one = federation("hcct", paper).rounds(1);
    for _ in 0..3 {
        let (state, before) = (one.state.clone(), one.coalitions.clone());
        let count = state.models.len();
        let next = state.memory.assignment("hcct.next", count, count).unwrap();
        let trained_in = |silo: usize| next[before[silo] as usize];
        one.round();
        let trained = &one.state.tables["hcct.trained"];
        for silo in 0..3 {
            let group: Vec<_> = (0..3)
                .filter(|&other| trained_in(other) == trained_in(silo))
                .map(|other| (&trained[other], 1.0))
                .collect();
            let mean = crate::params::weighted_mean(&group).unwrap();
            assert_eq!(one.state.models[one.coalitions[silo] as usize], mean);
        }
    }
}

#[test]
fn groups_may_be_given_in_number_or_kept() {
    let two = federation("hcct", json!({ "groups": 2, "alpha": { "common": 1e9 } })).rounds(2);
    assert_eq!(two.state.models.len(), 2);
    let many = federation("hcct", json!({ "groups": 50 })).rounds(2);
    assert_eq!(many.coalitions, [0, 1, 2], "no more than there are silos");
    let kept = federation("hcct", json!({ "freeze": 1 })).rounds(4);
    assert_eq!(kept.coalitions, [0, 0, 1]);
    let state = State::genesis(kept.state.models[0].clone());
    let manifest = manifest(vec![], None);
    assert_eq!(
        kept.strategy.decide(&state, &manifest, 1),
        Err(DecideError::NoEntries)
    );
}

/// Two kinds of silos that have reached their goals, so that what is left of their directions is noise.
#[test]
fn groups_stay_unless_new_ones_have_a_higher_utility() {
    let decided = |strategy: &dyn Strategy, state: &State, moves: [[f32; 2]; 4], round: u64| {
        let coalitions = match state.models.len() {
            1 => [0; 4],
            _ => [0, 0, 1, 1],
        };
        let each = moves.into_iter().zip(coalitions);
        let entries = each
            .map(|(moved, own)| moved_from(state, own, moved))
            .collect();
        let manifest = manifest(entries, None);
        let decision = strategy.decide(state, &manifest, round).unwrap();
        strategy.check(state, &manifest, &decision, round).unwrap();
        (manifest, decision)
    };
    let kinds = [[1.0, 0.1], [1.0, -0.1], [-1.0, 0.1], [-1.0, -0.1]];
    // No two of them point in one direction.
    let noise = [[0.01, 0.0], [-0.01, 0.0], [0.0, 0.01], [0.0, -0.01]];
    // The first and the third, and the other two, agree to the last bit.
    let clearer = [[1.0, 0.0], [-1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]];
    let after = |more: Value| {
        let strategy = strategy("hcct", more);
        let begin = federation("hcct", json!({})).state;
        let (manifest, decision) = decided(&*strategy, &begin, kinds, 1);
        let state = strategy
            .settle(&begin, &manifest, &decision, 1)
            .unwrap()
            .state;
        (strategy, state)
    };
    let (strategy, state) = after(json!({}));
    let (manifest, kept) = decided(&*strategy, &state, noise, 2);
    assert_eq!(kept, Decision::fixed(vec![0, 0, 1, 1]));
    let outcome = strategy.settle(&state, &manifest, &kept, 2).unwrap();
    assert_eq!(outcome.assignment, [0, 0, 1, 1]);
    let (_, new) = decided(&*strategy, &state, clearer, 2);
    assert_eq!(new.assignment, [0, 1, 0, 1]);
    // A lead may not do the other.
    let keeps = Decision::fixed(vec![0, 0, 1, 1]);
    let (better, _) = decided(&*strategy, &state, clearer, 2);
    assert!(strategy.check(&state, &better, &keeps, 2).is_err());
    let (always, same_state) = after(json!({ "regroup": "always" }));
    let (noisy, alone) = decided(&*always, &same_state, noise, 2);
    assert_eq!(alone.assignment, [0, 1, 2, 3]);
    let worse = strategy.check(&state, &noisy, &alone, 2).unwrap_err();
    assert!(
        worse.to_string().contains("the present ones had"),
        "{worse}"
    );
}

#[test]
fn the_layer_that_differs_most_is_found_once_and_remembered() {
    let federation = federation("hcct-e", json!({})).rounds(3);
    // In the order of names: layer0, layer1, norm0.
    assert_eq!(federation.state.memory.count("hcct.layer"), Some(1));
}

/// A state and a manifest to decide on.
fn case() -> (Box<dyn Strategy>, State, LoadedManifest) {
    let federation = federation("hcct", json!({ "alpha": "own" }));
    let start = federation.state.models[0].clone();
    let entry = |moved: [f32; 2]| ModelEntry {
        model: Params::build(start.layout(), |into| {
            into.copy_from_slice(start.values());
            into[0] += moved[0];
            into[1] += moved[1];
        }),
        coalition: Some(0),
        weight: Some(10),
        member: None,
    };
    let entries = [[1.0, 0.1], [1.0, -0.1], [-1.0, 0.0]].map(entry);
    let manifest = manifest(entries.to_vec(), None);
    (federation.strategy, federation.state, manifest)
}

#[test]
fn dishonest_decisions_are_refused() {
    let (strategy, state, manifest) = case();
    let honest = strategy.decide(&state, &manifest, 1).unwrap();
    assert_eq!(honest.assignment, [0, 0, 1]);
    let claimed = honest.claim.clone().unwrap();
    assert!(claimed.lower_bound <= claimed.objective);
    let check = |decision: &Decision| strategy.check(&state, &manifest, decision, 1);
    check(&honest).unwrap();
    for assignment in [vec![1, 1, 0], vec![0, 0], vec![0, 2, 1]] {
        let infeasible = Decision {
            assignment,
            ..honest.clone()
        };
        assert!(matches!(check(&infeasible), Err(Objection::Infeasible(_))));
    }
    for (objective, lower_bound) in [
        (claimed.objective - 1e-3, claimed.lower_bound),
        (f64::NAN, claimed.lower_bound),
        (claimed.objective, f64::NEG_INFINITY),
        (claimed.objective, f64::NAN),
    ] {
        let lie = claiming(&honest, |claim| {
            (claim.objective, claim.lower_bound) = (objective, lower_bound);
        });
        assert!(
            matches!(check(&lie), Err(Objection::Misstated { .. })),
            "{lie:?}"
        );
    }
    // Every silo alone has utility 0 with `α_k = n_k`: worse, with an honest claim.
    let mut alone = claiming(&honest, |claim| claim.objective = 0.0);
    alone.assignment = vec![0, 1, 2];
    assert!(matches!(check(&alone), Err(Objection::NotBest { .. })));
}

#[test]
fn entries_without_rows_or_of_no_group_are_met() {
    let (strategy, state, mut manifest) = case();
    for coalition in [None, Some(7)] {
        manifest.entries[0].coalition = coalition;
        assert_eq!(
            round(&*strategy, &state, &manifest, 1).assignment,
            [0, 0, 1]
        );
    }
    manifest.entries[1].weight = None;
    assert!(strategy.admit(&manifest.entries[1], 1).is_err());
    let without = DecideError::NoWeight { entry: 1 };
    assert_eq!(strategy.decide(&state, &manifest, 1), Err(without));
}

#[test]
fn a_newcomer_joins_the_group_that_gains_by_it_or_stays_alone() {
    // Silos 0 and 1 pull one way, silo 2 the other.
    let silos = vec![
        quadratic([9.0, 5.0, 0.0, 0.0, 0.0]),
        quadratic([9.0, 5.2, 0.0, 0.0, 0.0]),
        quadratic([5.0, -5.0, 0.0, 0.0, 0.0]),
    ];
    let careful = json!({ "alpha": { "common": 0.1 } });
    let federation = QuadraticFederation::new(strategy("hcct", careful), silos).rounds(3);
    assert_eq!(federation.coalitions, [0, 0, 1]);
    let admitted = |centre: [f64; 5]| {
        let learner = federation
            .strategy
            .equip(Arc::new(quadratic(centre)))
            .unwrap();
        let personal = learner.initial_personal(7);
        let radius = OwnRadius::default();
        let newcomer = Newcomer {
            learner: &*learner,
            personal: &personal,
            radius: &radius,
            seed: 1,
        };
        federation
            .strategy
            .unseen(&federation.state, 4, newcomer)
            .unwrap()
    };
    let models = &federation.state.models;
    assert_eq!(admitted([9.0, 4.9, 0.1, 0.0, 0.0]), models[0]);
    assert_eq!(admitted([5.0, -5.1, 0.0, 0.1, 0.0]), models[1]);
    let alone = admitted([-9.0, 0.0, 9.0, 9.0, 9.0]);
    assert!(!models.contains(&alone));
}
