//! `rota solve topology`: the graph of similar silos, their centralities and prior.

use std::io::{self, Write};
use std::path::Path;

use clap::ValueEnum;
use formatting::numbers;
use methods::Matrix;
use methods::similarity::{self, Vectors, min_max};
use methods::topology::{self, Scale, TopologyOptions, adjacency, client_prior};
use report::terminal::wrapped;
use serde::Serialize;

use super::table::NumberTable;
use super::{NUMBERED, SolveAnswer, SolveError, check_parts, clusters_of, listed, members};
use crate::cli::SolveTopology;

/// Allowed relative asymmetry of similarities from a file.
const SYMMETRY: f64 = 1e-9;

/// The result: a topology of silos or of clusters.
#[derive(Debug, Serialize)]
pub(super) struct TopologyResult {
    similarity: Vec<Vec<f64>>,
    pub(super) adjacency: Vec<Vec<u8>>,
    pub(super) centrality: Vec<f64>,
    /// Per silo, also with clusters.
    prior: Vec<f64>,
    pub(super) components: Vec<Vec<usize>>,
    pub(super) isolated: Vec<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clusters: Option<Vec<u32>>,
    /// Per node of the graph.
    #[serde(skip)]
    pub(super) weights: Vec<f64>,
    /// The name of the centrality.
    #[serde(skip)]
    pub(super) measure: String,
    #[serde(skip)]
    pub(super) epsilon: f64,
}

/// Reads parameters or similarities and learns the topology.
pub(super) fn solve(asked: &SolveTopology) -> Result<TopologyResult, SolveError> {
    let (similarity, clusters) = match (&asked.similarity, &asked.params) {
        (Some(path), _) => (given(path)?, None),
        (None, Some(path)) => measured(asked, &NumberTable::read(path)?)?,
        (None, None) => unreachable!("the command line asks for one of the two"),
    };
    let options = TopologyOptions {
        epsilon: asked.epsilon,
        centrality: asked.centrality.into(),
        scale: if asked.raw {
            Scale::Raw
        } else {
            Scale::Normalised
        },
        ..TopologyOptions::default()
    };
    let learned = topology::Topology::learn(&similarity, &options)?;
    let prior = match &clusters {
        None => learned.prior.clone(),
        Some(labels) => client_prior(&learned.prior, labels).expect("every cluster has silos"),
    };
    let adjacency = adjacency(&learned.graph);
    let name = asked
        .centrality
        .to_possible_value()
        .expect("no centrality is hidden");
    Ok(TopologyResult {
        adjacency: rows(&adjacency)
            .map(|row| row.iter().map(|&one| one as u8).collect())
            .collect(),
        similarity: rows(&similarity).map(<[f64]>::to_vec).collect(),
        centrality: learned.centrality,
        components: members(&learned.components),
        isolated: learned.isolated,
        weights: learned.prior,
        measure: name.get_name().to_owned() + if asked.raw { " (raw)" } else { "" },
        epsilon: asked.epsilon,
        prior,
        clusters,
    })
}

fn rows(matrix: &Matrix) -> impl Iterator<Item = &[f64]> {
    (0..matrix.rows()).map(|row| matrix.row(row))
}

/// Similarities from a file, normalised unless all are in [0, 1].
fn given(path: &Path) -> Result<Matrix, SolveError> {
    let table = NumberTable::read(path)?.square()?;
    let similarity = table.matrix();
    let mut within = true;
    for row in 0..similarity.rows() {
        for column in 0..row {
            let (lower, upper) = (similarity[(row, column)], similarity[(column, row)]);
            if (lower - upper).abs() > SYMMETRY * lower.abs().max(upper.abs()) {
                let what = format!(
                    "{lower}, but the entry across the diagonal is {upper}: similarities must be symmetric"
                );
                return Err(table.wrong(row, column, what).into());
            }
            within &= (0.0..=1.0).contains(&lower);
        }
    }
    // Use the entries below the diagonal.
    let n = similarity.rows();
    let even = Matrix::from_fn(n, n, |row, column| {
        if row == column {
            0.0
        } else {
            similarity[(row.max(column), row.min(column))]
        }
    });
    Ok(if within {
        even
    } else {
        min_max(&even).expect("a square matrix of finite numbers")
    })
}

