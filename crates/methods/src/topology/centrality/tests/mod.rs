#![allow(clippy::unwrap_used)]

use petgraph::graph::NodeIndex;

use super::*;
use crate::topology::components;

mod properties;

const ALL: [Centrality; 6] = [
    Centrality::Betweenness,
    Centrality::Degree,
    Centrality::Closeness,
    Centrality::Eigenvector,
    Centrality::CurrentFlowBetweenness,
    Centrality::CurrentFlowCloseness,
];

fn graph(nodes: usize, edges: impl IntoIterator<Item = (usize, usize, f64)>) -> Graph {
    let mut graph = Graph::with_capacity(nodes, 0);
    (0..nodes).for_each(|_| {
        graph.add_node(());
    });
    for (a, b, similarity) in edges {
        graph.add_edge(NodeIndex::new(a), NodeIndex::new(b), similarity);
    }
    graph
}

fn plain(nodes: usize, edges: &[(usize, usize)]) -> Graph {
    graph(nodes, edges.iter().map(|&(a, b)| (a, b, 1.0)))
}

fn path(nodes: usize) -> Graph {
    graph(nodes, (1..nodes).map(|node| (node - 1, node, 1.0)))
}

fn complete(nodes: usize) -> Graph {
    let pairs = (0..nodes).flat_map(|a| (0..a).map(move |b| (b, a, 1.0)));
    graph(nodes, pairs)
}

fn normalised(graph: &Graph, centrality: Centrality) -> Vec<f64> {
    centrality.of(graph, Scale::Normalised, Lengths::Hops)
}

fn raw(graph: &Graph, centrality: Centrality) -> Vec<f64> {
    centrality.of(graph, Scale::Raw, Lengths::Hops)
}

fn close(found: &[f64], known: &[f64], tolerance: f64) -> bool {
    found.len() == known.len()
        && found
            .iter()
            .zip(known)
            .all(|(found, known)| (found - known).abs() <= tolerance * known.abs().max(1.0))
}

#[track_caller]
fn assert_close(found: &[f64], known: &[f64], tolerance: f64) {
    assert!(
        close(found, known, tolerance),
        "{found:?} instead of {known:?}"
    );
}

#[test]
fn known_centralities_of_a_path() {
    use Centrality::*;
    let path = path(5);
    let (third, two_thirds) = (1.0f64 / 3.0, 2.0 / 3.0);
    assert_close(&raw(&path, Betweenness), &[0.0, 3.0, 4.0, 3.0, 0.0], 1e-12);
    let betweenness = [0.0, 0.5, two_thirds, 0.5, 0.0];
    assert_close(&normalised(&path, Betweenness), &betweenness, 1e-12);
    let degree = [0.25, 0.5, 0.5, 0.5, 0.25];
    assert_close(&normalised(&path, Degree), &degree, 1e-12);
    let closeness = [0.4, 0.5714285714285714, two_thirds, 0.5714285714285714, 0.4];
    assert_close(&normalised(&path, Closeness), &closeness, 1e-12);
    let (inner, outer) = (third.sqrt(), 0.28867513459481314);
    let eigenvector = [outer, 0.5, inner, 0.5, outer];
    assert_close(&normalised(&path, Eigenvector), &eigenvector, 1e-12);
    assert_close(
        &normalised(&path, CurrentFlowBetweenness),
        &betweenness,
        1e-9,
    );
    let current = [
        0.1,
        0.14285714285714285,
        0.16666666666666666,
        0.14285714285714285,
        0.1,
    ];
    assert_close(&normalised(&path, CurrentFlowCloseness), &current, 1e-9);
    assert_close(&raw(&path, CurrentFlowCloseness), &current, 1e-9);
}

#[test]
fn known_centralities_of_a_tailed_cycle_and_an_isolated_node() {
    let graph = plain(6, &[(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)]);
    let counts = [0.5, 1.0, 1.0, 3.5, 0.0, 0.0];
    assert_close(&raw(&graph, Centrality::Betweenness), &counts, 1e-12);
    let betweenness = [0.05, 0.1, 0.1, 0.35, 0.0, 0.0];
    assert_close(
        &normalised(&graph, Centrality::Betweenness),
        &betweenness,
        1e-12,
    );
    let degree = [0.4, 0.4, 0.4, 0.6, 0.2, 0.0];
    assert_close(&normalised(&graph, Centrality::Degree), &degree, 1e-12);
    let closeness = [
        0.45714285714285713,
        0.5333333333333333,
        0.5333333333333333,
        0.64,
        0.4,
        0.0,
    ];
    assert_close(
        &normalised(&graph, Centrality::Closeness),
        &closeness,
        1e-12,
    );
}

