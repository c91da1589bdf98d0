//! Parts that FedCG adds to a model, as tensors that travel with it.

use std::sync::Arc;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::graph::{BranchGraph, Convolution};
use super::layers::branched;
use super::{AdjacencyStart, FedCg, Graphs, Mixing};
use crate::Matrix;
use crate::domains::{Activation, Passes, Projection, Propagation, adjacency};
use crate::learner::{Learner, mixed_seed};
use crate::params::{Attached, Layer, Layout, Params, Role, TensorSpec, layers};
use crate::random::{normal, uniform};
use crate::strategy::EquipError;

/// Before the number of a domain: its branches, named as the layers that they belong to.
pub(super) const DOMAIN: &str = "fedcg.domain";
/// Before the tensors of the student and of the teacher.
pub(super) const STUDENT: &str = "fedcg.student.";
pub(super) const TEACHER: &str = "fedcg.teacher.";
/// The share of a silo's training rows in every domain, in its contributions; 0 in models.
pub(super) const SHARES: &str = "fedcg.graph.shares";
/// Under this name, and that of a layer where each has its own: `A`, domains × domains.
const ADJACENCY: &str = "adjacency";
/// Under this name `A`, these shares, and of every layer λ and W.
pub(super) const GRAPH: &str = "fedcg.graph";

/// Most values of one W: a gigabyte.
const LARGEST: usize = 1 << 28;

/// The first of the streams from which branches that stand alone are drawn.
const OWN_MODEL: u64 = 16;

/// Deviation of what is added to the identity where W starts.
const NOISE: f64 = 0.01;

/// A model of FedCG and its parts.
pub(super) struct FedCgShape {
    attached: Attached,
    /// The layers with branches, in the model; and in what a domain has.
    pub(super) in_model: Vec<Layer>,
    in_domain: Vec<Layer>,
    domains: usize,
    activation: Activation,
    projection: Mixing,
    passes: Passes,
    lambda: f64,
    /// True if domains are found, by a teacher.
    found: bool,
    /// The names of every `A`: one for all layers, or one for each.
    graphs: Vec<String>,
    /// `A` before the first aggregation, and β in it.
    start: AdjacencyStart,
    beta: f64,
    /// True if layers with branches have what all domains share, too.
    agnostic: bool,
}

/// A model of FedCG, taken apart.
#[derive(Clone)]
pub(super) struct FedCgParts {
    /// Tensors that all domains share.
    pub(super) base: Params,
    /// Branches and what connects them.
    pub(super) graph: BranchGraph,
    pub(super) student: Params,
    /// `None` where domains are given.
    pub(super) teacher: Option<Params>,
    /// The share of every domain in the training rows of a silo that contributes; otherwise empty.
    pub(super) shares: Vec<f64>,
}

