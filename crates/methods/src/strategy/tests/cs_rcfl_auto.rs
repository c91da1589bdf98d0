//! CS-RCFL: what it learns of whom, and the number of coalitions that it finds.

use serde_json::json;

use super::equipped::strategy_for;
use super::hospital::{FIT, TestHospital, hospitals};
use super::quadratic::{QuadraticFederation, quadratic};
use super::*;
use crate::coalitions::canonical;
use crate::learner::{RobustLosses, Split};
use crate::robust::cross_fit::CrossFit;
use crate::robust::{cross_fit, fit};

fn auto(freeze: u64, rule: Aggregation) -> AutoCsRcfl {
    AutoCsRcfl {
        fit: Fitting::Trained(training()),
        alone: Fitting::Trained(training()),
        warm_up: Some(0),
        folds: 4,
        freeze,
        rule,
        by_rows: false,
    }
}

fn found(hospitals: Vec<TestHospital>, rounds: u64, radius: f64) -> QuadraticFederation {
    let strategy = Box::new(auto(1, Aggregation::Mean));
    let mut federation = QuadraticFederation::new(strategy, hospitals);
    federation.radius = radius.into();
    federation.rounds(rounds)
}

/// Returns whether silos of different kinds are in different coalitions.
fn apart(coalitions: &[u32], kinds: usize) -> bool {
    let silos = 0..coalitions.len();
    let mut pairs = silos
        .clone()
        .flat_map(|i| silos.clone().map(move |j| (i, j)));
    pairs.all(|(i, j)| coalitions[i] != coalitions[j] || i % kinds == j % kinds)
}

#[test]
fn hospitals_of_one_kind_find_each_other() {
    for (radius, kinds, silos, rows) in [
        (0.0, 2, 6, 10),
        (0.1, 2, 6, 10),
        (0.0, 1, 6, 10),
        (0.0, 3, 9, 8),
    ] {
        let federation = found(hospitals(silos, kinds, rows), 2, radius);
        let coalitions = federation.state.models.len();
        let found = &federation.coalitions;
        assert!(
            apart(found, kinds),
            "radius {radius}, {kinds} kinds: {found:?}"
        );
        assert!(
            coalitions < silos,
            "radius {radius}, {kinds} kinds: {found:?}"
        );
    }
}

#[test]
fn hospitals_of_different_kinds_and_many_rows_stay_alone() {
    let federation = found(hospitals(4, 4, 60), 2, 0.0);
    assert_eq!(federation.coalitions, [0, 1, 2, 3]);
}

#[test]
fn models_are_kept_only_while_coalitions_are_measured() {
    let silos = hospitals(4, 2, 10);
    let first = found(silos.clone(), 1, 0.0);
    assert_eq!(first.coalitions, [0, 1, 2, 3]);
    let own = |silo: &TestHospital| fit(&silo.rows, 0.0, &FIT).unwrap().model.weights;
    for (model, silo) in first.state.models.iter().zip(&silos) {
        let rounded: Vec<f32> = own(silo).iter().map(|&w| w as f32).collect();
        assert_eq!(model.values(), rounded);
    }
    assert_eq!(first.state.tables.len(), 1);
    let kept = first.state.memory.candidates("coalitions.candidates", 4);
    assert_eq!(kept.map(<[_]>::len), Some(4));
    let second = found(silos.clone(), 2, 0.0);
    assert!(second.state.memory.is_empty() && second.state.tables.is_empty());
    let expected: Vec<Params> = (0..second.state.models.len() as u32)
        .map(|coalition| {
            let all = first.state.models.iter().zip(&second.coalitions);
            let members = all.filter(|(_, own)| **own == coalition);
            let members: Vec<_> = members.map(|(model, _)| (model, 1.0)).collect();
            crate::strategy::server::means::combined(&Aggregation::Mean, &members).unwrap()
        })
        .collect();
    assert_eq!(second.state.models, expected);
    // From then on as with a given number.
    let third = found(silos, 3, 0.0);
    assert!(!third.strategy.plan(&second.state, 3).cross_evaluate);
    assert_eq!(third.coalitions, second.coalitions);
}

