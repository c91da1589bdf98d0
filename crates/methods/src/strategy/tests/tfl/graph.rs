//! Where the prior comes from.

use super::*;

const THETA: [[f32; 3]; 4] = [
    [1.0, 0.0, 2.0],
    [1.0, 1.0, 2.0],
    [0.0, 1.0, 1.0],
    [-1.0, 2.0, 0.0],
];

/// The state after a round in which these models were trained and the graph is learned.
fn learned(models: &[[f32; 3]], start: [f32; 3], more: Value) -> State {
    let mut options = json!({ "period": 1 });
    let more = more.as_object().unwrap().clone();
    options.as_object_mut().unwrap().extend(more);
    let strategy = strategy("tfl", models.len(), options);
    let entries = models
        .iter()
        .zip(0..)
        .map(|(model, k)| reporting(k, model, 1.0));
    let state = State::genesis(plain(&start));
    super::round(&*strategy, &state, &manifest(entries.collect()), 1).state
}

#[test]
fn the_prior_comes_from_the_graph_of_the_models() {
    let prior = [
        0.2021127230571263,
        0.2021127230571263,
        0.39366183082862116,
        0.2021127230571263,
    ];
    let edges = [
        [0.0, 1.0, 1.0, 0.0],
        [1.0, 0.0, 1.0, 0.0],
        [1.0, 1.0, 0.0, 1.0],
        [0.0, 0.0, 1.0, 0.0],
    ];
    for metric in ["dot", "cosine", "l1", "l2"] {
        let state = learned(&THETA, [0.0; 3], json!({ "similarity": metric }));
        assert!(
            close(memory(&state, "tfl.prior"), &prior, 1e-12),
            "{metric}"
        );
        assert_eq!(adjacency(&state), edges.concat());
        // Of the changes, where the models are those and something common.
        let moved = THETA.map(|theta| [theta[0] + 4.0, theta[1] - 8.0, theta[2] + 2.0]);
        let options = json!({ "similarity": metric, "embedding": { "update": true } });
        let state = learned(&moved, [4.0, -8.0, 2.0], options);
        assert!(
            close(memory(&state, "tfl.prior"), &prior, 1e-12),
            "{metric}"
        );
    }
    // As many clusters as members are no clusters.
    let state = learned(&THETA, [0.0; 3], json!({ "clusters": 4 }));
    assert!(close(memory(&state, "tfl.prior"), &prior, 1e-12));
    let named = json!({ "similarity": "l2", "embedding": { "part": { "named": ["weight"] } } });
    assert!(close(
        memory(&learned(&THETA, [0.0; 3], named), "tfl.prior"),
        &prior,
        1e-12
    ));
}

#[test]
fn clusters_share_their_prior_among_their_members() {
    // Three centres in a row, of one, two and three members.
    let at = |x: f32, off: f32| [x, off, 1.0];
    let models = [
        at(5.0, 0.1),
        at(0.0, 0.0),
        at(5.0, -0.1),
        at(9.0, 0.0),
        at(9.0, 0.1),
        at(9.0, 0.2),
    ];
    for update in [false, true] {
        let options = json!({
            "clusters": 3, "similarity": "l2", "epsilon": 0.3, "embedding": { "update": update },
        });
        let state = learned(&models, [0.0, 0.0, 1.0], options);
        let clusters = [0, 1, 0, 2, 2, 2].map(Some).to_vec();
        assert_eq!(
            state.memory.get("tfl.clusters"),
            Some(&Kept::Clusters(clusters))
        );
        assert_eq!(
            adjacency(&state),
            [0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0]
        );
        let broker = libm::exp(1.0) / (libm::exp(1.0) + 2.0);
        let other = 1.0 / (libm::exp(1.0) + 2.0);
        let shares = [
            broker / 2.0,
            other,
            broker / 2.0,
            other / 3.0,
            other / 3.0,
            other / 3.0,
        ];
        assert!(close(memory(&state, "tfl.prior"), &shares, 1e-12));
    }
}