/// Two triangles and a square in a ring; values by networkx 3.6.
const EIGHT: [(usize, usize, f64); 11] = [
    (0, 1, 0.75),
    (0, 2, 0.5),
    (1, 2, 0.5),
    (2, 3, 0.625),
    (3, 4, 0.875),
    (4, 5, 0.5),
    (3, 5, 0.75),
    (5, 6, 0.625),
    (6, 7, 0.5),
    (4, 7, 0.75),
    (1, 6, 0.5),
];

#[test]
fn centralities_of_eight_nodes_equal_those_of_networkx() {
    use Centrality::*;
    let graph = graph(8, EIGHT);
    let betweenness = [
        0.0,
        0.19047619047619047,
        0.1825396825396825,
        0.2063492063492063,
        0.09523809523809523,
        0.0873015873015873,
        0.246031746031746,
        0.03968253968253967,
    ];
    assert_close(&normalised(&graph, Betweenness), &betweenness, 1e-12);
    let closeness = [
        0.4666666666666667,
        0.5833333333333334,
        0.5833333333333334,
        0.6363636363636364,
        0.5384615384615384,
        0.5833333333333334,
        0.6363636363636364,
        0.5,
    ];
    assert_close(&normalised(&graph, Closeness), &closeness, 1e-12);
    let eigenvector = [
        0.24897945072520472,
        0.3442800274938954,
        0.3566532139982696,
        0.4107996625985744,
        0.38722169889469304,
        0.4126186783267601,
        0.363593168771701,
        0.26669797105062243,
    ];
    assert_close(&normalised(&graph, Eigenvector), &eigenvector, 1e-12);
    let flow = [
        0.10123734533183366,
        0.3097112860892388,
        0.3078365204349456,
        0.33670791151106094,
        0.2523434570678665,
        0.23397075365579303,
        0.36820397450318715,
        0.14848143982002257,
    ];
    assert_close(&normalised(&graph, CurrentFlowBetweenness), &flow, 1e-9);
    let resistance = [
        0.12211538461538467,
        0.15914786967418548,
        0.15875000000000006,
        0.17069892473118284,
        0.1591478696741855,
        0.16536458333333337,
        0.172554347826087,
        0.1334033613445378,
    ];
    assert_close(&normalised(&graph, CurrentFlowCloseness), &resistance, 1e-9);
}

#[test]
fn centralities_with_edge_lengths_equal_those_of_networkx() {
    let graph = graph(8, EIGHT);
    let of = |centrality: Centrality, lengths| centrality.of(&graph, Scale::Normalised, lengths);
    let complement = [
        0.0,
        0.11904761904761904,
        0.23809523809523808,
        0.42857142857142855,
        0.16666666666666666,
        0.09523809523809523,
        0.14285714285714285,
        0.023809523809523808,
    ];
    assert_close(
        &of(Centrality::Betweenness, Lengths::Complement),
        &complement,
        1e-12,
    );
    let near = [
        1.2173913043478262,
        1.4,
        1.6470588235294117,
        2.0,
        1.75,
        1.6470588235294117,
        1.5555555555555556,
        1.4736842105263157,
    ];
    assert_close(
        &of(Centrality::Closeness, Lengths::Complement),
        &near,
        1e-12,
    );
    let reciprocal = [
        0.0,
        0.16666666666666666,
        0.21428571428571427,
        0.26190476190476186,
        0.14285714285714285,
        0.047619047619047616,
        0.16666666666666666,
        0.047619047619047616,
    ];
    assert_close(
        &of(Centrality::Betweenness, Lengths::Reciprocal),
        &reciprocal,
        1e-12,
    );
    // Lengths are rounded to 2⁻³².
    let near = [
        0.27694046721929166,
        0.329006266786034,
        0.3617125984251969,
        0.41952054794520544,
        0.34933460076045625,
        0.3547297297297297,
        0.36458333333333337,
        0.31038851351351354,
    ];
    assert_close(&of(Centrality::Closeness, Lengths::Reciprocal), &near, 1e-9);
}

