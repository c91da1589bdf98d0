//! Builds a graph node by node.

use prost::Message;

use super::proto::{
    AttributeProto, Dimension, GraphProto, ModelProto, NodeProto, OperatorSetIdProto,
    StringStringEntryProto, TensorProto, TensorShapeProto, TensorType, TypeProto, ValueInfoProto,
    element, kind,
};
use super::{OPSET, TREES, TREES_OPSET};

/// Version of the file format that goes with the opset.
const IR_VERSION: i64 = 8;
/// Most bytes of a message of protocol buffers.
const LARGEST: usize = i32::MAX as usize;

/// A value of the graph, by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Value(String);

/// An attribute of a node.
pub(crate) enum Attribute<'a> {
    Int(i64),
    Ints(&'a [usize]),
    Float(f32),
    Floats(&'a [f32]),
    Texts(&'a [&'a str]),
}

/// A graph under construction. Its rows are the first dimension of every value.
#[derive(Default)]
pub(crate) struct OnnxGraph {
    proto: GraphProto,
    values: usize,
}

impl OnnxGraph {
    /// A graph of that name.
    pub(crate) fn new(name: &str) -> Self {
        let mut graph = Self::default();
        graph.proto.name = name.into();
        graph
    }

    /// An input of numbers of double precision, rows × `columns`.
    pub(crate) fn input(&mut self, name: &str, columns: usize, doc: &str) -> Value {
        let info = info(name, element::DOUBLE, Some(columns), doc);
        self.proto.input.push(info);
        Value(name.into())
    }

    /// Makes a value an output of that name, of numbers, rows × `columns`.
    pub(crate) fn output(&mut self, name: &str, value: &Value, columns: usize, doc: &str) {
        self.named("Identity", &[value], &[], name);
        let info = info(name, element::FLOAT, Some(columns), doc);
        self.proto.output.push(info);
    }

    /// Makes a value an output of that name, of numbers of double precision, rows × `columns`.
    pub(crate) fn double_output(&mut self, name: &str, value: &Value, columns: usize, doc: &str) {
        self.named("Identity", &[value], &[], name);
        let info = info(name, element::DOUBLE, Some(columns), doc);
        self.proto.output.push(info);
    }

    /// Makes a value an output of that name, one whole number for each row.
    pub(crate) fn index_output(&mut self, name: &str, value: &Value, doc: &str) {
        self.named("Identity", &[value], &[], name);
        let info = info(name, element::INT64, None, doc);
        self.proto.output.push(info);
    }