#[test]
fn graphs_come_every_few_rounds_from_last_models() {
    let options = json!({ "participants": { "sample": 2 }, "period": 3, "centrality": "degree" });
    let mut kept = federation("tfl", options.clone());
    let mut last: Vec<Params> = vec![kept.state.models[0].clone(); 5];
    let mut priors = Vec::new();
    for round in 1..=6 {
        let before = kept.state.clone();
        let drawn = trains(&*kept.strategy, &before, round, 5);
        kept.round();
        let table = &kept.state.tables["tfl.models"];
        for (k, (now, last)) in table.iter().zip(&mut last).enumerate() {
            if !drawn.contains(&(k as u16)) {
                assert_eq!(now, last, "member {k} did not train in round {round}");
            }
            *last = now.clone();
            assert_eq!(now.layout(), before.models[0].layout());
        }
        priors.push(memory(&kept.state, "tfl.prior").to_vec());
        assert!(!kept.state.tables.contains_key("tfl.starts"));
    }
    assert_eq!((&priors[0], &priors[1]), (&uniform(5), &uniform(5)));
    assert_ne!(priors[2], uniform(5));
    assert!(priors[2] == priors[3] && priors[3] == priors[4]);

    let mut options = options.as_object().unwrap().clone();
    options.insert("full-refresh".into(), true.into());
    let mut fresh = federation("tfl", options.clone().into());
    for round in 1..=6 {
        let trained = trains(&*fresh.strategy, &fresh.state, round, 5).len();
        assert_eq!(trained == 5, round % 3 == 0);
        fresh.round();
        assert!(fresh.state.tables.is_empty());
    }
    assert_ne!(memory(&fresh.state, "tfl.prior"), uniform(5));

    // Changes are measured from where each was trained.
    options.remove("full-refresh");
    options.insert("embedding".into(), json!({ "update": true }));
    let changes = federation("tfl", options.into()).rounds(6);
    assert_eq!(changes.state.tables["tfl.starts"].len(), 5);
    let starts: BTreeSet<_> = changes.state.tables["tfl.starts"]
        .iter()
        .map(Params::hash)
        .collect();
    assert!(starts.len() > 1);
}

#[test]
fn equal_models_give_a_uniform_prior() {
    for metric in ["dot", "cosine", "l1", "l2"] {
        let state = learned(
            &[[1.0, 2.0, 3.0]; 5],
            [0.0; 3],
            json!({ "similarity": metric }),
        );
        assert_eq!(memory(&state, "tfl.prior"), uniform(5));
        let state = learned(&[[0.0; 3]; 5], [0.0; 3], json!({ "similarity": metric }));
        assert_eq!(memory(&state, "tfl.prior"), uniform(5));
    }
}

#[test]
fn a_sign_flipped_adversary_is_alone_and_gets_the_smallest_prior() {
    let models = [
        [1.0, 0.1, 0.2],
        [0.9, 0.3, 0.1],
        [1.1, 0.0, 0.4],
        [1.0, 0.6, 0.2],
        [-1.0, -0.2, -0.2],
    ];
    for metric in ["dot", "cosine"] {
        let state = learned(&models, [0.0; 3], json!({ "similarity": metric }));
        let graph = adjacency(&state);
        assert!(graph[20..].iter().all(|&edge| edge == 0.0), "{metric}");
        let prior = memory(&state, "tfl.prior");
        assert!(prior.iter().all(|p| *p >= prior[4]));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// The order of members in the roster and in the contribution list does not matter.
    #[test]
    fn graph_and_prior_follow_the_members(
        models in prop::collection::vec(prop::array::uniform3(-3.0..3.0f32), 6),
        order in Just((0..6usize).collect::<Vec<_>>()).prop_shuffle(),
        metric in prop_oneof![Just("dot"), Just("cosine"), Just("l1"), Just("l2")],
    ) {
        let options = || json!({ "similarity": metric });
        let plain = learned(&models, [0.0; 3], options());
        let moved: Vec<[f32; 3]> = order.iter().map(|&from| models[from]).collect();
        let moved = learned(&moved, [0.0; 3], options());
        let (prior, graph) = (memory(&plain, "tfl.prior"), adjacency(&plain));
        for (to, &from) in order.iter().enumerate() {
            prop_assert!((memory(&moved, "tfl.prior")[to] - prior[from]).abs() < 1e-12);
            for (other, &of) in order.iter().enumerate() {
                prop_assert_eq!(adjacency(&moved)[6 * to + other], graph[6 * from + of]);
            }
        }
        // A shuffled contribution list of the same members.
        let strategy = strategy("tfl", 6, json!({ "period": 1, "similarity": metric }));
        let entries = order.iter().map(|&k| reporting(k as u16, &models[k], 1.0)).collect();
        let shuffled = super::round(&*strategy, &genesis(3), &manifest(entries), 1).state;
        prop_assert_eq!(&shuffled.memory, &plain.memory);
        prop_assert_eq!(&shuffled.models, &plain.models);
    }
}