#[test]
fn a_silo_alone_in_its_coalition_keeps_its_exact_fit() {
    let silos = hospitals(4, 4, 60);
    let of = |name: &str, options, rounds| {
        let strategy = strategy_for(4, name, options);
        QuadraticFederation::new(strategy, silos.clone()).rounds(rounds)
    };
    let found = of("cs-rcfl", json!({ "coalitions": "auto" }), 5);
    assert_eq!(found.coalitions, [0, 1, 2, 3]);
    let kept = found.state.memory.counts("coalitions.silos", 4);
    assert_eq!(kept, Some(&[1; 4][..]));
    // That which it makes without any federation, however many rounds there are.
    let alone = of("local", json!({ "fit": "exact" }), 1);
    let near = |a: &Params, b: &Params| {
        let mut pairs = a.values().iter().zip(b.values());
        pairs.all(|(a, b)| (a - b).abs() < 1e-6)
    };
    let mut pairs = found.state.models.iter().zip(&alone.state.models);
    assert!(pairs.all(|(own, alone)| near(own, alone)));
}

#[test]
fn coalitions_can_be_formed_again_and_again_by_any_rule() {
    let strategy = Box::new(auto(0, Aggregation::CoordinateMedian));
    let mut federation = QuadraticFederation::new(strategy, hospitals(4, 2, 10));
    for round in 1..=6 {
        let plan = federation.strategy.plan(&federation.state, round);
        assert_eq!(plan.cross_evaluate, round % 2 == 1);
        federation.round();
        let found = &federation.coalitions;
        match round % 2 {
            1 => assert_eq!(found, &[0, 1, 2, 3], "round {round}"),
            _ => assert!(apart(found, 2), "round {round}: {found:?}"),
        }
    }
}

fn candidates(decision: &Decision) -> &[Vec<u32>] {
    &decision.claim.as_ref().unwrap().candidates
}

fn participant<'a>(
    learner: &'a dyn Learner,
    personal: &'a Params,
    radius: &'a OwnRadius,
) -> Participant<'a> {
    Participant {
        member: 3,
        coalition: 0,
        learner,
        personal,
        radius,
        seed: 9,
    }
}

#[test]
fn own_scores_are_cross_fitted_and_others_are_robust_losses() {
    let silos = hospitals(2, 2, 25);
    let (strategy, none) = (auto(1, Aggregation::Mean), Params::empty());
    let (learner, radius) = (&silos[0], OwnRadius::from(0.2));
    let state = State::genesis(learner.initial(0));
    let plan = strategy.plan(&state, 1);
    let participant = participant(learner, &none, &radius);
    let score = |model: &Params, own: bool| {
        let personal = &none;
        let scored = Scored {
            model,
            personal,
            own,
        };
        strategy
            .score(&state, &plan, 1, participant, scored)
            .unwrap()
    };
    let go_on = &mut |_| std::ops::ControlFlow::Continue(());
    let update = strategy.contribute(&state, &plan, 1, participant, go_on);
    let (_, update) = update.unwrap();
    let in_sample = learner
        .robust_loss(&update.shared, &none, 0.2, Split::Train)
        .unwrap();
    assert_eq!(score(&update.shared, false), in_sample);
    let how = CrossFit {
        radius: 0.2,
        loss: FIT.loss,
        cost: FIT.cost,
        folds: 4,
        seed: 9,
    };
    let exact = cross_fit(&learner.rows, &how, |rows| {
        fit(rows, 0.0, &FIT).map(|fit| fit.model)
    });
    let (own, exact) = (score(&update.shared, true), exact.unwrap());
    assert!(
        (own - exact).abs() < 1e-6 && own > in_sample,
        "{own} {exact} {in_sample}"
    );
}

#[test]
fn contributions_do_not_depend_on_the_member_number() {
    let silos = hospitals(1, 1, 25);
    for strategy in [&auto(1, Aggregation::Mean) as &dyn Strategy, &cs_rcfl(2, 1)] {
        assert_eq!(strategy.names(), Names::Removed);
        let (none, radius) = (Params::empty(), OwnRadius::from(0.2));
        let state = State::genesis(silos[0].initial(0));
        let plan = strategy.plan(&state, 1);
        let part = |member: u16| {
            let mut participant = participant(&silos[0], &none, &radius);
            participant.member = member;
            let go_on = &mut |_| std::ops::ControlFlow::Continue(());
            let update = strategy.contribute(&state, &plan, 1, participant, go_on);
            let (coalition, update) = update.unwrap();
            let scored = Scored {
                model: &update.shared,
                personal: &none,
                own: true,
            };
            let score = strategy
                .score(&state, &plan, 1, participant, scored)
                .unwrap();
            (coalition, update.shared.hash(), score.to_bits())
        };
        assert_eq!(part(0), part(31));
    }
}