/// Normalised similarities of parameters, or of the means of their clusters.
fn measured(
    asked: &SolveTopology,
    params: &NumberTable,
) -> Result<(Matrix, Option<Vec<u32>>), SolveError> {
    let clusters = asked
        .clusters
        .map(|clusters| cluster(params, clusters, asked.seed))
        .transpose()?;
    let means: Vec<Vec<f64>>;
    let points = match &clusters {
        Some(labels) => {
            means = members(labels)
                .iter()
                .map(|members| mean(params, members))
                .collect();
            &means
        }
        None => params.rows(),
    };
    let metric = similarity::SimilarityMetric::from(asked.metric);
    let rows = Vectors::new(points).expect("rows of one length");
    let raw = metric
        .similarity_f64(&rows)
        .expect("numbers are below the limit of a table");
    let similarity = min_max(&raw).expect("a square matrix of finite numbers");
    Ok((similarity, clusters))
}

/// The cluster of every silo.
fn cluster(params: &NumberTable, clusters: usize, seed: u64) -> Result<Vec<u32>, SolveError> {
    check_parts("--clusters", clusters, params)?;
    Ok(clusters_of(params.rows(), clusters, seed).labels)
}

fn mean(params: &NumberTable, members: &[usize]) -> Vec<f64> {
    let mut mean = vec![0.0; params.columns()];
    for &silo in members {
        for (mean, value) in mean.iter_mut().zip(&params.rows()[silo]) {
            *mean += value / members.len() as f64;
        }
    }
    mean
}

impl TopologyResult {
    /// The kind of the nodes of the graph.
    pub(super) fn kind(&self) -> &'static str {
        if self.clusters.is_some() {
            "cluster"
        } else {
            "silo"
        }
    }

    /// The silos of every node of the graph, if nodes are clusters.
    pub(super) fn silos(&self) -> Option<Vec<Vec<usize>>> {
        self.clusters.as_deref().map(members)
    }

    /// Pairs of neighbours.
    pub(super) fn edges(&self) -> Vec<(usize, usize)> {
        let n = self.adjacency.len();
        let pairs = (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b)));
        pairs.filter(|&(a, b)| self.adjacency[a][b] == 1).collect()
    }

    /// `Topology of 5 silos: 4 edges, 1 component`.
    pub(super) fn title(&self) -> String {
        let of = match self.clusters.as_ref().map(Vec::len) {
            Some(silos) => format!(
                "{} of {}",
                numbers::plural(self.weights.len(), "cluster"),
                numbers::plural(silos, "silo")
            ),
            None => numbers::plural(self.weights.len(), "silo"),
        };
        let edges = numbers::plural(self.edges().len(), "edge");
        let components = numbers::plural(self.components.len(), "component");
        format!("Topology of {of}: {edges}, {components}")
    }
}

impl SolveAnswer for TopologyResult {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let (kind, epsilon) = (self.kind(), self.epsilon);
        writeln!(out, "{}.", self.title())?;
        writeln!(out, "{NUMBERED}")?;
        writeln!(
            out,
            "Neighbours have a similarity, normalised to [0, 1], of at least {epsilon}.\n"
        )?;
        let measure = &self.measure;
        let wide = measure.len().max(12);
        let silos = self.silos();
        let of = if silos.is_some() { "  silos" } else { "" };
        writeln!(
            out,
            "  {kind:>7}  neighbours  {measure:>wide$}     prior{of}"
        )?;
        for (node, centrality) in self.centrality.iter().enumerate() {
            let neighbours = self.adjacency[node].iter().filter(|one| **one == 1).count();
            let prior = self.weights[node];
            let of = silos
                .as_ref()
                .map_or(String::new(), |silos| format!("  {}", listed(&silos[node])));
            let line =
                format!("  {node:>7}  {neighbours:>10}  {centrality:>wide$.6}  {prior:.6}{of}");
            wrapped(out, 35 + wide, &line)?;
        }
        if !self.isolated.is_empty() {
            writeln!(out, "\nWithout neighbours: {}", listed(&self.isolated))?;
        }
        if silos.is_some() {
            writeln!(
                out,
                "\nEvery silo gets an equal part of its cluster's prior."
            )?;
        }
        Ok(())
    }
}
