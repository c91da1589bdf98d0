//! Centralities against their definitions, another implementation, and each other.

use petgraph::graph::NodeIndex;
use proptest::prelude::*;
use rustworkx_core::centrality as oracle;

use super::*;
use crate::topology::isolated;

/// Every simple path from `from` to `to`, as nodes.
fn simple_paths(graph: &Graph, from: usize, to: usize) -> Vec<Vec<usize>> {
    let mut complete = Vec::new();
    let mut begun = vec![vec![from]];
    while let Some(path) = begun.pop() {
        let end = *path.last().unwrap();
        if end == to {
            complete.push(path);
            continue;
        }
        for next in graph.neighbors(NodeIndex::new(end)).map(NodeIndex::index) {
            if !path.contains(&next) {
                begun.push([path.as_slice(), &[next]].concat());
            }
        }
    }
    complete
}

/// Betweenness straight from its definition; `length` is that of an edge by its similarity.
fn by_definition(graph: &Graph, length: impl Fn(f64) -> f64) -> Vec<f64> {
    let nodes = graph.node_count();
    let mut total = vec![0.0; nodes];
    let measure = |path: &[usize]| -> f64 {
        let edge = |pair: &[usize]| {
            let (a, b) = (NodeIndex::new(pair[0]), NodeIndex::new(pair[1]));
            length(graph[graph.find_edge(a, b).unwrap()])
        };
        path.windows(2).map(edge).sum()
    };
    for (s, t) in (0..nodes).flat_map(|t| (0..t).map(move |s| (s, t))) {
        let paths = simple_paths(graph, s, t);
        let least = paths
            .iter()
            .map(|path| measure(path))
            .fold(f64::INFINITY, f64::min);
        let shortest: Vec<_> = paths.iter().filter(|path| measure(path) == least).collect();
        for path in &shortest {
            for &inner in &path[1..path.len() - 1] {
                total[inner] += 1.0 / shortest.len() as f64;
            }
        }
    }
    total
}

/// Current flow betweenness straight from its definition: one linear system per pair, solved with
/// exact elimination on the grounded Laplacian of the whole (connected) graph.
fn flow_by_definition(graph: &Graph) -> Vec<f64> {
    let nodes = graph.node_count();
    let neighbours = |node: usize| graph.neighbors(NodeIndex::new(node)).map(NodeIndex::index);
    let mut total = vec![0.0; nodes];
    for (s, t) in (0..nodes).flat_map(|t| (0..t).map(move |s| (s, t))) {
        let potential = potentials_between(graph, s, t);
        for node in (0..nodes).filter(|&node| node != s && node != t) {
            let flows = neighbours(node).map(|other| (potential[node] - potential[other]).abs());
            total[node] += flows.sum::<f64>() / 2.0;
        }
    }
    total
}

/// Potentials when a unit of current enters at `s` and leaves at `t`, which is at 0.
fn potentials_between(graph: &Graph, s: usize, t: usize) -> Vec<f64> {
    let nodes = graph.node_count();
    let mut rows: Vec<Vec<f64>> = vec![vec![0.0; nodes + 1]; nodes];
    for edge in graph.edge_indices() {
        let (a, b) = graph.edge_endpoints(edge).unwrap();
        for (a, b) in [(a.index(), b.index()), (b.index(), a.index())] {
            rows[a][a] += 1.0;
            rows[a][b] -= 1.0;
        }
    }
    rows[s][nodes] = 1.0;
    rows[t] = vec![0.0; nodes + 1];
    rows[t][t] = 1.0;
    for pivot in 0..nodes {
        let largest = (pivot..nodes)
            .max_by(|&a, &b| rows[a][pivot].abs().total_cmp(&rows[b][pivot].abs()))
            .unwrap();
        rows.swap(pivot, largest);
        let own = rows[pivot].clone();
        for row in (0..nodes).filter(|&row| row != pivot) {
            let factor = rows[row][pivot] / own[pivot];
            for (value, own) in rows[row].iter_mut().zip(&own) {
                *value -= factor * own;
            }
        }
    }
    (0..nodes)
        .map(|node| rows[node][nodes] / rows[node][node])
        .collect()
}

