//! Studies on every device that this program has on this machine.

use super::*;
use crate::device::tests::every;

const MLP: &str = "[task.table]\ndata = 'diabetes'\nmodel.mlp.hidden = [6]\nstandardise = 'silo'\n";

/// The first silo's model after two epochs, and its test loss.
fn trained(study: &Study) -> (Params, f64) {
    let training = Training {
        epochs: 2,
        batch: 16,
        optimiser: Optimiser::Adam {
            rate: 0.01,
            weight_decay: 0.0,
        },
        decay: None,
    };
    let learner = &study.silos[0].learner;
    let (start, none) = (learner.initial(3), Params::empty());
    let go_on = &mut |_| ControlFlow::Continue(());
    let task = Task::Train(training);
    let update = learner.carry_out(&start, &none, &task, 5, go_on).unwrap();
    let metrics = learner.evaluate(&update.shared, &none, Split::Test);
    (update.shared, metrics.unwrap().values["loss"])
}

#[test]
fn a_device_changes_the_last_bits_of_a_model_and_nothing_else() {
    let study = || config(MLP).study(None, None, 3).unwrap();
    let (plain, (model, loss)) = (study(), trained(&study()));
    for device in every() {
        let moved = study().on(&device);
        for (own, other) in moved.silos.iter().zip(&plain.silos) {
            assert_eq!((&own.name, own.rows), (&other.name, other.rows));
            assert_eq!(own.learner.layout(), other.learner.layout());
            assert_eq!(own.learner.initial(3), other.learner.initial(3));
        }
        let (found, found_loss) = trained(&moved);
        assert_eq!(found, trained(&moved).0, "{}", device.name());
        let close = |a: f64, b: f64| (a - b).abs() < 1e-4;
        let name = device.name();
        assert!(close(found_loss, loss), "{name}: {found_loss} {loss}");
        for (a, b) in found.values().iter().zip(model.values()) {
            assert!(close((*a).into(), (*b).into()), "{}", device.name());
        }
        // The model of all rows together is trained there, too.
        let pools = [&moved, &plain].map(|study| study.pooled.as_ref().unwrap()(&[0, 1]));
        assert_eq!(pools[0].samples(), pools[1].samples());
        assert_eq!(pools[0].layout(), pools[1].layout());
    }
}

#[test]
fn silos_that_rota_does_not_train_stay_as_they_are() {
    let study = config("[task.constant]\nparameters = 3")
        .study(Some(2), None, 0)
        .unwrap();
    let learner = study.silos[0].learner.clone();
    for device in every() {
        assert!(Arc::ptr_eq(
            &study.clone().on(&device).silos[0].learner,
            &learner
        ));
    }
}
