//! FedCG with domains that silos give.

use std::ops::ControlFlow;

use super::*;
use crate::learner::{LearnError, Update};

/// Two domains with different optima, each silo in the one that it gives.
fn options(given: bool) -> Value {
    json!({
        "domains": 2, "given": given, "adjacency": "identity", "sigma": "identity",
        "projection": "none", "student-rate": 0.2,
    })
}

fn saying(given: bool, domains: &[Option<u32>]) -> QuadraticFederation {
    let silos = domains.iter().copied().zip(silos());
    let silos = silos.map(|(domain, silo)| silo.in_domain(domain)).collect();
    QuadraticFederation::new(strategy("fedcg", options(given)), silos)
}

fn train(learner: &dyn Learner, start: &Params) -> Result<Update, LearnError> {
    let training = serde_json::from_value(single()).unwrap();
    let go_on = &mut |_| ControlFlow::Continue(());
    learner.train(start, &Params::empty(), &training, 1, go_on)
}

fn branches(model: &Params) -> [[f32; 2]; 2] {
    [0, 1].map(|domain| {
        let value = |part| tensor(model, &format!("fedcg.domain{domain}.layer1.{part}"))[0];
        [value("bias"), value("weight")]
    })
}

/// Returns how far what a silo trains on is from where it wants to be, in the layer with branches.
fn astray(model: &Params, domain: usize, silo: &QuadraticLearner) -> f64 {
    let lambda = tensor(model, "fedcg.graph.layer1.lambda")[0];
    let branch = branches(model)[domain];
    let of = |part: usize, name: &str| {
        let value = f64::from(tensor(model, name)[0] + lambda * branch[part]);
        (value - silo.centre()[2 + part]).abs()
    };
    of(0, "layer1.bias").max(of(1, "layer1.weight"))
}

#[test]
fn silos_train_the_branch_of_their_own_domain_alone() {
    let federation = saying(true, &[Some(0), Some(1)]);
    let start = &federation.state.models[0];
    for (own, learner) in federation.learners.iter().enumerate() {
        assert_eq!(learner.domain(), Some(own as u32), "also when equipped");
        let update = train(&**learner, start).unwrap();
        let (before, after) = (branches(start), branches(&update.shared));
        for domain in 0..2 {
            let name = format!("domain-{domain}");
            let (moved, rows) = (
                before[domain] != after[domain],
                update.metrics.values[&name],
            );
            assert_eq!((moved, rows), (domain == own, f64::from(u8::from(moved))));
        }
    }
}

#[test]
fn the_report_counts_the_silos_of_every_given_domain() {
    let federation = saying(true, &[Some(1), Some(1)]).rounds(1);
    let memory = &federation.state.memory;
    assert_eq!(memory.counts("fedcg.silos", 2), Some([0, 2].as_slice()));
    let rows = federation.learners.iter().map(|silo| silo.samples()).sum();
    assert_eq!(memory.counts("fedcg.rows", 2), Some([0, rows].as_slice()));
}

#[test]
fn given_domains_separate_what_an_unsure_teacher_leaves_whole() {
    let wanted = silos();
    let apart = |federation: QuadraticFederation, domains: [usize; 2]| -> f64 {
        let model = &federation.rounds(60).state.models[0];
        let each = domains.into_iter().zip(&wanted);
        let each = each.map(|(domain, silo)| astray(model, domain, silo));
        each.fold(0.0, f64::max)
    };
    let given = apart(saying(true, &[Some(0), Some(1)]), [0, 1]);
    let swapped = apart(saying(true, &[Some(1), Some(0)]), [1, 0]);
    assert!(given < 1e-3 && swapped < 1e-3, "{given} {swapped}");
    // A silo's row carries no information, so the teacher has both in one domain, whichever it is.
    for domain in 0..2 {
        let found = apart(saying(false, &[Some(0), Some(1)]), [domain; 2]);
        assert!(found > 0.5, "{found}");
    }
}

#[test]
fn the_student_learns_the_given_domain_and_there_is_no_teacher() {
    for domain in 0..2 {
        let federation = saying(true, &[Some(domain)]).rounds(12);
        let model = &federation.state.models[0];
        assert_eq!(model.tensor("fedcg.teacher.votes"), None);
        let votes = tensor(model, "fedcg.student.votes");
        for (class, vote) in (0..).zip(votes) {
            let wanted = f32::from(u8::from(class == domain));
            assert!((vote - wanted).abs() < 1e-3, "{votes:?}");
        }
        assert_eq!(federation.state.memory.count("fedcg.rounds"), Some(12));
    }
}

#[test]
fn silos_of_no_or_unknown_domain_are_refused_before_round_one() {
    let take_part = |given, domain| {
        let silo = silos().remove(0).in_domain(domain);
        let strategy = strategy("fedcg", options(given));
        equip(&*strategy, Arc::new(silo), &OwnRadius::default()).map(drop)
    };
    let none = take_part(true, None).unwrap_err();
    assert_eq!(none, EquipError::NoDomain);
    assert!(none.to_string().contains("write `domains`"));
    let unknown = EquipError::Domain {
        domain: 2,
        domains: 2,
    };
    assert_eq!(take_part(true, Some(2)), Err(unknown.clone()));
    assert!(unknown.to_string().contains("domain 2"), "{unknown}");
    // No domain is asked for where domains are found.
    assert_eq!(take_part(false, None), Ok(()));
    let found = saying(false, &[None, Some(2)]).rounds(1);
    assert_eq!(found.state.memory.count("fedcg.rounds"), Some(1));
}

#[test]
fn what_is_not_given_is_not_written() {
    for given in [false, true] {
        let written = json!({ "name": "fedcg", "training": single(), "given": given });
        let config: StrategyConfig = serde_json::from_value(written).unwrap();
        let text = serde_json::to_string(&config).unwrap();
        assert_eq!(text.contains("given"), given, "{text}");
        let read: StrategyConfig = serde_json::from_str(&text).unwrap();
        assert_eq!(read, config);
    }
}