/// The manifest with its entries in another order.
fn shuffled(manifest: &LoadedManifest, order: &[usize]) -> LoadedManifest {
    let scores = manifest.scores.as_ref().unwrap();
    let row = |&i: &usize| order.iter().map(|&j| scores.at(i, j)).collect();
    LoadedManifest {
        entries: order
            .iter()
            .map(|&at| manifest.entries[at].clone())
            .collect(),
        scores: Some(Scores::from_rows(&order.iter().map(row).collect::<Vec<_>>()).unwrap()),
    }
}

fn scored(rows: &[Vec<f64>]) -> LoadedManifest {
    let one = |at: usize| entry([at as f32, 1.0], Some(0), 1);
    manifest((0..rows.len()).map(one).collect(), Some(rows))
}

fn square() -> impl proptest::strategy::Strategy<Value = (Vec<Vec<f64>>, Vec<usize>)> {
    use proptest::strategy::Strategy as _;
    (1..=6usize).prop_flat_map(|n| {
        let rows = prop::collection::vec(prop::collection::vec(0.0..1.0f64, n), n);
        (rows, Just((0..n).collect::<Vec<_>>()).prop_shuffle())
    })
}

proptest! {
    #[test]
    fn the_order_of_entries_does_not_change_who_learns_with_whom((rows, order) in square()) {
        let (manifest, state) = (scored(&rows), genesis());
        let mixed = shuffled(&manifest, &order);
        let back = |grouping: &[u32]| {
            let mut straight = vec![0; order.len()];
            for (place, &entry) in order.iter().enumerate() {
                straight[entry] = grouping[place];
            }
            canonical(&straight)
        };
        let given = cs_rcfl(2, 1);
        let one = round(&given, &state, &manifest, 1);
        let other = round(&given, &state, &mixed, 1);
        prop_assert_eq!(&one.assignment, &back(&other.assignment));
        let means = |outcome: &Outcome| -> Vec<Vec<f32>> {
            let mut means: Vec<_> = outcome.state.models.iter().map(weights).collect();
            means.sort_by(|a, b| a[0].total_cmp(&b[0]));
            means
        };
        for (a, b) in means(&one).iter().flatten().zip(means(&other).iter().flatten()) {
            prop_assert!((a - b).abs() < 1e-5);
        }
        let auto = auto(1, Aggregation::Mean);
        let one = auto.decide(&state, &manifest, 1).unwrap();
        let other = auto.decide(&state, &mixed, 1).unwrap();
        let straight: Vec<_> = candidates(&other).iter().map(|grouping| back(grouping)).collect();
        prop_assert_eq!(candidates(&one), &straight[..]);
        auto.check(&state, &manifest, &one, 1).unwrap();
    }
}

#[test]
fn without_a_radius_losses_are_plain_a_common_one_is_neutral() {
    // Proposition 1 of the paper: with absolute loss of linear models, by a constant.
    let silos = hospitals(6, 3, 25);
    let run = |radius: f64| {
        let mut federation = QuadraticFederation::new(Box::new(cs_rcfl(3, 1)), silos.clone());
        federation.radius = radius.into();
        federation.rounds(1)
    };
    let robust = run(0.4);
    let plain = run(0.0);
    assert_eq!(robust.coalitions, plain.coalitions);
    assert_eq!(robust.state.models, plain.state.models);
    // Plain losses, by hand.
    let (state, strategy) = (State::genesis(silos[0].initial(0)), cs_rcfl(3, 1));
    let (none, go_on) = (
        Params::empty(),
        &mut |_| std::ops::ControlFlow::Continue(()),
    );
    let models: Vec<Params> = silos
        .iter()
        .map(|silo| {
            silo.train(&state.models[0], &none, &training(), 0, go_on)
                .unwrap()
                .shared
        })
        .collect();
    let loss = |silo: &TestHospital, model: &Params| {
        silo.evaluate(model, &none, Split::Train).unwrap().values["loss"]
    };
    let rows: Vec<Vec<f64>> = silos
        .iter()
        .map(|silo| models.iter().map(|model| loss(silo, model)).collect())
        .collect();
    let entry = |model: &Params| ModelEntry {
        model: model.clone(),
        coalition: Some(0),
        weight: None,
        member: None,
    };
    let manifest = manifest(models.iter().map(entry).collect(), Some(&rows));
    let by_hand = round(&strategy, &state, &manifest, 1);
    assert_eq!(plain.state.models, by_hand.state.models);
    assert_eq!(plain.coalitions, by_hand.assignment);
}

