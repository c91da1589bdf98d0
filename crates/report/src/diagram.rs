//! A graph as an SVG drawing, and as text for Graphviz.

use std::fmt::Write;

use maud::{Markup, PreEscaped, html};

use super::layout::{Pair, parts, separate, shelves, spread};
use super::numbers;
use super::palette::inlined;
use super::svg::{colour, px};

const WIDTH: f64 = 900.0;
/// Radii of the heaviest node, if there are few, and of the lightest, which has to hold a number.
const LARGEST: f64 = 26.0;
const SMALLEST: f64 = 11.0;
/// The number of nodes above which nodes are drawn smaller.
const FEW: f64 = 20.0;
/// The number of edges above which lines are thin.
const DENSE: usize = 100;
/// The length of an edge, if there is room.
const HOP: f64 = 120.0;
/// The gap between nodes, and around a component.
const GAP: f64 = 10.0;
/// The height of the two lines of text above the drawing.
const HEAD: f64 = 64.0;

/// A graph to draw.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagram {
    /// The title.
    pub title: String,
    /// The meaning of sizes and colours.
    pub note: String,
    /// The nodes; edges name them by their index here.
    pub nodes: Vec<DiagramNode>,
    /// Pairs of neighbours, each once.
    pub edges: Vec<(usize, usize)>,
}

/// A node.
#[derive(Debug, Clone, PartialEq)]
pub struct DiagramNode {
    /// The text in it: a few characters.
    pub label: String,
    /// The text that shows on pointing.
    pub about: String,
    /// The area, relative to the others; at least 0.
    pub weight: f64,
}

impl Diagram {
    /// The drawing as one SVG file, for light and dark mode. The same graph gives the same drawing.
    pub fn svg(&self) -> String {
        let radii = self.radii();
        let (places, width, height) = self.places(&radii);
        let size = format!("0 0 {} {}", px(width), px(height));
        html! {
            svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox=(size) width=(px(width)) height=(px(height)) {
                title { (self.title) }
                style { (PreEscaped(inlined(include_str!("diagram.css")))) }
                rect.paper width="100%" height="100%" {}
                text x="20" y="28" { (self.title) }
                text.note x="20" y="48" { (self.note) }
                path class=(if self.edges.len() > DENSE { "edge thin" } else { "edge" }) d=(self.paths(&places)) {}
                @for (index, members) in self.components().iter().enumerate() {
                    g class=(if members.len() == 1 { "alone".to_owned() } else { colour(Some(index)) }) {
                        @for &node in members { (self.disc(node, places[node], radii[node])) }
                    }
                }
            }
        }
        .into_string()
    }

    /// The diagram as text for Graphviz.
    pub fn dot(&self) -> String {
        let quoted = |text: &str| format!("\"{}\"", text.replace('\\', r"\\").replace('"', "\\\""));
        let mut dot = format!("graph {{\n  label={}\n", quoted(&self.title));
        dot += "  node [shape=circle, fixedsize=true, style=filled, fillcolor=white]\n";
        for (index, (node, radius)) in self.nodes.iter().zip(self.radii()).enumerate() {
            let (label, about) = (quoted(&node.label), quoted(&node.about));
            // In inches.
            let width = radius / 36.0;
            let _ = writeln!(
                dot,
                "  {index} [label={label}, tooltip={about}, width={width:.2}]"
            );
        }
        for (a, b) in &self.edges {
            let _ = writeln!(dot, "  {a} -- {b}");
        }
        dot + "}\n"
    }

    fn radii(&self) -> Vec<f64> {
        let weights = self.nodes.iter().map(|node| node.weight);
        let most = weights.clone().fold(0.0, f64::max);
        let largest = LARGEST * (FEW / self.nodes.len() as f64).cbrt().min(1.0);
        let part = |weight: f64| {
            if most > 0.0 {
                (weight / most).sqrt()
            } else {
                1.0
            }
        };
        weights
            .map(|weight| (largest * part(weight)).max(SMALLEST))
            .collect()
    }

    fn neighbours(&self) -> Vec<Vec<usize>> {
        let mut neighbours = vec![Vec::new(); self.nodes.len()];
        for &(a, b) in &self.edges {
            neighbours[a].push(b);
            neighbours[b].push(a);
        }
        neighbours
    }

    /// The connected components, the largest first.
    fn components(&self) -> Vec<Vec<usize>> {
        parts(&self.neighbours())
    }

    /// The middle of every node, and the total width and height.
    fn places(&self, radii: &[f64]) -> (Vec<Pair>, f64, f64) {
        let neighbours = self.neighbours();
        let components = self.components();
        let laid: Vec<(Vec<Pair>, Pair)> = components
            .iter()
            .map(|members| component(members, &neighbours, radii))
            .collect();
        let boxes: Vec<Pair> = laid.iter().map(|(_, size)| *size).collect();
        let width = boxes.iter().map(|(wide, _)| *wide).fold(WIDTH, f64::max);
        let (middles, height) = shelves(&boxes, width);
        let mut places = vec![(0.0, 0.0); self.nodes.len()];
        for ((members, (laid, _)), (x, y)) in components.iter().zip(laid).zip(middles) {
            for (&node, place) in members.iter().zip(laid) {
                places[node] = (x + place.0, HEAD + y + place.1);
            }
        }
        (places, width, HEAD + height + GAP)
    }