/// Any graph, with similarities of which many are equal.
fn any_graph(nodes: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Graph> {
    let dense = (nodes, 0.0..1.0f64);
    dense.prop_flat_map(|(nodes, density)| {
        let pairs: Vec<_> = (0..nodes)
            .flat_map(|b| (0..b).map(move |a| (a, b)))
            .collect();
        let links = prop::collection::vec((0.0..1.0f64, 1u32..=8), pairs.len());
        links.prop_map(move |links| {
            let edges = pairs.iter().zip(links);
            let kept = edges.filter(|(_, (chance, _))| *chance < density);
            graph(
                nodes,
                kept.map(|(&(a, b), (_, eighths))| (a, b, f64::from(eighths) / 8.0)),
            )
        })
    })
}

/// A connected one: a random tree and some edges.
fn connected_graph(nodes: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Graph> {
    any_graph(nodes).prop_map(|mut graph| {
        let label = components(&graph);
        for node in 1..graph.node_count() {
            if label[node] != label[node - 1] {
                graph.update_edge(NodeIndex::new(node - 1), NodeIndex::new(node), 0.5);
            }
        }
        graph
    })
}

fn some(values: Vec<Option<f64>>) -> Vec<f64> {
    values.into_iter().map(Option::unwrap).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn betweenness_equals_its_definition(graph in any_graph(1..=7)) {
        let hops = by_definition(&graph, |_| 1.0);
        prop_assert!(close(&raw(&graph, Centrality::Betweenness), &hops, 1e-12));
        // A similarity of 1 is the least length there is: 2⁻³².
        let least = (1u64 << 32) as f64;
        let complement = by_definition(&graph, |r| (1.0 - r).max(1.0 / least));
        let found = Centrality::Betweenness.of(&graph, Scale::Raw, Lengths::Complement);
        prop_assert!(close(&found, &complement, 1e-12));
        let reciprocal = by_definition(&graph, |r| (least / r).round() / least);
        let found = Centrality::Betweenness.of(&graph, Scale::Raw, Lengths::Reciprocal);
        prop_assert!(close(&found, &reciprocal, 1e-12));
    }

    #[test]
    fn centralities_equal_those_of_rustworkx(graph in any_graph(1..=140)) {
        let betweenness = some(oracle::betweenness_centrality(&graph, false, true, 1000));
        let found = normalised(&graph, Centrality::Betweenness);
        prop_assert!(close(&found, &betweenness, 1e-12), "{found:?} {betweenness:?}");
        let counts = some(oracle::betweenness_centrality(&graph, false, false, 1000));
        prop_assert!(close(&raw(&graph, Centrality::Betweenness), &counts, 1e-10));
        let closeness = some(oracle::closeness_centrality(&graph, true, 1000));
        prop_assert!(close(&normalised(&graph, Centrality::Closeness), &closeness, 1e-12));
        let closeness = some(oracle::closeness_centrality(&graph, false, 1000));
        prop_assert!(close(&raw(&graph, Centrality::Closeness), &closeness, 1e-12));
        if graph.node_count() > 1 {
            let degree = oracle::degree_centrality(&graph, None);
            prop_assert!(close(&normalised(&graph, Centrality::Degree), &degree, 1e-12));
        }
        prop_assert!(close(&[counts.iter().sum()], &[inner_nodes(&graph)], 1e-10));
    }

    #[test]
    fn eigenvector_centralities_equal_those_of_rustworkx(graph in connected_graph(1..=30)) {
        let weight = |_| Ok::<_, ()>(1.0);
        let known = oracle::eigenvector_centrality(&graph, weight, Some(100_000), Some(1e-15));
        let found = normalised(&graph, Centrality::Eigenvector);
        prop_assert!(close(&found, &known.unwrap().unwrap(), 1e-9));
        let norm: f64 = found.iter().map(|value| value * value).sum();
        prop_assert!((norm - 1.0).abs() < 1e-12 && found.iter().all(|value| *value >= 0.0));
    }

    #[test]
    fn equal_lengths_give_the_centralities_of_hops(graph in any_graph(1..=80)) {
        let equal = graph.map(|_, _| (), |_, _| 0.75);
        let hops = raw(&graph, Centrality::Betweenness);
        for lengths in [Lengths::Complement, Lengths::Reciprocal] {
            let found = Centrality::Betweenness.of(&equal, Scale::Raw, lengths);
            prop_assert!(close(&found, &hops, 1e-12));
        }
        let near = Centrality::Closeness.of(&equal, Scale::Raw, Lengths::Complement);
        let quarter: Vec<f64> = raw(&graph, Centrality::Closeness).iter().map(|c| 4.0 * c).collect();
        prop_assert!(close(&near, &quarter, 1e-12));
    }

    #[test]
    fn currents_equal_their_definition(graph in connected_graph(2..=9)) {
        let found = raw(&graph, Centrality::CurrentFlowBetweenness);
        prop_assert!(close(&found, &flow_by_definition(&graph), 1e-9));
        let nodes = graph.node_count();
        let near: Vec<f64> = (0..nodes)
            .map(|node| {
                let others = (0..nodes).filter(|&other| other != node);
                let resistance = others.map(|other| potentials_between(&graph, node, other)[node]);
                1.0 / resistance.sum::<f64>()
            })
            .collect();
        prop_assert!(close(&normalised(&graph, Centrality::CurrentFlowCloseness), &near, 1e-9));
    }

    /// In a forest there is one path between two nodes, and its length is its resistance.
    #[test]
    fn in_a_forest_current_takes_the_paths(parents in prop::collection::vec(any::<u16>(), 2..60)) {
        let edges = parents.iter().enumerate().filter_map(|(node, &parent)| {
            let parent = parent as usize % (node + 2);
            (parent < node).then_some((parent, node, 1.0))
        });
        let forest = graph(parents.len(), edges);
        let flow = normalised(&forest, Centrality::CurrentFlowBetweenness);
        prop_assert!(close(&flow, &normalised(&forest, Centrality::Betweenness), 1e-9));
        let near = raw(&forest, Centrality::CurrentFlowCloseness);
        let label = components(&forest);
        for (node, near) in near.iter().enumerate() {
            let others = label.iter().filter(|other| **other == label[node]).count() - 1;
            let mean = raw(&forest, Centrality::Closeness)[node];
            prop_assert!((near * others as f64 - mean).abs() < 1e-9);
        }
    }

    #[test]
    fn the_order_of_nodes_does_not_matter(
        original in any_graph(1..=40), keys in prop::collection::vec(any::<u64>(), 40),
    ) {
        let nodes = original.node_count();
        let mut order: Vec<usize> = (0..nodes).collect();
        order.sort_by_key(|&node| keys[node]);
        let mut place = vec![0; nodes];
        order.iter().enumerate().for_each(|(at, &node)| place[node] = at);
        let edges = original.edge_indices().map(|edge| {
            let (a, b) = original.edge_endpoints(edge).unwrap();
            (place[a.index()], place[b.index()], original[edge])
        });
        let shuffled = graph(nodes, edges);
        for centrality in ALL {
            for lengths in [Lengths::Hops, Lengths::Complement] {
                let before = centrality.of(&original, Scale::Normalised, lengths);
                let after = centrality.of(&shuffled, Scale::Normalised, lengths);
                let back: Vec<f64> = place.iter().map(|&at| after[at]).collect();
                prop_assert!(close(&back, &before, 1e-9), "{centrality:?}");
            }
        }
    }

    #[test]
    fn isolated_nodes_are_the_least_central(graph in any_graph(2..=20)) {
        for centrality in ALL {
            let found = normalised(&graph, centrality);
            let least = found.iter().copied().fold(f64::INFINITY, f64::min);
            for node in isolated(&graph) {
                prop_assert!(found[node] <= least + 1e-9, "{centrality:?}");
            }
        }
    }
}