impl FedCgShape {
    /// For models of `inner` and a classifier with this layout.
    pub(super) fn new(
        options: &FedCg,
        inner: &dyn Learner,
        classifier: &Layout,
    ) -> Result<Self, EquipError> {
        let base = inner.layout();
        let in_model = branched(&base, options.layers.as_ref())?;
        let has_branches = |tensor: &&TensorSpec| {
            let position = base.position(&tensor.name);
            let has = |layer: &Layer| position.is_some_and(|at| layer.tensors.contains(&at));
            in_model.iter().any(has)
        };
        let domain = base.select(has_branches);
        let mut tensors = vec![buffer("shares", [options.domains])];
        let graphs = match options.graphs {
            Graphs::One => vec![ADJACENCY.to_owned()],
            Graphs::PerLayer => in_model
                .iter()
                .map(|layer| named(layer, ADJACENCY))
                .collect(),
        };
        tensors.extend(graphs.iter().map(|name| buffer(name, [options.domains; 2])));
        for layer in &in_model {
            tensors.push(buffer(&named(layer, "lambda"), [1]));
            for (name, [rows, columns]) in weights(options.projection, layer.len()) {
                if rows.saturating_mul(columns) > LARGEST {
                    return Err(EquipError::Unsupported(format!(
                        "fedcg: the projection of layer {:?} would be {rows} × {columns}: choose \
                         projection = \"none\" or a larger bottleneck",
                        layer.name
                    )));
                }
                tensors.push(buffer(&named(layer, name), [rows, columns]));
            }
        }
        let graph = Layout::new(tensors)?;
        let classifier = classifier.trained();
        let names: Vec<_> = (0..options.domains)
            .map(|domain| format!("{DOMAIN}{domain}"))
            .collect();
        let mut parts: Vec<(&str, &Arc<Layout>)> =
            names.iter().map(|name| (name.as_str(), &domain)).collect();
        let [student, teacher] = [STUDENT, TEACHER].map(|name| name.trim_end_matches('.'));
        parts.extend([(GRAPH, &graph), (student, &classifier)]);
        if !options.given {
            parts.push((teacher, &classifier));
        }
        Ok(Self {
            attached: Attached::new(&base, &parts)?,
            in_domain: layers(&domain),
            in_model,
            domains: options.domains,
            activation: options.sigma,
            projection: options.projection,
            passes: options.passes,
            lambda: options.lambda,
            found: !options.given,
            graphs,
            start: options.adjacency_start,
            beta: options.beta,
            agnostic: options.agnostic,
        })
    }

    /// Layout of the model with everything.
    pub(super) fn whole(&self) -> &Arc<Layout> {
        self.attached.whole()
    }

    /// Layout of what all domains share.
    pub(super) fn base(&self) -> &Arc<Layout> {
        self.attached.base()
    }

    /// Number of domains.
    pub(super) fn domains(&self) -> usize {
        self.domains
    }

    /// Returns whether a place among the values of a layer is a weight rather than a bias.
    pub(super) fn is_weight(&self, layer: usize) -> Vec<bool> {
        let tensors = self.base().tensors();
        let each = self.in_model[layer].tensors.iter();
        each.flat_map(|&at| vec![tensors[at].role == Role::Weight; tensors[at].len()])
            .collect()
    }

    /// A model to start from: every branch and classifier drawn by itself, as layers
    /// commonly are (uniform in `±1/√in`); W near the identity, or a bottleneck drawn normal with
    /// variance `2/in`; every domain alone.
    pub(super) fn initial(
        &self,
        inner: &dyn Learner,
        classifier: &dyn Learner,
        seed: u64,
    ) -> Params {
        let base = self.shared(inner.initial(seed));
        let opinion = |nth| {
            let initial = classifier.initial(mixed_seed(seed, nth));
            let trained = initial.layout().trained();
            Params::gather(&trained, &[&initial]).expect("tensors of this classifier")
        };
        let mut random = ChaCha8Rng::seed_from_u64(mixed_seed(seed, 3));
        let mut layers: Vec<Convolution> = (0..self.in_model.len())
            .map(|layer| self.convolution(layer, &mut random))
            .collect();
        if !self.agnostic {
            self.start_as_models(inner, seed, &mut layers);
        }
        self.join(&FedCgParts {
            base,
            graph: BranchGraph {
                adjacency: vec![self.first_graph(&mut random); self.graphs.len()],
                layers,
            },
            student: opinion(1),
            teacher: self.found.then(|| opinion(2)),
            shares: Vec::new(),
        })
    }

    /// A model whose layers with branches are 0 where there is nothing that all domains share.
    fn shared(&self, base: Params) -> Params {
        if self.agnostic {
            return base;
        }
        Params::build(base.layout(), |into| {
            into.copy_from_slice(base.values());
            for range in self.in_model.iter().flat_map(|layer| &layer.ranges) {
                into[range.clone()].fill(0.0);
            }
        })
    }

