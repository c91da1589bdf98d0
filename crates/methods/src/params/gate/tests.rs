#![allow(clippy::unwrap_used)]

use super::*;
use crate::TensorSpec;
use crate::params::Reading;

const COUNT: usize = 70;

fn gate() -> Gate {
    let layout = Layout::new(vec![
        TensorSpec::new("bias", [2], Role::Bias),
        TensorSpec::new("scale", [3], Role::Buffer),
        TensorSpec::new("weight", [5, 13], Role::Weight),
    ])
    .unwrap();
    Gate {
        layout,
        norm: f64::INFINITY,
    }
}

fn document(values: &[f32; COUNT]) -> Vec<u8> {
    Params::from_values(&gate().layout, values)
        .document()
        .to_vec()
}

#[test]
fn an_honest_model_passes_aligned_or_not() {
    let mut values = [0.5f32; COUNT];
    values[69] = -3.0;
    let honest = document(&values);
    let admitted = gate().admit(honest.clone().into()).unwrap();
    assert_eq!(admitted.values(), values);
    assert_eq!(admitted.hash(), *blake3::hash(&honest).as_bytes());
    // The same bytes at every offset from an aligned address.
    for offset in 0..4 {
        let mut padded = vec![0u8; offset];
        padded.extend_from_slice(&honest);
        let shifted = Bytes::from(padded).slice(offset..);
        assert_eq!(gate().admit(shifted).unwrap(), admitted);
    }
}

#[test]
fn an_empty_model_passes() {
    let empty = Params::empty();
    let gate = Gate {
        layout: empty.layout().clone(),
        norm: 0.0,
    };
    assert_eq!(gate.admit(empty.document()).unwrap(), empty);
}

#[test]
fn every_changed_header_byte_is_refused() {
    let honest = document(&[1.0; COUNT]);
    for at in 0..gate().layout.header().len() {
        let mut forged = honest.clone();
        forged[at] ^= 1;
        assert!(
            matches!(gate().admit(forged.into()), Err(GateError::Header(_))),
            "byte {at}"
        );
    }
}

#[test]
fn every_other_size_is_refused() {
    let honest = document(&[1.0; COUNT]);
    let expected = honest.len();
    for got in [
        0,
        1,
        7,
        8,
        expected - 4,
        expected - 1,
        expected + 1,
        expected + 4,
    ] {
        let mut resized = honest.clone();
        resized.resize(got, 0);
        assert_eq!(
            gate().admit(resized.into()),
            Err(GateError::Size { expected, got })
        );
    }
}

#[test]
fn a_value_that_is_not_finite_is_refused_wherever_it_stands() {
    let signalling = f32::from_bits(0x7f80_0001);
    for bad in [f32::NAN, signalling, f32::INFINITY, f32::NEG_INFINITY] {
        for at in 0..COUNT {
            let mut values = [f32::MAX; COUNT];
            values[at] = bad;
            let tensor = ["bias", "scale", "weight"][usize::from(at > 1) + usize::from(at > 4)];
            let expected = Err(GateError::NotFinite {
                tensor: tensor.into(),
            });
            assert_eq!(gate().admit(document(&values).into()), expected);
        }
    }
}

#[test]
fn the_norm_is_of_weights_and_biases() {
    let mut values = [0f32; COUNT];
    (values[0], values[3], values[20]) = (3.0, 1e30, 4.0);
    let at = |norm: f64| Gate { norm, ..gate() }.admit(document(&values).into());
    assert!(at(5.0).is_ok());
    assert_eq!(
        at(4.9),
        Err(GateError::Norm {
            norm: 5.0,
            bound: 4.9
        })
    );
    // A bound that is no number lets nothing in by accident.
    assert!(at(f64::NAN).is_err());
}

/// A gate that knows the largest value from a reading judges as one that looks at the values.
#[test]
fn the_verdict_is_the_same_where_the_bytes_were_read_before() {
    const VALUES: usize = 20_000;
    let weight = TensorSpec::new("weight", [VALUES - 10], Role::Weight);
    let buffer = TensorSpec::new("zbuffer", [10], Role::Buffer);
    let layout = Layout::new(vec![weight, buffer]).unwrap();
    let with = |at: usize, value: f32| {
        let mut values = vec![0.25f32; VALUES];
        values[at] = value;
        Params::from_values(&layout, &values)
    };
    let every = 0.25 * (VALUES as f64).sqrt();
    let models = [
        with(0, 0.25),
        with(7, -0.5),
        with(VALUES - 1, 1e30),
        with(VALUES - 11, f32::MAX),
        with(3, f32::NAN),
        with(VALUES - 1, f32::INFINITY),
    ];
    let mut skipped = 0;
    for model in models {
        let document = model.document();
        let largest = Reading::of(&document).largest;
        assert!(largest.is_some(), "the document is large enough to be read");
        let bounds = [0.0, every * 0.999, every, every * 1.001, every * 2.001];
        let others = [f64::MAX, f64::INFINITY, f64::NAN, -1.0];
        for norm in bounds.into_iter().chain(others) {
            let gate = Gate {
                layout: layout.clone(),
                norm,
            };
            let told = gate.admit_read(document.clone(), largest);
            // Compared as text: a norm may be NaN, and so may the bound.
            let (told, alone) = (
                told.map(|m| m.hash()),
                gate.admit(document.clone()).map(|m| m.hash()),
            );
            assert_eq!(format!("{told:?}"), format!("{alone:?}"), "bound {norm}");
            skipped += usize::from(gate.passes(largest.unwrap()));
        }
    }
    // The short cut was taken, and not always.
    assert_eq!(skipped, 4 + 3 + 2 + 2);
    // Nothing that was read spares a document with another header.
    let gate = Gate {
        layout: layout.clone(),
        norm: f64::INFINITY,
    };
    let mut forged = with(0, 0.25).document().to_vec();
    forged[9] ^= 1;
    let largest = Reading::of(&forged).largest;
    assert!(largest.is_some());
    let refused = gate.admit_read(forged.into(), largest);
    assert!(matches!(refused, Err(GateError::Header(_))));
}