    fn paths(&self, places: &[Pair]) -> String {
        let mut path = String::new();
        for &(a, b) in &self.edges {
            let (a, b) = (places[a], places[b]);
            let _ = write!(path, "M{} {}L{} {}", px(a.0), px(a.1), px(b.0), px(b.1));
        }
        path
    }

    fn disc(&self, node: usize, (x, y): Pair, radius: f64) -> Markup {
        let DiagramNode { label, about, .. } = &self.nodes[node];
        html! {
            g {
                title { (about) }
                circle.node cx=(px(x)) cy=(px(y)) r=(px(radius)) {}
                text.label x=(px(x)) y=(px(y + 4.0)) { (numbers::short(label, 5)) }
            }
        }
    }
}

/// Places of a component's nodes about its middle, and the size of the box that it needs.
fn component(members: &[usize], neighbours: &[Vec<usize>], radii: &[f64]) -> (Vec<Pair>, Pair) {
    let place = |node: &usize| {
        members
            .binary_search(node)
            .expect("neighbours are in one component")
    };
    let among: Vec<Vec<usize>> = members
        .iter()
        .map(|&node| neighbours[node].iter().map(place).collect())
        .collect();
    let radii: Vec<f64> = members.iter().map(|&node| radii[node]).collect();
    let mut places: Vec<Pair> = spread(&among)
        .into_iter()
        .map(|(x, y)| (HOP * x, HOP * y))
        .collect();
    separate(&mut places, &radii, GAP);
    let around = |at: fn(&Pair) -> f64| {
        let ends = places.iter().zip(&radii);
        ends.fold(
            (f64::INFINITY, f64::NEG_INFINITY),
            |(low, high), (place, radius)| {
                (low.min(at(place) - radius), high.max(at(place) + radius))
            },
        )
    };
    let ((left, right), (top, bottom)) = (around(|place| place.0), around(|place| place.1));
    let middle = ((left + right) / 2.0, (top + bottom) / 2.0);
    for place in &mut places {
        *place = (place.0 - middle.0, place.1 - middle.1);
    }
    (places, (right - left + 4.0 * GAP, bottom - top + 2.0 * GAP))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagram(nodes: usize, edges: &[(usize, usize)]) -> Diagram {
        let node = |index: usize| DiagramNode {
            label: index.to_string(),
            about: format!("silo {index} <&\">"),
            weight: 1.0 / (1 + index) as f64,
        };
        Diagram {
            title: "a \"graph\" & more".into(),
            note: "a < b".into(),
            nodes: (0..nodes).map(node).collect(),
            edges: edges.to_vec(),
        }
    }

    fn complete(nodes: usize) -> Vec<(usize, usize)> {
        (0..nodes)
            .flat_map(|a| (0..a).map(move |b| (b, a)))
            .collect()
    }

    #[test]
    fn every_node_is_inside_the_drawing_and_no_two_overlap() {
        let line: Vec<(usize, usize)> = (1..30).map(|k| (k - 1, k)).collect();
        let star: Vec<(usize, usize)> = (1..40).map(|k| (0, k)).collect();
        for (nodes, edges) in [
            (1, vec![]),
            (30, vec![]),
            (30, line),
            (40, star),
            (50, complete(50)),
        ] {
            let diagram = diagram(nodes, &edges);
            let radii = diagram.radii();
            let (places, width, height) = diagram.places(&radii);
            for a in 0..nodes {
                let (x, y) = places[a];
                assert!(
                    x > radii[a] && x + radii[a] < width,
                    "{nodes}: {x} of {width}"
                );
                assert!(
                    y > HEAD + radii[a] && y + radii[a] < height,
                    "{nodes}: {y} of {height}"
                );
                for b in 0..a {
                    let apart = (x - places[b].0).hypot(y - places[b].1);
                    assert!(apart > radii[a] + radii[b], "{nodes}: {a} and {b}");
                }
            }
            let svg = diagram.svg();
            assert_eq!(svg.matches("<circle class=\"node\"").count(), nodes);
            assert_eq!(svg.matches('L').count(), edges.len());
            assert!(!svg.contains("NaN") && svg == diagram.svg());
        }
    }

    #[test]
    fn components_have_colours_and_isolated_nodes_are_marked() {
        let diagram = diagram(6, &[(1, 4), (4, 5), (2, 3)]);
        assert_eq!(diagram.components(), [vec![1, 4, 5], vec![2, 3], vec![0]]);
        let svg = diagram.svg();
        for once in [
            "<g class=\"k0\">",
            "<g class=\"k1\">",
            "<g class=\"alone\">",
        ] {
            assert_eq!(svg.matches(once).count(), 1, "{once} in {svg}");
        }
    }

    #[test]
    fn texts_are_escaped_in_svg_and_dot() {
        let diagram = diagram(2, &[(0, 1)]);
        let svg = diagram.svg();
        assert!(svg.contains("a &quot;graph&quot; &amp; more") && svg.contains("a &lt; b"));
        let dot = diagram.dot();
        assert!(dot.contains(r#"label="a \"graph\" & more""#), "{dot}");
        assert!(dot.contains("\n  0 -- 1\n") && dot.starts_with("graph {") && dot.ends_with("}\n"));
    }

    #[test]
    fn a_graph_without_nodes_is_an_empty_drawing() {
        assert!(diagram(0, &[]).svg().contains("</svg>"));
    }
}
