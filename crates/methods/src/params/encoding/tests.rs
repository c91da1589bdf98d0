#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::params::{Gate, TensorSpec};

const ALL: [Encoding; 4] = [
    Encoding::F32,
    Encoding::Bf16,
    Encoding::Int8,
    Encoding::TopK(0.25),
];

fn agreed() -> Arc<Layout> {
    Layout::new(vec![
        TensorSpec::new("bias", [2], Role::Bias),
        TensorSpec::new("mean", [3], Role::Buffer),
        TensorSpec::new("weight", [4, 4], Role::Weight),
    ])
    .unwrap()
}

/// With a count that a strategy adds, which comes first.
fn contributed() -> Arc<Layout> {
    let mut tensors = agreed().tensors().to_vec();
    tensors.push(TensorSpec::new("a count", [1], Role::Weight));
    Layout::new(tensors).unwrap()
}

fn model(layout: &Arc<Layout>, seed: u32) -> Params {
    Params::build(layout, |into| {
        for (at, value) in (1u32..).zip(into) {
            let bits = at.wrapping_add(seed).wrapping_mul(2_654_435_761);
            *value = (f64::from(bits >> 8) / f64::from(1 << 24) - 0.5) as f32;
        }
    })
}

fn gate(layout: &Arc<Layout>) -> Gate {
    Gate {
        layout: layout.clone(),
        norm: f64::INFINITY,
    }
}

/// Largest difference in the tensors that are rounded.
fn off(a: &Params, b: &Params) -> f64 {
    let of = |name| a.tensor(name).unwrap().iter().zip(b.tensor(name).unwrap());
    let both = of("bias").chain(of("weight"));
    both.fold(0.0, |most, (a, b)| f64::from((a - b).abs()).max(most))
}

#[test]
fn what_is_sent_is_read_alike_and_within_the_rounding() {
    let (old, new) = (model(&agreed(), 1), model(&contributed(), 2));
    for (encoding, bound) in ALL.into_iter().zip([0.0, 1.0 / 256.0, 0.51 / 127.0, 1.0]) {
        let sent = encoding.send(&new, None, &old).unwrap();
        let references = [model(&agreed(), 9), old.clone()];
        let read = gate(new.layout())
            .admit_encoded(encoding, sent.document.clone(), &references, None)
            .unwrap();
        assert_eq!(read, sent.model, "{encoding:?}");
        assert_eq!(
            sent.document.len(),
            encoding.len(new.layout(), old.layout())
        );
        for exact in ["a count", "mean"] {
            assert_eq!(read.tensor(exact), new.tensor(exact), "{encoding:?}");
        }
        let off = off(&read, &new);
        assert!(off <= bound, "{encoding:?}: {off}");
        assert_eq!(off == 0.0, encoding.is_exact(), "{encoding:?}");
    }
}

#[test]
fn sizes_are_as_stated() {
    let (layout, reference) = (contributed(), agreed());
    let exact = HEAD + 4 * (1 + 3);
    assert_eq!(
        Encoding::F32.len(&layout, &reference),
        layout.document_len()
    );
    assert_eq!(Encoding::Bf16.len(&layout, &reference), exact + 2 * 18);
    assert_eq!(Encoding::Int8.len(&layout, &reference), exact + 2 * 4 + 18);
    assert_eq!(Encoding::TopK(0.25).len(&layout, &reference), exact + 8 * 5);
    assert_eq!(Encoding::TopK(1e-9).len(&layout, &reference), exact + 8);
}

#[test]
fn a_round_that_trains_no_model_is_sent_as_it_is() {
    let sums = Layout::new(vec![TensorSpec::new("sum", [5], Role::Weight)]).unwrap();
    let (sums, old) = (model(&sums, 3), model(&agreed(), 1));
    for encoding in ALL {
        let sent = encoding.send(&sums, None, &old).unwrap();
        assert_eq!(sent.model, sums, "{encoding:?}");
    }
}

