//! A network as an ONNX graph: its operations in evaluation, with fixed shapes.

use methods::Params;

use super::forward::EPSILON;
use super::op::Op;
use super::plan::NetworkPlan;
use crate::onnx::{Attribute, OnnxGraph, Value};

/// Adds a network to a graph. `input` is rows × columns; so is the result.
pub(super) fn add(
    plan: &NetworkPlan,
    input: [usize; 3],
    graph: &mut OnnxGraph,
    model: &Params,
    features: &Value,
) -> Value {
    let mut writer = Writer {
        plan,
        model,
        shape: input,
        constants: 0,
        graph,
    };
    let images = writer.graph.reshape(features, &input);
    let outputs = writer.all(&plan.ops, images);
    writer.graph.reshape(&outputs, &[plan.outputs])
}

struct Writer<'a> {
    plan: &'a NetworkPlan,
    model: &'a Params,
    /// Channels, height and width at this depth.
    shape: [usize; 3],
    constants: usize,
    graph: &'a mut OnnxGraph,
}

impl Writer<'_> {
    fn all(&mut self, ops: &[Op], input: Value) -> Value {
        ops.iter().fold(input, |x, op| self.one(op, x))
    }

    fn one(&mut self, op: &Op, x: Value) -> Value {
        match op {
            Op::Conv {
                weight,
                bias,
                shape,
                stride,
                padding,
            } => {
                let weight = self.tensor(*weight, shape);
                let bias = bias.map(|bias| self.tensor(bias, &shape[..1]));
                let inputs: Vec<&Value> = [&x, &weight].into_iter().chain(&bias).collect();
                let kernel = shape[2];
                let side = |side: usize| (side + 2 * padding - kernel) / stride + 1;
                self.shape = [shape[0], side(self.shape[1]), side(self.shape[2])];
                let attributes = [
                    ("kernel_shape", Attribute::Ints(&[kernel; 2])),
                    ("strides", Attribute::Ints(&[*stride; 2])),
                    ("pads", Attribute::Ints(&[*padding; 4])),
                ];
                self.graph.node("Conv", &inputs, &attributes)
            }
            Op::UpConv {
                weight,
                bias,
                shape,
            } => self.up_conv(&x, *weight, *bias, shape),
            Op::Dense {
                weight,
                bias,
                shape,
            } => self.dense(&x, *weight, *bias, *shape),
            Op::BatchNorm {
                weight,
                bias,
                mean,
                variance,
            } => self.batch_norm(&x, [*weight, *bias, *mean], *variance),
            Op::GroupNorm {
                weight,
                bias,
                groups,
            } => self.group_norm(&x, *weight, *bias, *groups),
            Op::Relu => self.graph.node("Relu", &[&x], &[]),
            Op::MaxPool {
                size,
                stride,
                padding,
                ceil,
            } => self.max_pool(&x, *size, *stride, *padding, *ceil),
            Op::AveragePool => {
                self.shape = [self.shape[0], 1, 1];
                self.graph.node("GlobalAveragePool", &[&x], &[])
            }
            Op::Dropout(_) => x,
            Op::Residual { main, shortcut } => {
                let from = self.shape;
                let around = self.all(main, x.clone());
                let to = std::mem::replace(&mut self.shape, from);
                let own = self.all(shortcut, x);
                self.shape = to;
                self.graph.node("Add", &[&around, &own], &[])
            }
            Op::Skip(inner) => {
                let channels = self.shape[0];
                let behind = self.all(inner, x.clone());
                self.shape[0] += channels;
                let attributes = [("axis", Attribute::Int(1))];
                self.graph.node("Concat", &[&x, &behind], &attributes)
            }
        }
    }

    fn up_conv(&mut self, x: &Value, weight: usize, bias: usize, shape: &[usize; 4]) -> Value {
        let weight = self.tensor(weight, shape);
        let bias = self.tensor(bias, &shape[1..2]);
        self.shape = [shape[1], 2 * self.shape[1], 2 * self.shape[2]];
        let attributes = [
            ("kernel_shape", Attribute::Ints(&[2; 2])),
            ("strides", Attribute::Ints(&[2; 2])),
        ];
        let inputs = [x, &weight, &bias];
        self.graph.node("ConvTranspose", &inputs, &attributes)
    }

    fn dense(
        &mut self,
        x: &Value,
        weight: usize,
        bias: usize,
        [outputs, inputs]: [usize; 2],
    ) -> Value {
        let flat = self.graph.reshape(x, &[inputs]);
        let weight = self.tensor(weight, &[outputs, inputs]);
        let bias = self.tensor(bias, &[outputs]);
        let attributes = [("transB", Attribute::Int(1))];
        let inputs = [&flat, &weight, &bias];
        let dense = self.graph.node("Gemm", &inputs, &attributes);
        self.shape = [outputs, 1, 1];
        self.graph.reshape(&dense, &self.shape)
    }

    /// The positions are of scale, shift and mean, and of the variance.
    fn batch_norm(&mut self, x: &Value, positions: [usize; 3], variance: usize) -> Value {
        let channels = [self.shape[0]];
        let [scale, shift, mean] = positions.map(|at| self.tensor(at, &channels));
        // As in evaluation: the variance of an averaged model may be below 0.
        let variance = self.values(variance).iter().map(|value| value.max(0.0));
        let variance = variance.collect::<Vec<f32>>();
        let variance = self.constant(&channels, &variance);
        let attributes = [("epsilon", Attribute::Float(EPSILON as f32))];
        let inputs = [x, &scale, &shift, &mean, &variance];
        self.graph.node("BatchNormalization", &inputs, &attributes)
    }

    /// By its parts: opset 17 has no group normalisation.
    fn group_norm(&mut self, x: &Value, weight: usize, bias: usize, groups: usize) -> Value {
        let [channels, height, width] = self.shape;
        let parts = self
            .graph
            .reshape(x, &[groups, channels / groups * height * width]);
        let mean_of = |graph: &mut OnnxGraph, value: &Value| {
            let attributes = [
                ("axes", Attribute::Ints(&[2])),
                ("keepdims", Attribute::Int(1)),
            ];
            graph.node("ReduceMean", &[value], &attributes)
        };
        let mean = mean_of(self.graph, &parts);
        let apart = self.graph.node("Sub", &[&parts, &mean], &[]);
        let squares = self.graph.node("Mul", &[&apart, &apart], &[]);
        let variance = mean_of(self.graph, &squares);
        let epsilon = self.constant(&[], &[EPSILON as f32]);
        let above = self.graph.node("Add", &[&variance, &epsilon], &[]);
        let deviation = self.graph.node("Sqrt", &[&above], &[]);
        let normal = self.graph.node("Div", &[&apart, &deviation], &[]);
        let normal = self.graph.reshape(&normal, &self.shape);
        let scale = self.tensor(weight, &[channels, 1, 1]);
        let shift = self.tensor(bias, &[channels, 1, 1]);
        let scaled = self.graph.node("Mul", &[&normal, &scale], &[]);
        self.graph.node("Add", &[&scaled, &shift], &[])
    }

    /// Padding on the right and below is just what the last window needs, so that no runtime has
    /// to count windows that are cut off.
    fn max_pool(
        &mut self,
        x: &Value,
        size: usize,
        stride: usize,
        padding: usize,
        ceil: bool,
    ) -> Value {
        let windows = |side: usize| {
            let room = side + 2 * padding - size;
            let full = room / stride + 1;
            let cut = ceil && !room.is_multiple_of(stride) && full * stride < side + padding;
            full + usize::from(cut)
        };
        let [channels, height, width] = self.shape;
        let (down, right) = (windows(height), windows(width));
        let end = |count: usize, side: usize| {
            ((count - 1) * stride + size).saturating_sub(side + padding)
        };
        let pads = [padding, padding, end(down, height), end(right, width)];
        self.shape = [channels, down, right];
        let attributes = [
            ("kernel_shape", Attribute::Ints(&[size; 2])),
            ("strides", Attribute::Ints(&[stride; 2])),
            ("pads", Attribute::Ints(&pads)),
        ];
        self.graph.node("MaxPool", &[x], &attributes)
    }

    fn values(&self, position: usize) -> &[f32] {
        let name = &self.plan.tensors[position].spec.name;
        let known = "the layout was checked";
        self.model.tensor(name).expect(known)
    }

    fn tensor(&mut self, position: usize, shape: &[usize]) -> Value {
        // Every tensor is used in one place.
        let (plan, model) = (self.plan, self.model);
        let name = &plan.tensors[position].spec.name;
        let values = model.tensor(name).expect("the layout was checked");
        self.graph.floats(name, shape, values)
    }

    fn constant(&mut self, shape: &[usize], values: &[f32]) -> Value {
        self.constants += 1;
        let name = format!("constant{}", self.constants);
        self.graph.floats(&name, shape, values)
    }
}
