//! Robust local models.

use super::hospital::{FIT, Hospital, hospitals};
use super::quadratic::{Federation, Quadratic};
use super::*;
use crate::learner::Learner;
use crate::robust::fit;

fn built(ridge: f64) -> Box<dyn Strategy> {
    let method = Method::RobustLocal(RobustLocal { ridge });
    build(&StrategyConfig::new(method, training()), 4).unwrap()
}

#[test]
fn everybody_keeps_its_own_robust_fit() {
    for (radius, ridge) in [(0.0, 0.0), (0.3, 0.0), (0.3, 0.5)] {
        let silos = hospitals(3, 2, 30);
        let mut federation = Federation::new(built(ridge), silos.clone());
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
        let mut federation = Federation::new(built(0.0), silos.clone());
        federation.radius = radius.into();
        federation.rounds(1).state.models
    };
    let (robust, plain) = (alone(0.5), alone(0.0));
    for ((silo, robust), plain) in silos.iter().zip(&robust).zip(&plain) {
        let loss = |model| silo.robust_loss(model, &Params::empty(), 0.5).unwrap();
        assert!(loss(robust) < loss(plain));
        let size = |model: &Params| Hospital::linear(model).weights.iter().map(|w| w * w).sum();
        let (small, large): (f64, f64) = (size(robust), size(plain));
        assert!(small < large);
    }
}

/// Cannot fit.
struct Trainer(Quadratic);

impl Learner for Trainer {
    fn layout(&self) -> Arc<Layout> {
        self.0.layout()
    }

    fn initial(&self, seed: u64) -> Params {
        self.0.initial(seed)
    }

    fn train(
        &self,
        start: &Params,
        personal: &Params,
        task: &Task,
        seed: u64,
        progress: &mut dyn FnMut(crate::Progress) -> std::ops::ControlFlow<()>,
    ) -> Result<crate::Update, LearnError> {
        self.0.train(start, personal, task, seed, progress)
    }

    fn evaluate(
        &self,
        model: &Params,
        own: &Params,
        split: crate::Split,
    ) -> Result<crate::Metrics, LearnError> {
        self.0.evaluate(model, own, split)
    }

    fn robust_loss(&self, model: &Params, own: &Params, radius: f64) -> Result<f64, LearnError> {
        self.0.robust_loss(model, own, radius)
    }

    fn samples(&self) -> u64 {
        self.0.samples()
    }
}

#[test]
fn a_learner_without_robust_fits_says_so() {
    let silo = Trainer(Quadratic {
        curvature: [1.0; 5],
        centre: [1.0; 5],
    });
    let (strategy, radius, personal) = (built(0.0), OwnRadius::default(), Params::empty());
    let state = State::genesis(silo.initial(0));
    let plan = strategy.plan(&state, 1);
    let place = Place {
        member: 0,
        coalition: 0,
        learner: &silo,
        personal: &personal,
    };
    let site = Site {
        place,
        radius: &radius,
        seed: 0,
    };
    let go_on = &mut |_| std::ops::ControlFlow::Continue(());
    let error = strategy.contribute(&state, &plan, 1, site, go_on);
    assert!(matches!(error, Err(LearnError::Unsupported(_))));
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
    let error = searched.get(&silo, &model, &none).unwrap_err();
    assert!(matches!(error, LearnError::Unsupported(_)));
}