/// Entries of a measuring round: the number of the local model, and a loss for every grouping.
fn reports(losses: &[(Option<u32>, Vec<f32>)]) -> LoadedManifest {
    let layout = auto(1, Aggregation::Mean).expects(&genesis(), &layout(), None, 2);
    let entry = |(own, losses): &(Option<u32>, Vec<f32>)| {
        let mut values = vec![0.0; MOST + 1];
        values[..losses.len()].copy_from_slice(losses);
        ModelEntry {
            model: Params::from_values(&layout, &values),
            coalition: *own,
            weight: None,
            member: None,
        }
    };
    manifest(losses.iter().map(entry).collect(), None)
}

#[test]
fn the_lead_cannot_choose_other_groupings() {
    let (strategy, state, manifest) = (auto(1, Aggregation::Mean), genesis(), pairs());
    let honest = strategy.decide(&state, &manifest, 1).unwrap();
    let expected: [&[u32]; 4] = [&[0, 0, 0, 0], &[0, 1, 0, 1], &[0, 1, 0, 2], &[0, 1, 2, 3]];
    assert_eq!(candidates(&honest), expected);
    let change = |change: &dyn Fn(&mut Vec<u32>, &mut Claim)| {
        let mut decision = honest.clone();
        change(&mut decision.assignment, decision.claim.as_mut().unwrap());
        strategy.check(&state, &manifest, &decision, 1).unwrap_err()
    };
    let infeasible = |error: Objection| matches!(error, Objection::Infeasible(_));
    assert!(infeasible(change(
        &|assignment, _| *assignment = vec![0, 1, 0, 1]
    )));
    assert!(infeasible(change(&|_, claim| drop(claim.candidates.pop()))));
    assert!(infeasible(change(
        &|_, claim| claim.candidates[1] = vec![1, 0, 1, 0]
    )));
    assert!(infeasible(change(
        &|_, claim| claim.candidates[1] = vec![0, 1, 2, 0]
    )));
    let worse = change(&|_, claim| claim.candidates[1] = vec![0, 0, 1, 1]);
    assert!(matches!(worse, Objection::NotBest { .. }));
    for lie in [honest.claim.as_ref().unwrap().objective + 0.1, f64::NAN] {
        let misstated = |error| matches!(error, Objection::Misstated { .. });
        assert!(misstated(change(&|_, claim| claim.objective = lie)));
        assert!(misstated(change(&|_, claim| claim.lower_bound = lie)));
    }
    let short = claiming(&honest, |claim| claim.candidates.clear());
    assert!(strategy.settle(&state, &manifest, &short, 1).is_err());
    // Where nothing is left to a later round, no candidates are accepted.
    let given = cs_rcfl(2, 1);
    let stuffed = given.decide(&state, &manifest, 1).unwrap();
    let stuffed = claiming(&stuffed, |claim| {
        claim.candidates = candidates(&honest).to_vec();
    });
    assert!(infeasible(
        given.check(&state, &manifest, &stuffed, 1).unwrap_err()
    ));
}

#[test]
fn the_grouping_of_least_loss_is_taken_with_members_absent() {
    let (strategy, start) = (auto(1, Aggregation::Mean), genesis());
    let state = round(&strategy, &start, &pairs(), 1).state;
    // Entry 2 is absent; a silo that was absent before measured with the model of entry 1.
    let reported = [
        (Some(3), vec![4.0, 1.0, 2.0, 3.0]),
        (Some(1), vec![4.0, 2.0, 2.0, 3.0]),
        (Some(0), vec![4.0, 1.0, 9.0, 3.0]),
        (Some(1), vec![4.0, 1.5, 2.0, 3.0]),
    ];
    let manifest = reports(&reported);
    assert!(
        manifest
            .entries
            .iter()
            .all(|entry| strategy.admit(entry, 2).is_ok())
    );
    let decision = strategy.decide(&state, &manifest, 2).unwrap();
    let claim = decision.claim.as_ref().unwrap();
    assert_eq!((claim.objective, claim.lower_bound), (5.5, 5.5));
    let outcome = round(&strategy, &state, &manifest, 2);
    assert_eq!(outcome.assignment, [1, 1, 0, 1]);
    let means: Vec<_> = outcome.state.models.iter().map(weights).collect();
    assert_eq!(means, [[2.0, 0.0], [0.0, 3.0]]);
    let moved = Decision {
        assignment: vec![0, 0, 0, 0],
        ..decision.clone()
    };
    assert!(strategy.check(&state, &manifest, &moved, 2).is_err());
    assert!(strategy.settle(&state, &manifest, &moved, 2).is_err());
    let boast = claiming(&decision, |claim| claim.objective = 1.0);
    assert!(strategy.check(&state, &manifest, &boast, 2).is_err());
    // Of equals silos alone.
    let flat = reports(&[(Some(0), vec![1.0; 4]), (Some(1), vec![1.0; 4])]);
    assert_eq!(round(&strategy, &state, &flat, 2).state.models.len(), 4);
}

