//! Losses that hold against moved rows: their bounds, fits and radii.

use super::*;

#[test]
fn robust_losses_are_those_of_the_weights_and_outputs() {
    let absolute = learner(
        LearnerKind::Absolute,
        &table(50, 2, false),
        Standardise::Silo,
    );
    let model = run(&absolute, &absolute.initial(0), &task(20, 8, 0.01), 1).shared;
    let plain = absolute
        .robust_loss(&model, &Params::empty(), 0.0, Split::Train)
        .unwrap();
    let train = absolute
        .evaluate(&model, &Params::empty(), Split::Train)
        .unwrap();
    assert!((plain - train.values["loss"]).abs() < 1e-12);
    let squares: f64 = model
        .tensor("weight")
        .unwrap()
        .iter()
        .map(|&w| f64::from(w * w))
        .sum();
    let robust = absolute
        .robust_loss(&model, &Params::empty(), 0.3, Split::Train)
        .unwrap();
    assert!((robust - plain - 0.3 * (1.0 + squares).sqrt()).abs() < 1e-6);

    let logistic = learner(
        LearnerKind::Logistic,
        &table(50, 2, true),
        Standardise::Silo,
    );
    let model = run(&logistic, &logistic.initial(0), &task(20, 8, 0.1), 1).shared;
    let losses: Vec<f64> = [0.0, 0.1, 0.5]
        .map(|radius| {
            logistic
                .robust_loss(&model, &Params::empty(), radius, Split::Train)
                .unwrap()
        })
        .to_vec();
    let train = logistic
        .evaluate(&model, &Params::empty(), Split::Train)
        .unwrap();
    assert!((losses[0] - train.values["loss"]).abs() < 1e-12);
    assert!(losses[0] < losses[1] && losses[1] < losses[2]);
}

#[test]
fn robust_losses_of_a_perceptron_bound_the_loss_of_moved_rows() {
    let none = Params::empty();
    let mlp = learner(LearnerKind::Mlp, &table(60, 2, true), Standardise::Silo);
    let model = run(&mlp, &mlp.initial(0), &task(20, 8, 0.02), 1).shared;
    let losses = [0.0, 0.1, 0.4].map(|radius| {
        mlp.robust_loss(&model, &none, radius, Split::Train)
            .unwrap()
    });
    assert!(losses[0] < losses[1] && losses[1] < losses[2]);
    let plain = mlp.evaluate(&model, &none, Split::Train).unwrap();
    assert!((losses[0] - plain.values["loss"]).abs() < 1e-12);
    // Every row moves by the radius, in one of a few directions.
    let rows = mlp.train.clone();
    for (radius, bound) in [(0.1, losses[1]), (0.4, losses[2])] {
        for step in 0..8 {
            let angle = f64::from(step) * std::f64::consts::FRAC_PI_4;
            let by = [radius * angle.cos(), radius * angle.sin()];
            let moved = rows.map(
                |column, value| value as f32 + by[column] as f32,
                |y| y as f32,
            );
            let outputs = mlp.model.outputs(&model, &moved);
            let mut slopes = vec![0.0; outputs.len()];
            let loss = mlp.loss.mean(&outputs, moved.targets(), &mut slopes);
            assert!(loss <= bound, "{loss} {bound}");
        }
    }
    // A perceptron without hidden layers is linear: two outputs are a logistic model.
    let (w, b) = (vec![0.4f32, -0.7], 0.2f32);
    let logistic = learner(
        LearnerKind::Logistic,
        &table(60, 2, true),
        Standardise::Silo,
    );
    let named = vec![("weight".into(), w.clone()), ("bias".into(), vec![b])];
    let one = logistic.params(|_| (), named);
    let mut flat = learner(LearnerKind::Mlp, &table(60, 2, true), Standardise::Silo);
    flat.model = Arc::new(Mlp::new(2, &[], 2));
    flat.layout = Layout::new(flat.model.tensors()).unwrap();
    let both = vec![0.0, 0.0, w[0], w[1]];
    let named = vec![
        ("layer0.weight".into(), both),
        ("layer0.bias".into(), vec![0.0, b]),
    ];
    let two = flat.params(|_| (), named);
    for radius in [0.0, 0.1, 0.6] {
        let exact = logistic
            .robust_loss(&one, &none, radius, Split::Train)
            .unwrap();
        let bound = flat.robust_loss(&two, &none, radius, Split::Train).unwrap();
        assert!((exact - bound).abs() < 1e-6, "{exact} {bound}");
    }
}