    /// A node with one output.
    pub(crate) fn node(
        &mut self,
        operator: &str,
        inputs: &[&Value],
        attributes: &[(&str, Attribute<'_>)],
    ) -> Value {
        let name = format!("v{}", self.values);
        self.values += 1;
        self.named(operator, inputs, attributes, &name)
    }

    /// A node with one output whose operator is of the domain of classical models, such as trees.
    pub(crate) fn tree_node(
        &mut self,
        operator: &str,
        inputs: &[&Value],
        attributes: &[(&str, Attribute<'_>)],
    ) -> Value {
        let value = self.node(operator, inputs, attributes);
        if let Some(node) = self.proto.node.last_mut() {
            node.domain = TREES.into();
        }
        value
    }

    fn named(
        &mut self,
        operator: &str,
        inputs: &[&Value],
        attributes: &[(&str, Attribute<'_>)],
        output: &str,
    ) -> Value {
        let attribute = |(name, value): &(&str, Attribute<'_>)| {
            let mut proto = AttributeProto {
                name: (*name).into(),
                ..AttributeProto::default()
            };
            match value {
                Attribute::Int(value) => (proto.i, proto.kind) = (Some(*value), kind::INT),
                Attribute::Float(value) => (proto.f, proto.kind) = (Some(*value), kind::FLOAT),
                Attribute::Ints(values) => {
                    proto.ints = values.iter().map(|&value| value as i64).collect();
                    proto.kind = kind::INTS;
                }
                Attribute::Floats(values) => {
                    proto.floats = values.to_vec();
                    proto.kind = kind::FLOATS;
                }
                Attribute::Texts(values) => {
                    proto.strings = values.iter().map(|&value| value.into()).collect();
                    proto.kind = kind::STRINGS;
                }
            }
            proto
        };
        self.proto.node.push(NodeProto {
            input: inputs.iter().map(|value| value.0.clone()).collect(),
            output: vec![output.into()],
            name: format!("{operator} {output}"),
            op_type: operator.into(),
            attribute: attributes.iter().map(attribute).collect(),
            domain: String::new(),
        });
        Value(output.into())
    }

    /// A constant of single precision.
    pub(crate) fn floats(&mut self, name: &str, shape: &[usize], values: &[f32]) -> Value {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes());
        self.constant(name, shape, element::FLOAT, bytes.collect())
    }

    /// A constant of double precision.
    pub(crate) fn doubles(&mut self, name: &str, shape: &[usize], values: &[f64]) -> Value {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes());
        self.constant(name, shape, element::DOUBLE, bytes.collect())
    }

    fn constant(&mut self, name: &str, shape: &[usize], of: i32, bytes: Vec<u8>) -> Value {
        self.proto.initializer.push(TensorProto {
            dims: shape.iter().map(|&side| side as i64).collect(),
            data_type: of,
            name: name.into(),
            raw_data: bytes.into(),
        });
        Value(name.into())
    }

    /// The value with every row in another shape.
    pub(crate) fn reshape(&mut self, value: &Value, row: &[usize]) -> Value {
        let sides = row.iter().map(|&side| side as i64);
        let bytes = std::iter::once(-1i64)
            .chain(sides)
            .flat_map(i64::to_le_bytes);
        let name = format!("shape{}", self.values);
        let shape = self.constant(&name, &[row.len() + 1], element::INT64, bytes.collect());
        self.node("Reshape", &[value, &shape], &[])
    }

    /// The value in double precision.
    pub(crate) fn double(&mut self, value: &Value) -> Value {
        let to = Attribute::Int(element::DOUBLE.into());
        self.node("Cast", &[value], &[("to", to)])
    }

    /// The value in single precision.
    pub(crate) fn single(&mut self, value: &Value) -> Value {
        let to = Attribute::Int(element::FLOAT.into());
        self.node("Cast", &[value], &[("to", to)])
    }

    /// The bytes of the file, with these properties; `None` where they are more than a file of
    /// protocol buffers may have.
    pub(crate) fn encode(self, doc: &str, properties: &[(&str, String)]) -> Option<Vec<u8>> {
        let property = |(key, value): &(&str, String)| StringStringEntryProto {
            key: (*key).into(),
            value: value.clone(),
        };
        let mut opset_import = vec![OperatorSetIdProto {
            domain: String::new(),
            version: OPSET,
        }];
        if self.proto.node.iter().any(|node| node.domain == TREES) {
            opset_import.push(OperatorSetIdProto {
                domain: TREES.into(),
                version: TREES_OPSET,
            });
        }
        let model = ModelProto {
            ir_version: IR_VERSION,
            producer_name: "rota".into(),
            producer_version: env!("CARGO_PKG_VERSION").into(),
            doc_string: doc.into(),
            graph: Some(self.proto),
            opset_import,
            metadata_props: properties.iter().map(property).collect(),
        };
        (model.encoded_len() <= LARGEST).then(|| model.encode_to_vec())
    }
}

/// An input or output: rows, and columns where there are any.
fn info(name: &str, of: i32, columns: Option<usize>, doc: &str) -> ValueInfoProto {
    let rows = Dimension {
        dim_param: Some("rows".into()),
        dim_value: None,
    };
    let columns = columns.map(|columns| Dimension {
        dim_value: Some(columns as i64),
        dim_param: None,
    });
    let shape = TensorShapeProto {
        dim: std::iter::once(rows).chain(columns).collect(),
    };
    let tensor = TensorType {
        elem_type: of,
        shape: Some(shape),
    };
    ValueInfoProto {
        name: name.into(),
        r#type: Some(TypeProto {
            tensor_type: Some(tensor),
        }),
        doc_string: doc.into(),
    }
}