#[test]
fn unusable_reports_are_refused() {
    let strategy = auto(1, Aggregation::Mean);
    let state = round(&strategy, &genesis(), &pairs(), 1).state;
    let nameless = reports(&[(None, vec![1.0; 4])]);
    assert!(strategy.admit(&nameless.entries[0], 2).is_err());
    let infinite = reports(&[(Some(0), vec![f32::INFINITY; 4])]);
    assert!(strategy.admit(&infinite.entries[0], 2).is_err());
    for beyond in [nameless, reports(&[(Some(4), vec![1.0; 4])])] {
        let error = strategy.decide(&state, &beyond, 2).unwrap_err();
        assert!(matches!(error, DecideError::Unusable { entry: 0, .. }));
    }
    let empty = manifest(Vec::new(), None);
    assert_eq!(
        strategy.decide(&state, &empty, 2),
        Err(DecideError::NoEntries)
    );
    let manifest = reports(&[(Some(0), vec![1.0; 4])]);
    assert_eq!(
        strategy.decide(&genesis(), &manifest, 2),
        Err(DecideError::NoScores)
    );
}

#[test]
fn a_silo_without_rows_to_hold_out_reports_it() {
    let silo = quadratic([1.0; 5]);
    let (strategy, none, radius) = (auto(1, Aggregation::Mean), Params::empty(), 0.0.into());
    let state = State::genesis(silo.initial(0));
    let plan = strategy.plan(&state, 1);
    let model = &state.models[0];
    let personal = &none;
    let own = true;
    let scored = Scored {
        model,
        personal,
        own,
    };
    let error = strategy.score(&state, &plan, 1, participant(&silo, &none, &radius), scored);
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("the 1 training rows of this silo cannot be divided"),
        "{error}"
    );
}

#[test]
fn a_warm_up_trains_one_model_before_coalitions_are_formed() {
    let warm = AutoCsRcfl {
        warm_up: Some(2),
        ..auto(1, Aggregation::Mean)
    };
    let mut federation = QuadraticFederation::new(Box::new(warm), hospitals(6, 2, 10));
    for round in 1..=5 {
        federation.round();
        let models = federation.state.models.len();
        match round {
            1 | 2 => assert_eq!((models, &federation.coalitions[..]), (1, &[0; 6][..])),
            3 => assert_eq!(models, 6),
            _ => assert!(apart(&federation.coalitions, 2) && models < 6),
        }
        assert!(round > 2 || federation.strategy.keeps_numbers(round));
    }
}

#[test]
fn many_entries_are_tried_up_to_a_number_and_alone() {
    let rows: Vec<Vec<f64>> = (0..40)
        .map(|i| {
            (0..40)
                .map(|j| if i % 2 == j % 2 { 0.1 } else { 1.0 })
                .collect()
        })
        .collect();
    let strategy = auto(1, Aggregation::Mean);
    let (manifest, state) = (scored(&rows), genesis());
    let decision = strategy.decide(&state, &manifest, 1).unwrap();
    let most = |grouping: &Vec<u32>| 1 + *grouping.iter().max().unwrap() as usize;
    let numbers: Vec<usize> = candidates(&decision).iter().map(most).collect();
    assert!(
        numbers.windows(2).all(|pair| pair[0] < pair[1]),
        "{numbers:?}"
    );
    assert!(numbers.len() <= MOST + 1 && numbers[..12] == (1..=12).collect::<Vec<_>>()[..]);
    assert!(numbers.iter().any(|number| (33..40).contains(number)));
    assert_eq!(numbers.last(), Some(&40));
    strategy.check(&state, &manifest, &decision, 1).unwrap();
}
