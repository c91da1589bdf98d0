#![allow(clippy::unwrap_used)]

use super::*;
use crate::TensorSpec;

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
