//! Robust local models.

use super::hospital::{FIT, TestHospital, hospitals};
use super::quadratic::{QuadraticFederation, quadratic};
use super::*;
use crate::learner::{Capability, Learner, MissingCapability, RobustLosses, Split};
use crate::robust::fit;

fn built(ridge: f64) -> Box<dyn Strategy> {
    let method = Method::RobustLocal(RobustLocal { ridge });
    build(&StrategyConfig::new(method, training()), 4).unwrap()
}

#[test]
fn every_silo_keeps_its_own_robust_fit() {
    for (radius, ridge) in [(0.0, 0.0), (0.3, 0.0), (0.3, 0.5)] {
        let silos = hospitals(3, 2, 30);
        let mut federation = QuadraticFederation::new(built(ridge), silos.clone());
        federation.radius = radius.into();
        for _ in 0..2 {
            federation.round();
            assert_eq!(federation.coalitions, [0, 1, 2]);
            for (silo, model) in silos.iter().zip(&federation.state.models) {
                let config = crate::robust::FitConfig { ridge, ..FIT };
                let exact = fit(&silo.rows, radius, &config).unwrap().model;
                let rounded: Vec<f32> = exact.weights.iter().map(|&w| w as f32).collect();
                assert_eq!(model.values(), rounded);
            }
        }
    }
}

#[test]
fn no_model_has_less_robust_loss_on_the_own_rows() {
    let silos = hospitals(3, 2, 30);
    let alone = |radius: f64| {
        let mut federation = QuadraticFederation::new(built(0.0), silos.clone());
        federation.radius = radius.into();
        federation.rounds(1).state.models
    };
    let (robust, plain) = (alone(0.5), alone(0.0));
    for ((silo, robust), plain) in silos.iter().zip(&robust).zip(&plain) {
        let loss = |model| {
            silo.robust_loss(model, &Params::empty(), 0.5, Split::Train)
                .unwrap()
        };
        assert!(loss(robust) < loss(plain));
        let size = |model: &Params| {
            TestHospital::linear(model)
                .weights
                .iter()
                .map(|w| w * w)
                .sum()
        };
        let (small, large): (f64, f64) = (size(robust), size(plain));
        assert!(small < large);
    }
}

#[test]
fn a_learner_without_robust_fits_is_refused_when_it_is_equipped() {
    let silo = quadratic([1.0; 5]).without(&[Capability::RobustFits]);
    let error = built(0.0).equip(Arc::new(silo)).map(drop).unwrap_err();
    let missing = MissingCapability(Capability::RobustFits);
    assert_eq!(error, EquipError::Missing(missing));
}

#[test]
fn a_radius_is_worked_out_once_at_the_silo() {
    let silo = hospitals(1, 1, 20).remove(0);
    let (none, model) = (Params::empty(), silo.initial(0));
    let by_rows = |threshold: usize| {
        let two = crate::robust::radius::TwoRadii {
            threshold,
            small: 0.1,
            large: 0.4,
        };
        OwnRadius::from(crate::robust::Radius::ByRows(two))
    };
    assert_eq!(by_rows(20).get(&silo, &model, &none), Ok(0.1));
    let large = by_rows(21);
    let shared = large.clone();
    assert_eq!(large.get(&silo, &model, &none), Ok(0.4));
    // Another learner is not asked.
    let other = hospitals(1, 1, 30).remove(0);
    assert_eq!(shared.get(&other, &model, &none), Ok(0.4));
    let grid = crate::robust::RadiusGrid {
        folds: 5,
        grid: vec![0.1],
        one_standard_error: false,
    };
    let searched = OwnRadius::from(crate::robust::Radius::CrossValidated(grid));
    assert_eq!(searched.get(&silo, &model, &none), Ok(0.1));
    let trainer = quadratic([1.0; 5]).without(&[Capability::RobustFits]);
    let missing = MissingCapability(Capability::RobustFits);
    assert_eq!(searched.suits(&trainer), Err(missing));
    assert_eq!(OwnRadius::from(0.1).suits(&trainer), Ok(()));
}