#[test]
fn robust_fits_are_the_least_robust_losses_and_keep_the_scale() {
    let none = Params::empty();
    for (kind, classes) in [
        (LearnerKind::Absolute, false),
        (LearnerKind::Logistic, true),
    ] {
        let learner = learner(kind, &table(60, 4, classes), Standardise::Federation);
        let summary = run(&learner, &learner.initial(0), &Task::Summarise, 0).shared;
        let start = common_scale(&learner.initial(0), &[summary]);
        let update = fitted(
            &learner,
            &start,
            Work::RobustFit {
                radius: 0.2,
                ridge: 0.0,
            },
        )
        .unwrap();
        for buffer in ["scale.mean", "scale.deviation"] {
            assert_eq!(update.shared.tensor(buffer), start.tensor(buffer));
        }
        let loss = |model: &Params| {
            learner
                .robust_loss(model, &none, 0.2, Split::Train)
                .unwrap()
        };
        let least = loss(&update.shared);
        let trained = run(&learner, &start, &task(40, 8, 0.02), 1).shared;
        assert!(least < loss(&trained));
        for at in [0, start.values().len() - 1] {
            let mut values = update.shared.values().to_vec();
            values[at] += 0.01;
            assert!(least <= loss(&Params::from_values(&learner.layout(), &values)) + 1e-6);
        }
        let error = fitted(
            &learner,
            &start,
            Work::RobustFit {
                radius: -1.0,
                ridge: 0.0,
            },
        )
        .unwrap_err();
        assert!(error.to_string().starts_with("the robust fit: "), "{error}");
    }
}

#[test]
fn a_radius_is_chosen_from_the_silos_own_rows() {
    let none = Params::empty();
    for (kind, classes) in [
        (LearnerKind::Absolute, false),
        (LearnerKind::Logistic, true),
    ] {
        let learner = learner(kind, &table(40, 4, classes), Standardise::Silo);
        let start = learner.initial(0);
        let radius = |rule: &Radius| (&learner as &dyn Learner).radius(&start, &none, rule);
        let (rows, config) = learner.to_fit(&start, 0.0).unwrap();
        let search = RadiusSearch {
            radii: vec![0.001, 0.05, 0.5],
            folds: 4,
            seed: 0,
            one_standard_error: false,
        };
        let chosen = choose_radius(&rows, &config, &search).unwrap().radius;
        assert_eq!(radius(&grid(4)), Ok(chosen));
        assert_eq!(radius(&Radius::Fixed(0.3)), Ok(0.3));
        let two = robust::radius::TwoRadii {
            threshold: learner.samples() as usize,
            small: 0.1,
            large: 0.2,
        };
        assert_eq!(radius(&Radius::ByRows(two)), Ok(0.1));
    }
    // Fewer rows than folds.
    let few = learner(
        LearnerKind::Absolute,
        &table(12, 4, false),
        Standardise::Silo,
    );
    let few: &dyn Learner = &few;
    assert!(few.radius(&few.initial(0), &none, &grid(50)).is_ok());
}

#[test]
fn robust_losses_are_measured_on_any_part() {
    let none = Params::empty();
    let learner = learner(
        LearnerKind::Logistic,
        &table(80, 4, true),
        Standardise::Silo,
    );
    let model = run(&learner, &learner.initial(0), &task(10, 8, 0.1), 1).shared;
    let held = learner.holding_out(0, 4, 7).unwrap();
    let loss = |radius| held.loss(&model, &none, radius, Split::Validation);
    let plain = held.evaluate(&model, &none, Split::Validation).unwrap();
    assert!((loss(0.0).unwrap() - plain.values["loss"]).abs() < 1e-12);
    assert!(loss(0.2).unwrap() > loss(0.0).unwrap());
    let train = held.loss(&model, &none, 0.2, Split::Train);
    let robust = held.robust().unwrap();
    assert_eq!(train, robust.robust_loss(&model, &none, 0.2, Split::Train));
    assert_ne!(train, loss(0.2));
}
