//! Refused input, and rules read from files.

use super::*;

fn refused(rule: &Aggregation, models: &[(&Params, f64)]) -> AggregationError {
    rule.combine(models, ReferenceModels::default())
        .unwrap_err()
}

#[test]
fn unusable_models_are_refused_by_every_rule() {
    let rules = [vec![Aggregation::Mean], robust(1, 5)].concat();
    let five = models(&[[1.0, 2.0]; 5]);
    let (other, nan, infinite) = (
        model(&[1.0]),
        model(&[1.0, f32::NAN]),
        model(&[f32::INFINITY, 0.0]),
    );
    for rule in rules {
        assert_eq!(refused(&rule, &[]), AggregationError::Empty);
        let mut with = equally(&five);
        with[3] = (&other, 1.0);
        assert_eq!(refused(&rule, &with), AggregationError::Layout);
        for bad in [&nan, &infinite] {
            with[3] = (bad, 1.0);
            assert_eq!(
                refused(&rule, &with),
                AggregationError::NotFinite { model: 3 }
            );
        }
        for weights in [
            [0.0; 5],
            [2.0, -1.0, 1.0, 1.0, 1.0],
            [f64::NAN; 5],
            [f64::INFINITY; 5],
            [1e100; 5],
            [1e-101; 5],
        ] {
            let with = weighted(&five, &weights);
            assert_eq!(refused(&rule, &with), AggregationError::Weights);
        }
    }
}

#[test]
fn too_few_models_are_refused() {
    let seven = models(&[[0.0]; 7]);
    let too_few = |rule, byzantine, needed, got| AggregationError::TooFew {
        rule,
        byzantine,
        needed,
        got,
    };
    let krum = Aggregation::Krum { byzantine: 2 };
    assert_eq!(krum.least_models(), 7);
    combine(&krum, &seven);
    assert_eq!(
        refused(&krum, &equally(&seven[1..])),
        too_few("krum", 2, 7, 6)
    );
    // A model without weight is absent.
    let mut weights = [1.0; 7];
    weights[4] = 0.0;
    assert_eq!(
        refused(&krum, &weighted(&seven, &weights)),
        too_few("krum", 2, 7, 6)
    );

    let mixing = mixed(3, Aggregation::CoordinateMedian);
    assert_eq!(mixing.least_models(), 7);
    combine(&mixing, &seven);
    let rule = "nearest-neighbour-mixing";
    assert_eq!(
        refused(&mixing, &equally(&seven[1..])),
        too_few(rule, 3, 7, 6)
    );
    let both = mixed(
        1,
        Aggregation::MultiKrum {
            byzantine: 3,
            select: None,
        },
    );
    assert_eq!(both.least_models(), 9);
    assert_eq!(
        refused(&both, &equally(&seven)),
        too_few("multi-krum", 3, 9, 7)
    );

    let huge = Aggregation::Krum {
        byzantine: usize::MAX,
    };
    assert_eq!(
        refused(&huge, &equally(&seven)),
        too_few("krum", usize::MAX, usize::MAX, 7)
    );
    assert_eq!(Aggregation::Mean.least_models(), 1);
}

#[test]
fn options_out_of_range_are_refused() {
    let geometric = |smoothing, tolerance, iterations| Aggregation::GeometricMedian {
        smoothing,
        tolerance,
        iterations,
    };
    let clipping = |radius, iterations| Aggregation::CentredClipping {
        radius: Some(radius),
        iterations,
        start: ClippingStart::Start,
    };
    let bad = [
        (Aggregation::TrimmedMean { share: 0.5 }, "share"),
        (Aggregation::TrimmedMean { share: -0.1 }, "share"),
        (Aggregation::TrimmedMean { share: f64::NAN }, "share"),
        (geometric(0.0, 0.1, 1), "smoothing"),
        (geometric(1.1, 0.1, 1), "smoothing"),
        (geometric(0.1, -0.1, 1), "tolerance"),
        (geometric(0.1, f64::INFINITY, 1), "tolerance"),
        (geometric(0.1, 0.1, 0), "iterations"),
        (geometric(0.1, 0.1, 1001), "iterations"),
        (
            Aggregation::MultiKrum {
                byzantine: 0,
                select: Some(0),
            },
            "select",
        ),
        (clipping(0.0, 1), "radius"),
        (clipping(f64::INFINITY, 1), "radius"),
        (clipping(1.0, 0), "iterations"),
        (mixed(1, mixed(1, Aggregation::Mean)), "then"),
        (mixed(1, Aggregation::TrimmedMean { share: 0.7 }), "share"),
    ];
    let five = models(&[[0.0]; 5]);
    for (rule, bad) in bad {
        let error = refused(&rule, &equally(&five));
        assert!(
            matches!(error, AggregationError::Option { option, .. } if option == bad),
            "{error}"
        );
    }
    let error = Aggregation::TrimmedMean { share: 0.5 }
        .validate()
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "option share of trimmed-mean must be at least 0 and below 0.5, not 0.5"
    );
}

#[test]
fn missing_and_invalid_references_are_refused() {
    let five = models(&[[0.5, 0.5]; 5]);
    let (start, trusted, other, bad) = (
        model(&[0.0, 0.0]),
        model(&[1.0, 1.0]),
        model(&[0.0]),
        model(&[0.0, f32::NAN]),
    );
    let clipping = Aggregation::CentredClipping {
        radius: None,
        iterations: 1,
        start: ClippingStart::Start,
    };
    let combined = |rule: &Aggregation, start, trusted| {
        rule.combine(&equally(&five), ReferenceModels { start, trusted })
    };
    let missing = |rule, which| AggregationError::NoReference { rule, which };
    let trust = Aggregation::TrustWeighted;
    assert_eq!(
        combined(&trust, None, Some(&trusted)),
        Err(missing("trust-weighted", "start"))
    );
    assert_eq!(
        combined(&trust, Some(&start), None),
        Err(missing("trust-weighted", "trusted"))
    );
    assert_eq!(
        combined(&clipping, None, None),
        Err(missing("centred-clipping", "start"))
    );
    assert_eq!(
        combined(&trust, Some(&start), Some(&other)),
        Err(AggregationError::Layout)
    );
    let bad_reference = |which| AggregationError::BadReference { which };
    assert_eq!(
        combined(&trust, Some(&start), Some(&bad)),
        Err(bad_reference("trusted"))
    );
    assert_eq!(
        combined(&clipping, Some(&bad), None),
        Err(bad_reference("start"))
    );
    combined(&trust, Some(&start), Some(&trusted)).unwrap();
    combined(&clipping, Some(&start), None).unwrap();
}

#[test]
fn rules_are_read_and_written_by_name() {
    let all = [
        vec![Aggregation::Mean, Aggregation::TrustWeighted],
        robust(2, 9),
        vec![Aggregation::CentredClipping {
            radius: Some(2.5),
            iterations: 1,
            start: ClippingStart::Start,
        }],
    ];
    for rule in all.concat() {
        rule.validate().unwrap();
        let text = serde_json::to_string(&rule).unwrap();
        assert!(
            text.starts_with(&format!("{{\"name\":\"{}\"", rule.name())),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<Aggregation>(&text).unwrap(), rule);
    }
    let text = r#"{"name": "nearest-neighbour-mixing", "then": {"name": "krum"}}"#;
    assert_eq!(
        serde_json::from_str::<Aggregation>(text).unwrap(),
        mixed(1, Aggregation::Krum { byzantine: 1 })
    );
    assert!(serde_json::from_str::<Aggregation>(r#"{"name": "krum", "share": 0.1}"#).is_err());
}
