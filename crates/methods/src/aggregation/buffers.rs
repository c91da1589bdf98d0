//! The values of a model by role: weights, biases and buffers.

use std::ops::Range;

use crate::params::{Layout, Params, Role};

/// Positions of weights and biases among the values.
pub(super) fn counted(layout: &Layout) -> impl Iterator<Item = Range<usize>> {
    ranges(layout, false)
}

/// `model` with other buffers: `fill` gets the range of each buffer and writes its values.
pub(super) fn with_buffers(model: Params, fill: impl Fn(Range<usize>, &mut [f32])) -> Params {
    let layout = model.layout();
    if ranges(layout, true).next().is_none() {
        return model;
    }
    Params::build(layout, |into| {
        into.copy_from_slice(model.values());
        for range in ranges(layout, true) {
            fill(range.clone(), &mut into[range]);
        }
    })
}

fn ranges(layout: &Layout, buffers: bool) -> impl Iterator<Item = Range<usize>> {
    let all = layout.tensors().iter().enumerate();
    all.filter(move |(_, tensor)| (tensor.role == Role::Buffer) == buffers)
        .map(|(index, _)| layout.range(index))
}