#[test]
fn what_rounding_leaves_out_is_sent_later() {
    // Every round the model goes the same way; after many rounds everything has been sent but for
    // a rest that does not grow.
    let start = model(&agreed(), 1);
    let way = model(&agreed(), 2);
    for encoding in [Encoding::Bf16, Encoding::Int8, Encoding::TopK(0.1)] {
        let (mut agreed, mut rest) = (start.clone(), None);
        let rounds = 60;
        for _ in 0..rounds {
            let new = Params::build(agreed.layout(), |into| {
                let steps = agreed.values().iter().zip(way.values());
                into.iter_mut()
                    .zip(steps)
                    .for_each(|(into, (from, step))| *into = from + 0.01 * step);
            });
            let sent = encoding.send(&new, rest.as_ref(), &agreed).unwrap();
            (agreed, rest) = (sent.model, sent.rest);
        }
        let goal = Params::build(start.layout(), |into| {
            let steps = start.values().iter().zip(way.values());
            into.iter_mut()
                .zip(steps)
                .for_each(|(into, (from, step))| *into = from + 0.01 * rounds as f32 * step);
        });
        let missing = off(&agreed, &goal);
        // A tenth of the values a round: what waits is at most some ten rounds old.
        assert!(missing < 0.01 * 12.0 * 0.5, "{encoding:?}: {missing}");
        let far = off(&start, &goal);
        assert!(missing < 0.3 * far, "{encoding:?}: {missing} of {far}");
    }
}

#[test]
fn bytes_that_no_member_writes_are_refused() {
    let (old, new) = (model(&agreed(), 1), model(&agreed(), 2));
    let refused = |encoding: Encoding, change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = encoding.send(&new, None, &old).unwrap().document.to_vec();
        change(&mut bytes);
        let references = [old.clone()];
        gate(new.layout())
            .admit_encoded(encoding, bytes.into(), &references, None)
            .unwrap_err()
            .to_string()
    };
    let after = HEAD + 4 * 3;
    for encoding in [Encoding::Bf16, Encoding::Int8, Encoding::TopK(0.25)] {
        let short = refused(encoding, &|bytes| bytes.truncate(bytes.len() - 1));
        assert!(short.contains("bytes instead of"), "{short}");
        let letters = refused(encoding, &|bytes| bytes[0] ^= 1);
        assert!(letters.contains("letters"), "{letters}");
        let reference = refused(encoding, &|bytes| bytes[8] ^= 1);
        assert!(reference.contains("agreed"), "{reference}");
        let buffer = refused(encoding, &|bytes| {
            bytes[HEAD..HEAD + 4].copy_from_slice(&f32::NAN.to_le_bytes());
        });
        assert!(buffer.contains("not finite"), "{buffer}");
    }
    let step = refused(Encoding::Int8, &|bytes| {
        bytes[after..after + 4].copy_from_slice(&(-1f32).to_le_bytes());
    });
    assert!(step.contains("step"), "{step}");
    for position in [u32::MAX, 18] {
        let order = refused(Encoding::TopK(0.25), &|bytes| {
            bytes[after..after + 4].copy_from_slice(&position.to_le_bytes());
        });
        assert!(order.contains("positions"), "{order}");
    }
    let twice = refused(Encoding::TopK(0.25), &|bytes| {
        let first: Vec<u8> = bytes[after..after + 8].to_vec();
        bytes[after + 8..after + 16].copy_from_slice(&first);
    });
    assert!(twice.contains("positions"), "{twice}");
    let infinite = refused(Encoding::Bf16, &|bytes| {
        bytes[after..after + 2].copy_from_slice(&0x7f80u16.to_le_bytes());
    });
    assert!(infinite.contains("not finite"), "{infinite}");
}

#[test]
fn halves_are_the_nearest() {
    for value in [1.0f32, -1.0, 0.1, 3.3e-5, 255.5, 1.003_9, 0.0] {
        let read = f32::from_bits(u32::from(upper_half(value)) << 16);
        assert!(
            (read - value).abs() <= value.abs() / 256.0,
            "{value} {read}"
        );
    }
    assert_eq!(upper_half(257.0 / 256.0), 0x3f80, "a tie goes to even");
    assert_eq!(upper_half(259.0 / 256.0), 0x3f82, "a tie goes to even");
    assert!(f32::from_bits(u32::from(upper_half(f32::NAN)) << 16).is_nan());
}

#[test]
fn numbers_of_an_encoding_are_checked() {
    for (part, valid) in [
        (0.5, true),
        (1e-6, true),
        (0.0, false),
        (0.6, false),
        (f64::NAN, false),
    ] {
        assert_eq!(Encoding::TopK(part).is_valid(), valid, "{part}");
    }
}

proptest! {
    #[test]
    fn no_bytes_of_the_right_size_panic(
        which in 0usize..3,
        mut body in proptest::collection::vec(any::<u8>(), 256),
    ) {
        let encoding = ALL[which + 1];
        let (layout, old) = (contributed(), model(&agreed(), 1));
        body.truncate(encoding.len(&layout, old.layout()) - HEAD);
        let document = [&encoding.letters()[..], &old.hash(), &body].concat();
        if let Ok(read) = gate(&layout).admit_encoded(encoding, document.into(), &[old], None) {
            prop_assert!(read.values().iter().all(|value| value.is_finite()));
        }
    }
}
