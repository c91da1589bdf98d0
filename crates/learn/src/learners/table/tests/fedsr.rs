//! FedSR on rows.

use methods::strategy::summary_layout;
use serde_json::json;

use super::fedcg::strategy;
use super::*;

#[test]
fn stochastic_representations_learn_and_class_ones_stay_home() {
    for standardise in [Standardise::Silo, Standardise::Federation] {
        let table = table(300, 1, true);
        let bare = Arc::new(learner(LearnerKind::Mlp, &table, standardise));
        let by = strategy("fedsr", json!({})).equip(bare.clone()).unwrap();
        let layout = |learner: &dyn Learner| summary_layout(learner);
        assert_eq!(layout(&*by), layout(&*bare));
        let (mut start, own) = (by.initial(1), by.initial_personal(1));
        if let Some(summary) = layout(&*by) {
            let go_on = &mut |_| ControlFlow::Continue(());
            let summed = by
                .carry_out(&start, &own, &Task::Summarise, 0, go_on)
                .unwrap();
            assert_eq!(summed.shared.layout(), &summary);
            start = common_scale(&start, &[summed.shared]);
        }
        let go_on = &mut |_| ControlFlow::Continue(());
        let update = by
            .carry_out(&start, &own, &task(40, 16, 0.02), 1, go_on)
            .unwrap();
        let again = by
            .carry_out(&start, &own, &task(40, 16, 0.02), 1, go_on)
            .unwrap();
        assert_eq!(update.shared, again.shared, "the same bits");
        assert_eq!(update.shared.layout(), &by.layout());
        assert_eq!(update.shared.tensor("class.mean"), None);
        assert_eq!(
            update.shared.tensor("scale.mean"),
            start.tensor("scale.mean")
        );
        assert_eq!(update.personal.layout(), own.layout());
        for name in ["class.mean", "class.spread"] {
            assert_ne!(update.personal.tensor(name), own.tensor(name));
        }
        let metrics = by
            .evaluate(&update.shared, &update.personal, Split::Test)
            .unwrap();
        assert!(metrics.values["accuracy"] > 0.9, "{metrics:?}");
        assert!(metrics.values["roc-auc"] > 0.95, "{metrics:?}");
        let loss = |radius| by.loss(&update.shared, &update.personal, radius, Split::Train);
        assert!(loss(0.0).unwrap() < 0.5 && loss(0.1).is_err());
    }
}

#[test]
fn the_length_of_representations_has_a_price() {
    let table = table(200, 1, true);
    let weights = |length: f64| {
        let bare = Arc::new(learner(LearnerKind::Mlp, &table, Standardise::Silo));
        let by = strategy("fedsr", json!({ "length": length }))
            .equip(bare)
            .unwrap();
        let go_on = &mut |_| ControlFlow::Continue(());
        let (start, own) = (by.initial(1), by.initial_personal(1));
        let end = by
            .carry_out(&start, &own, &task(20, 16, 0.02), 1, go_on)
            .unwrap()
            .shared;
        // Means of the representations are the first half of the first layer.
        let encoder = &end.tensor("layer0.weight").unwrap()[..32];
        encoder.iter().map(|w| w * w).sum::<f32>()
    };
    assert!(weights(1.0) < 0.5 * weights(0.0));
}

#[test]
fn a_model_without_a_hidden_layer_or_classes_is_refused() {
    for (kind, classes) in [(LearnerKind::Logistic, true), (LearnerKind::Squared, false)] {
        let bare = learner(kind, &table(60, 1, classes), Standardise::Silo);
        let refused = strategy("fedsr", json!({}))
            .equip(Arc::new(bare))
            .err()
            .unwrap();
        assert!(
            refused.to_string().contains("at least one hidden layer"),
            "{refused}"
        );
    }
}