#[test]
fn extreme_similarities_still_have_lengths() {
    // Complete, so that all centralities by hops are 0; 0 and 1 are next to each other.
    let graph = graph(3, [(0, 1, 1.0), (1, 2, 1.0), (0, 2, 0.0)]);
    for lengths in [Lengths::Complement, Lengths::Reciprocal] {
        let found = Centrality::Betweenness.of(&graph, Scale::Raw, lengths);
        assert_eq!(found, [0.0, 1.0, 0.0], "{lengths:?}");
        let near = Centrality::Closeness.of(&graph, Scale::Normalised, lengths);
        assert!(near.iter().all(|near| near.is_finite() && *near > 0.0));
    }
}

#[test]
fn symmetric_graphs_have_equal_centralities() {
    for nodes in 0..6 {
        let cycle = graph(
            nodes,
            (0..nodes * usize::from(nodes > 2)).map(|a| (a, (a + 1) % nodes, 1.0)),
        );
        for graph in [plain(nodes, &[]), complete(nodes), cycle] {
            for centrality in ALL {
                for scale in [Scale::Normalised, Scale::Raw] {
                    for lengths in [Lengths::Hops, Lengths::Complement, Lengths::Reciprocal] {
                        let found = centrality.of(&graph, scale, lengths);
                        assert_eq!(found.len(), nodes);
                        assert!(found.iter().all(|value| value.is_finite() && *value >= 0.0));
                        let first = vec![found.first().copied().unwrap_or(0.0); nodes];
                        assert_close(&found, &first, 1e-12);
                    }
                }
            }
        }
    }
}

#[test]
fn complete_graphs_have_the_largest_values() {
    for nodes in 3..70 {
        let complete = complete(nodes);
        assert_eq!(
            normalised(&complete, Centrality::Betweenness),
            vec![0.0; nodes]
        );
        assert_eq!(normalised(&complete, Centrality::Degree), vec![1.0; nodes]);
        assert_eq!(
            normalised(&complete, Centrality::Closeness),
            vec![1.0; nodes]
        );
        // Any two nodes are at a resistance of 2/K.
        let near = nodes as f64 / (2.0 * (nodes - 1) as f64);
        let found = normalised(&complete, Centrality::CurrentFlowCloseness);
        assert_close(&found, &vec![near; nodes], 1e-12);
    }
    let star = graph(70, (1..70).map(|leaf| (0, leaf, 1.0)));
    let mut most = vec![0.0; 70];
    most[0] = 1.0;
    assert_eq!(normalised(&star, Centrality::Betweenness), most);
    assert_close(
        &normalised(&star, Centrality::CurrentFlowBetweenness),
        &most,
        1e-12,
    );
}

#[test]
fn the_eigenvector_belongs_to_the_best_connected_components() {
    let third = 3f64.sqrt().recip();
    let mixed = plain(6, &[(0, 1), (2, 3), (3, 4), (2, 4)]);
    let known = [0.0, 0.0, third, third, third, 0.0];
    assert_close(&normalised(&mixed, Centrality::Eigenvector), &known, 1e-12);
    let triangles = plain(6, &[(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)]);
    let sixth = vec![6f64.sqrt().recip(); 6];
    assert_close(
        &normalised(&triangles, Centrality::Eigenvector),
        &sixth,
        1e-12,
    );
    // Bipartite: the iteration without the identity would never settle.
    let star = plain(3, &[(0, 1), (0, 2)]);
    assert_close(
        &normalised(&star, Centrality::Eigenvector),
        &[0.5f64.sqrt(), 0.5, 0.5],
        1e-12,
    );
}

#[test]
fn small_components_do_not_count_as_central() {
    // A path of five and a pair.
    let graph = plain(7, &[(0, 1), (1, 2), (2, 3), (3, 4), (5, 6)]);
    let near = normalised(&graph, Centrality::CurrentFlowCloseness);
    assert_close(
        &near[..5],
        &[4.0 / 90.0, 4.0 / 63.0, 2.0 / 27.0, 4.0 / 63.0, 4.0 / 90.0],
        1e-12,
    );
    assert_close(&near[5..], &[1.0 / 36.0; 2], 1e-12);
    assert_close(
        &raw(&graph, Centrality::CurrentFlowCloseness)[5..],
        &[1.0; 2],
        1e-12,
    );
    let flow = normalised(&graph, Centrality::CurrentFlowBetweenness);
    assert_close(&flow, &normalised(&graph, Centrality::Betweenness), 1e-12);
}

