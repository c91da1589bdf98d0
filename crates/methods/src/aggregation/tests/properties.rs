//! Properties of all rules.

use proptest::prelude::*;

use super::*;

fn rules() -> Vec<Aggregation> {
    [vec![Aggregation::Mean], robust(2, 9)].concat()
}

proptest! {
    #[test]
    fn equal_models_give_themselves_bit_for_bit(
        value in any::<f32>().prop_filter("finite", |value| value.is_finite()),
        weights in prop::collection::vec(1..1_000_000u32, 7..12),
    ) {
        let one = model(&[value, -0.0, f32::MIN_POSITIVE / 8.0, f32::MAX]);
        let exact: Vec<_> = weights.iter().map(|&weight| (&one, f64::from(weight))).collect();
        let equal: Vec<_> = weights.iter().map(|_| (&one, 0.1)).collect();
        for rule in rules() {
            for models in [&exact, &equal] {
                let combined = rule.combine(models, ReferenceModels::default()).unwrap();
                prop_assert_eq!(bits(&combined), bits(&one), "{}", rule.name());
            }
        }
    }

    #[test]
    fn the_order_of_models_matters_at_most_to_the_last_bits(
        rows in prop::collection::vec(prop::collection::vec(-1e3f32..1e3, 37), 9),
        order in Just((0..9usize).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let all = models(&rows);
        let shuffled: Vec<Params> = order.iter().map(|&row| all[row].clone()).collect();
        for rule in rules() {
            let (a, b) = (combine(&rule, &all), combine(&rule, &shuffled));
            prop_assert!(distance(a.values(), b.values()) < 0.05, "{}", rule.name());
            let exact = matches!(
                rule,
                Aggregation::CoordinateMedian
                    | Aggregation::TrimmedMean { .. }
                    | Aggregation::Krum { .. }
            );
            if exact {
                prop_assert_eq!(bits(&a), bits(&b), "{}", rule.name());
            }
        }
    }

    #[test]
    fn integer_weights_equal_copies_of_models(
        rows in prop::collection::vec(prop::collection::vec(-1e3f32..1e3, 6), 4..8),
        weights in prop::collection::vec(0..4u8, 8),
    ) {
        let weights = &weights[..rows.len()];
        prop_assume!(weights.iter().any(|weight| *weight > 0));
        let all = models(&rows);
        let exact: Vec<f64> = weights.iter().map(|&weight| weight.into()).collect();
        let by_weight = weighted(&all, &exact);
        let copies: Vec<Params> = all
            .iter()
            .zip(weights)
            .flat_map(|(model, &weight)| vec![model.clone(); weight.into()])
            .collect();
        for rule in ["mean", "coordinate-median", "geometric-median", "centred-clipping"].map(named) {
            let combined = rule.combine(&by_weight, ReferenceModels::default()).unwrap();
            let expected = combine(&rule, &copies);
            prop_assert!(distance(combined.values(), expected.values()) < 0.5, "{}", rule.name());
            // Only the ratio of the weights matters.
            let doubled: Vec<f64> = exact.iter().map(|weight| 2.0 * weight).collect();
            let doubled = rule.combine(&weighted(&all, &doubled), ReferenceModels::default());
            prop_assert_eq!(doubled.unwrap(), combined);
        }
    }

    /// Everything twice as large gives twice the result: no rule has a scale of its own.
    #[test]
    fn rules_scale_with_their_models(
        rows in prop::collection::vec(prop::collection::vec(-1e3f32..1e3, 6), 9),
        power in -20i32..20,
    ) {
        let factor = libm::exp2f(power as f32);
        let scaled: Vec<Vec<f32>> =
            rows.iter().map(|row| row.iter().map(|value| value * factor).collect()).collect();
        for rule in rules() {
            let plain = combine(&rule, &models(&rows));
            let expected: Vec<f32> = plain.values().iter().map(|value| value * factor).collect();
            let combined = combine(&rule, &models(&scaled));
            prop_assert_eq!(combined.values(), expected.as_slice(), "{}", rule.name());
        }
    }

    #[test]
    fn one_model_gives_itself(
        row in prop::collection::vec(-1e30f32..1e30, 0..70),
        weight in 0.1..1e6,
    ) {
        let one = model(&row);
        let single =
            ["mean", "coordinate-median", "trimmed-mean", "geometric-median", "centred-clipping"];
        for rule in single.into_iter().map(named).flat_map(|rule| [rule.clone(), mixed(0, rule)]) {
            let combined = rule.combine(&[(&one, weight)], ReferenceModels::default()).unwrap();
            prop_assert_eq!(bits(&combined), bits(&one), "{}", rule.name());
        }
    }
}