    /// Branches that stand alone begin as the layers of models that the silo would draw, one for each
    /// domain: scales of a normalisation at 1.
    fn start_as_models(&self, inner: &dyn Learner, seed: u64, layers: &mut [Convolution]) {
        for domain in 0..self.domains {
            let own = inner.initial(mixed_seed(seed, OWN_MODEL + domain as u64));
            for (layer, convolution) in self.in_model.iter().zip(&mut *layers) {
                let values = layer.values(own.values()).flatten();
                let row = convolution.parameters.row_mut(domain).iter_mut();
                row.zip(values)
                    .for_each(|(into, &value)| *into = value.into());
            }
        }
    }

    /// `A` before the first aggregation.
    fn first_graph(&self, random: &mut ChaCha8Rng) -> Matrix {
        match self.start {
            AdjacencyStart::Identity => adjacency::identity(self.domains),
            AdjacencyStart::Random => adjacency::random(self.domains, || uniform(random)),
            AdjacencyStart::Uniform => {
                let graph = adjacency::uniform(self.domains, self.beta);
                graph.expect("the options' ranges were checked")
            }
        }
    }

    /// Returns whether values of the layers with branches are trained for all domains together.
    pub(super) fn is_agnostic(&self) -> bool {
        self.agnostic
    }

    fn convolution(&self, layer: usize, random: &mut ChaCha8Rng) -> Convolution {
        let tensors = self.base().tensors();
        let own = &self.in_model[layer];
        let ins = own
            .tensors
            .iter()
            .filter_map(|&at| match &tensors[at].shape[..] {
                [_, ins @ ..] if !ins.is_empty() => Some(ins.iter().product::<usize>()),
                _ => None,
            });
        let bound = 1.0 / (ins.max().unwrap_or(1).max(1) as f64).sqrt();
        let parameters = Matrix::from_fn(self.domains, own.len(), |_, _| {
            (2.0 * uniform(random) - 1.0) * bound
        });
        let mut drawn =
            weights(self.projection, own.len())
                .into_iter()
                .map(|(_, [rows, columns])| match self.projection {
                    Mixing::Bottleneck(_) => {
                        let deviation = (2.0 / rows.max(1) as f64).sqrt();
                        Matrix::from_fn(rows, columns, |_, _| deviation * normal(random))
                    }
                    _ => Matrix::from_fn(rows, columns, |row, column| {
                        f64::from(u8::from(row == column)) + NOISE * normal(random)
                    }),
                });
        let projection = self.assembled(&mut drawn);
        Convolution {
            lambda: self.lambda,
            parameters,
            propagation: Propagation {
                activation: self.activation,
                projection,
            },
        }
    }

    /// W of its matrices, in the order of [`weights`].
    fn assembled(&self, matrices: &mut dyn Iterator<Item = Matrix>) -> Projection {
        let mut next = || matrices.next().expect("as many as weights() names");
        match self.projection {
            Mixing::None => Projection::None,
            Mixing::Full => Projection::Full(next()),
            Mixing::Bottleneck(_) => Projection::Bottleneck {
                down: next(),
                up: next(),
                passes: self.passes,
            },
        }
    }