/// Layers of three nodes, each linked to all of the next layer: 3^(layers − 1) shortest paths.
fn layered(layers: usize) -> Graph {
    let edges = (3..3 * layers).flat_map(|node| {
        let before = 3 * (node / 3 - 1);
        (before..before + 3).map(move |other| (other, node, 1.0))
    });
    graph(3 * layers, edges)
}

#[test]
fn more_paths_than_a_float_can_count() {
    // Beyond 646 layers there are more than 10³⁰⁸ paths from end to end.
    let layers = 660;
    let graph = layered(layers);
    let known: Vec<f64> = (0..3 * layers)
        .map(|node| {
            let (before, after) = (node / 3, layers - 1 - node / 3);
            // All pairs with the layer between them; and the three pairs within a neighbouring
            // layer, of which half the paths come this way if they have a layer on both sides.
            let around = |side: usize| match side {
                0 => 0.0,
                1 => 3.0,
                _ => 1.5,
            };
            ((9 * before * after) as f64 + around(before) + around(after)) / 3.0
        })
        .collect();
    assert_close(&raw(&graph, Centrality::Betweenness), &known, 1e-9);
    let equal = Centrality::Betweenness.of(&graph, Scale::Raw, Lengths::Complement);
    assert_close(&equal, &known, 1e-9);
}

#[test]
fn counts_too_far_apart_for_a_float() {
    // Beside the layers a single path from the first to the last node, as long as the layers.
    // Thrice scaled down, the single path would count 10⁻⁴⁵⁰.
    let layers = 960;
    let wide = layered(layers);
    let (first, last) = (0, 3 * layers - 1);
    let nodes = 3 * layers + layers - 2;
    let single: Vec<usize> = std::iter::once(first)
        .chain(3 * layers..nodes)
        .chain([last])
        .collect();
    let edges = wide
        .edge_indices()
        .map(|edge| wide.edge_endpoints(edge).unwrap());
    let edges = edges.map(|(a, b)| (a.index(), b.index(), 1.0));
    let graph = graph(
        nodes,
        edges.chain(single.windows(2).map(|pair| (pair[0], pair[1], 1.0))),
    );
    for lengths in [Lengths::Hops, Lengths::Complement] {
        let found = Centrality::Betweenness.of(&graph, Scale::Raw, lengths);
        assert_close(&[found.iter().sum()], &[inner_nodes(&graph)], 1e-9);
    }
}

/// Inner nodes of shortest paths over all pairs, `Σ (d − 1)`: what betweenness has to sum to.
fn inner_nodes(graph: &Graph) -> f64 {
    let reach = closeness(graph, Lengths::Hops);
    reach
        .iter()
        .map(|reach| reach.distance - reach.others)
        .sum::<f64>()
        / 2.0
}

#[test]
fn threads_do_not_change_a_bit() {
    // Three clumps of different density, one of them apart.
    let edges = (0..150usize)
        .flat_map(|b| (0..b).map(move |a| (a, b)))
        .filter(|(a, b)| {
            let clump = a % 3;
            let noise = (a * 7919 + b * 104_729) % 1009;
            a % 3 == b % 3 && noise < 200 * (clump + 1) || noise < 5 && clump < 2 && b % 3 < 2
        });
    let graph = graph(
        150,
        edges.map(|(a, b)| (a, b, ((a * b) % 97) as f64 / 97.0)),
    );
    assert!(components(&graph).contains(&1));
    for centrality in ALL {
        for lengths in [Lengths::Hops, Lengths::Complement] {
            let bits = |threads: usize| -> Vec<u64> {
                let pool = rayon::ThreadPoolBuilder::new()
                    .num_threads(threads)
                    .build()
                    .unwrap();
                let found = pool.install(|| centrality.of(&graph, Scale::Normalised, lengths));
                found.into_iter().map(f64::to_bits).collect()
            };
            let alone = bits(1);
            assert_eq!(bits(2), alone, "{centrality:?}");
            assert_eq!(bits(5), alone, "{centrality:?}");
        }
    }
}

#[test]
fn names_in_files() {
    let names = ALL.map(|centrality| serde_json::to_string(&centrality).unwrap());
    let known = [
        "betweenness",
        "degree",
        "closeness",
        "eigenvector",
        "current-flow-betweenness",
        "current-flow-closeness",
    ];
    assert_eq!(names, known.map(|name| format!("{name:?}")));
}