    /// Takes a model apart.
    ///
    /// # Panics
    /// If it has another layout.
    pub(super) fn split(&self, model: &Params) -> FedCgParts {
        let (base, mut parts) = self.attached.split(model);
        let known = "one part for every name";
        let mut last = || parts.pop().expect(known);
        let teacher = self.found.then(&mut last);
        let (student, graph) = (last(), last());
        let matrix = |name: &str| {
            let at = graph
                .layout()
                .position(name)
                .expect("a tensor of the graph");
            let [rows, columns] = graph.layout().tensors()[at].shape[..] else {
                unreachable!("the graph is made of matrices");
            };
            let values = &graph.values()[graph.layout().range(at)];
            Matrix::from_fn(rows, columns, |row, column| {
                values[row * columns + column].into()
            })
        };
        let convolution = |layer: &Layer| {
            let rows: Vec<Vec<f64>> = parts
                .iter()
                .map(|domain| {
                    let values = layer.values(domain.values()).flatten();
                    values.map(|&value| value.into()).collect()
                })
                .collect();
            let mut matrices = weights(self.projection, layer.len())
                .into_iter()
                .map(|(name, _)| matrix(&named(layer, name)));
            let lambda = graph.tensor(&named(layer, "lambda"));
            Convolution {
                lambda: lambda.expect("a tensor of the graph")[0].into(),
                parameters: Matrix::from_rows(&rows).expect("domains have one layout"),
                propagation: Propagation {
                    activation: self.activation,
                    projection: self.assembled(&mut matrices),
                },
            }
        };
        FedCgParts {
            graph: BranchGraph {
                adjacency: self.graphs.iter().map(|name| matrix(name)).collect(),
                layers: self.in_domain.iter().map(convolution).collect(),
            },
            base,
            student,
            teacher,
            shares: Vec::new(),
        }
    }

    /// Puts a model together.
    pub(super) fn join(&self, parts: &FedCgParts) -> Params {
        let graph = &parts.graph;
        let domain = |domain: usize| {
            Params::build(self.attached.part(0), |into| {
                for (layer, convolution) in self.in_domain.iter().zip(&graph.layers) {
                    let places = layer.ranges.iter().cloned().flatten();
                    for (at, &value) in places.zip(convolution.parameters.row(domain)) {
                        into[at] = value as f32;
                    }
                }
            })
        };
        let domains: Vec<Params> = (0..self.domains).map(domain).collect();
        let layout = self.attached.part(self.domains);
        let connected = Params::build(layout, |into| {
            let mut put = |name: &str, values: &[f64]| {
                let at = layout.position(name).expect("a tensor of the graph");
                for (into, &value) in into[layout.range(at)].iter_mut().zip(values) {
                    *into = value as f32;
                }
            };
            for (name, own) in self.graphs.iter().zip(&graph.adjacency) {
                put(name, own.values());
            }
            put("shares", &parts.shares);
            for (layer, convolution) in self.in_domain.iter().zip(&graph.layers) {
                put(&named(layer, "lambda"), &[convolution.lambda]);
                let names = weights(self.projection, layer.len());
                for ((name, _), matrix) in names.into_iter().zip(convolution.weights()) {
                    put(&named(layer, name), matrix.values());
                }
            }
        });
        let mut all: Vec<&Params> = domains.iter().collect();
        all.extend([&connected, &parts.student]);
        all.extend(&parts.teacher);
        self.attached.join(&parts.base, &all)
    }
}

/// The layer whose `A` a tensor of a model is, by its name: empty where there is one `A` for all layers.
pub(super) fn graph_of(name: &str) -> Option<&str> {
    let own = name.strip_prefix(GRAPH)?.strip_prefix('.')?;
    if own == ADJACENCY {
        Some("")
    } else {
        own.strip_suffix(ADJACENCY)?.strip_suffix('.')
    }
}

/// Names and shapes of the matrices that W is made of, for a layer of this number of values.
fn weights(projection: Mixing, values: usize) -> Vec<(&'static str, [usize; 2])> {
    match projection {
        Mixing::None => Vec::new(),
        Mixing::Full => vec![("projection", [values, values])],
        Mixing::Bottleneck(factor) => {
            let fewer = values.div_ceil(factor);
            vec![("down", [values, fewer]), ("up", [fewer, values])]
        }
    }
}

/// Returns what belongs to a layer, by a name of its own.
fn named(layer: &Layer, what: &str) -> String {
    match layer.name.as_str() {
        "" => what.into(),
        name => format!("{name}.{what}"),
    }
}

fn buffer(name: &str, shape: impl Into<Vec<usize>>) -> TensorSpec {
    TensorSpec::new(name, shape, Role::Buffer)
}
