//! The client topology of TFL (Ma, Li & Peng 2024): the graph of members whose models are similar, as it
//! was first learned and as it was last, side by side as in the paper's Figure 6, and as it was between.

mod learned;
#[cfg(test)]
mod tests;

use maud::{Markup, html};

use self::learned::{LearnedGraph, between, learned, said};
use super::NAMED;
use super::regions::Regions;
use crate::layout::{Pair, graph};
use crate::story::{SiloStory, Story};
use crate::svg::{described, px};
use crate::{download, numbers};

/// The width of a drawing, if its nodes fit in.
const WIDTH: f64 = 560.0;
/// The height of a name below a node.
const NAME: f64 = 15.0;
/// The width of a letter, on average and a little more.
const LETTER: f64 = 6.6;
/// The most letters of a name that are written.
const LETTERS: usize = 14;
/// The radius of a silo outside of training.
const OUTSIDE: f64 = 7.0;

/// The section; empty where no graph of members was learned.
pub(super) fn section(story: &Story) -> Markup {
    let graphs = learned(story);
    let (Some(first), Some(last)) = (graphs.first(), graphs.last()) else {
        return html! {};
    };
    let regions = Regions::of(story);
    let changed = first.edges != last.edges;
    let picture = TopologyPicture {
        story,
        regions: &regions,
        labels: labels(story, last),
        radii: radii(story, &graphs),
    };
    let drawn = picture.places(last);
    // Places are those of the last graph, so that one can see which edges came and went.
    let shown: Vec<(&LearnedGraph, &LearnedGraph)> = match changed {
        true => vec![(first, last), (last, first)],
        false => vec![(last, last)],
    };
    let class = if shown.len() > 1 && drawn.width <= 1.2 * WIDTH {
        "pair"
    } else {
        "trail"
    };
    html! {
        section {
            h2 { "Client topology" }
            p { (said(first, last, graphs.len())) }
            p.note {
                "Two " (picture.what(last)) " are joined where their models are similar. A dot’s area is its share in the "
                "prior, which the strategy takes from how central it is. Before the first graph, all had the same share. "
                @if !regions.is_empty() { "Colours are the regions of the silos. " }
                @if !story.outside.is_empty() { "Hollow dots are silos that do not train, which have no model to compare. " }
                @if !picture.named() { "The numbers are those of the list below. " }
                @if changed { "Dashed lines are in this graph and not in the other." }
            }
            (regions.legend())
            div.(class) {
                @for (one, other) in shown { (picture.end(one, other, &drawn, changed)) }
            }
            (picture.key(last))
            (picture.between(&graphs, &drawn))
        }
    }
}

/// Places of the drawing.
struct DrawnTopology {
    places: Vec<Pair>,
    width: f64,
    height: f64,
}

struct TopologyPicture<'a> {
    story: &'a Story,
    regions: &'a Regions<'a>,
    /// The text below each node, if they are few, or in it.
    labels: Vec<String>,
    /// By share in the prior: the largest share of all graphs, and its radius.
    radii: (f64, f64),
}

/// The largest share that a node has in any graph, and the radius that shows it.
fn radii(story: &Story, graphs: &[LearnedGraph]) -> (f64, f64) {
    let shares = graphs.iter().flat_map(|graph| &graph.prior);
    let most = shares.copied().fold(0.0, f64::max);
    let few = (20.0 / story.silos.len().max(1) as f64).cbrt().min(1.0);
    (most, 22.0 * few)
}

fn labels(story: &Story, graph: &LearnedGraph) -> Vec<String> {
    let named = graph.nodes <= NAMED;
    let label = |node: usize| match &graph.clusters {
        Some(_) if named => format!("cluster {}", node + 1),
        None if named => numbers::short(&story.silos[node].name, LETTERS),
        _ => (node + 1).to_string(),
    };
    (0..graph.nodes).map(label).collect()
}

impl TopologyPicture<'_> {
    fn named(&self) -> bool {
        self.labels.len() <= NAMED
    }

    fn what(&self, graph: &LearnedGraph) -> &'static str {
        match graph.clusters {
            Some(_) => "clusters of silos",
            None => "silos",
        }
    }

    fn radius(&self, share: f64) -> f64 {
        let (most, largest) = self.radii;
        // A dot without a name holds a number.
        let least = if self.named() { 4.0 } else { 9.0 };
        let part = if most > 0.0 {
            (share / most).max(0.0).sqrt()
        } else {
            1.0
        };
        (largest * part).max(least)
    }

    /// Returns what a node is, on pointing.
    fn about(&self, graph: &LearnedGraph, node: usize) -> String {
        let Some(clusters) = &graph.clusters else {
            return self.regions.name(&self.story.silos[node]);
        };
        let own = self.story.silos.iter().zip(clusters);
        let own = own.filter(|(_, cluster)| **cluster == Some(node));
        let names: Vec<String> = own.map(|(silo, _)| silo.name.clone()).collect();
        format!("cluster {} of {}", node + 1, numbers::names(&names, 10))
    }

    /// The box of a node with its name, about its middle.
    fn size(&self, node: usize) -> Pair {
        let largest = 2.0 * self.radii.1.max(9.0) + 4.0;
        if !self.named() {
            return (largest, largest);
        }
        let name = LETTER * self.labels[node].chars().count() as f64 + 8.0;
        (largest.max(name), largest + NAME)
    }

    fn places(&self, graph_of: &LearnedGraph) -> DrawnTopology {
        let edges: Vec<(usize, usize)> = graph_of.edges.iter().copied().collect();
        let sizes: Vec<Pair> = (0..graph_of.nodes).map(|node| self.size(node)).collect();
        let (mut places, (width, height)) = graph(&edges, &sizes, WIDTH);
        if self.named() {
            // The dot is above its name.
            places.iter_mut().for_each(|place| place.1 -= NAME / 2.0);
        }
        DrawnTopology {
            places,
            width,
            height,
        }
    }

    /// The first or the last graph, with its numbers.
    fn end(
        &self,
        graph: &LearnedGraph,
        other: &LearnedGraph,
        drawn: &DrawnTopology,
        changed: bool,
    ) -> Markup {
        html! {
            figure {
                figcaption {
                    "After round " (graph.round) ": " (graph.joined())
                    @if changed { span.muted { " (" (graph.more_than(other)) " dashed)" } }
                }
                (self.drawing(graph, other, drawn))
                (download::plot(
                    &format!("{}-topology-{}", self.story.scenario, graph.round),
                    &self.csv(graph),
                ))
            }
        }
    }

    /// The graphs between the first and the last, folded, each beside what it was before.
    fn between(&self, graphs: &[LearnedGraph], drawn: &DrawnTopology) -> Markup {
        let inner = graphs.len().saturating_sub(2);
        let shown = between(graphs);
        let changes = |at: usize| {
            let (before, graph) = (&graphs[at - 1], &graphs[at]);
            let (came, went) = (graph.more_than(before), before.more_than(graph));
            format!("{came} came, {went} went")
        };
        html! {
            @if inner > 0 {
                details.fold {
                    summary { "Graphs between these two: " (inner) }
                    p.note {
                        "Dashed lines were not there in the graph before. "
                        @if shown.len() < inner {
                            "Drawn are " (shown.len()) " of the " (inner) "; the summary as JSON has all of them."
                        }
                    }
                    div.pair {
                        @for &at in &shown {
                            figure {
                                figcaption {
                                    "After round " (graphs[at].round) ": "
                                    (graphs[at].joined())
                                    span.muted { " (" (changes(at)) ")" }
                                }
                                (self.drawing(&graphs[at], &graphs[at - 1], drawn))
                            }
                        }
                    }
                }
            }
        }
    }

    /// A graph; the edges that the other has not are dashed.
    fn drawing(&self, graph: &LearnedGraph, other: &LearnedGraph, drawn: &DrawnTopology) -> Markup {
        let title = format!("Client topology after round {}", graph.round);
        let outside = self.outside(drawn.width, drawn.height);
        let height = drawn.height + outside.as_ref().map_or(0.0, |(_, height)| *height);
        let (kept, only): (Vec<_>, Vec<_>) = graph
            .edges
            .iter()
            .partition(|edge| other.edges.contains(edge));
        // Many lines are drawn thin and pale, so that the dots stay visible.
        let opacity =
            px((12.0 / (graph.edges.len().max(1) as f64).sqrt()).clamp(0.15, 0.7) * 10.0) / 10.0;
        let said = format!(
            "{} between {} {}.",
            graph.joined(),
            graph.nodes,
            self.what(graph)
        );
        described(
            &title,
            &said,
            (drawn.width, height),
            html! {
                path.tie opacity=(opacity) d=(lines(&kept, drawn)) {}
                path.tie.change opacity=(opacity) d=(lines(&only, drawn)) {}
                @for node in 0..graph.nodes { (self.node(graph, node, drawn)) }
                @if let Some((outside, _)) = &outside { (outside) }
            },
        )
    }

    fn node(&self, graph: &LearnedGraph, node: usize, drawn: &DrawnTopology) -> Markup {
        let ((x, y), share) = (drawn.places[node], graph.prior[node]);
        let radius = self.radius(share);
        let class = match graph.clusters {
            None => self.regions.class(&self.story.silos[node]),
            Some(_) => crate::svg::colour(Some(0)),
        };
        let edges = graph.edges.iter();
        let neighbours = edges.filter(|(a, b)| [*a, *b].contains(&node)).count();
        html! {
            g class=(class) {
                title {
                    (self.about(graph, node)) ": " (numbers::plural(neighbours, "neighbour")) ", "
                    (numbers::value(100.0 * share, 2)) " % of the prior"
                }
                circle.node cx=(px(x)) cy=(px(y)) r=(px(radius)) {}
                @if self.named() {
                    // Below the largest dot, so that the names of both drawings are in one place.
                    @let below = self.radii.1.max(9.0) + NAME - 2.0;
                    text.name.halo x=(px(x)) y=(px(y + below)) text-anchor="middle" { (self.labels[node]) }
                } @else {
                    text.count.small[self.labels[node].len() > 2] x=(px(x)) y=(px(y + 3.5)) text-anchor="middle" { (self.labels[node]) }
                }
            }
        }
    }

    /// The silos that do not train in rows below the graph, and the height of these.
    fn outside(&self, width: f64, top: f64) -> Option<(Markup, f64)> {
        const HEAD: f64 = 34.0;
        let silos = &self.story.outside;
        let named = self.named() && silos.len() <= NAMED;
        let cell = if named {
            LETTER * LETTERS as f64 + 12.0
        } else {
            2.0 * OUTSIDE + 6.0
        };
        let high = if named {
            2.0 * OUTSIDE + NAME + 8.0
        } else {
            2.0 * OUTSIDE + 6.0
        };
        let per_row = ((width / cell) as usize).max(1);
        let place = |at: usize| {
            let (row, column) = (at / per_row, at % per_row);
            let x = cell * (column as f64 + 0.5);
            (x, top + HEAD + OUTSIDE + high * row as f64)
        };
        let dot = |(at, silo): (usize, &SiloStory)| {
            let (x, y) = place(at);
            html! {
                g class=(self.regions.class(silo)) {
                    title { (self.regions.name(silo)) ", outside of training" }
                    circle.hollow cx=(px(x)) cy=(px(y)) r=(OUTSIDE) {}
                    @if named {
                        text.name x=(px(x)) y=(px(y + OUTSIDE + NAME - 2.0)) text-anchor="middle" {
                            (numbers::short(&silo.name, LETTERS))
                        }
                    }
                }
            }
        };
        let markup = html! {
            line.axis x1="0" x2=(px(width)) y1=(px(top + 6.0)) y2=(px(top + 6.0)) {}
            text.tick x="4" y=(px(top + 22.0)) { "outside of training" }
            @for silo in silos.iter().enumerate() { (dot(silo)) }
        };
        let rows = silos.len().div_ceil(per_row);
        (!silos.is_empty()).then_some((markup, HEAD + high * rows as f64 + 4.0))
    }

    /// The nodes with their shares, and the edges, as CSV.
    fn csv(&self, graph: &LearnedGraph) -> String {
        let name = |node: usize| match graph.clusters {
            None => self.story.silos[node].name.clone(),
            Some(_) => self.about(graph, node),
        };
        let nodes = (0..graph.nodes).map(|node| {
            let share = graph.prior[node].to_string();
            [(node + 1).to_string(), name(node), share, String::new()]
        });
        // By number: there may be thousands of edges.
        let edges = graph.edges.iter().map(|(a, b)| {
            let (a, b) = ((a + 1).to_string(), (b + 1).to_string());
            [a, String::new(), String::new(), b]
        });
        download::csv(
            &["number", "name", "prior", "joined to"],
            nodes.chain(edges),
        )
    }

    /// The names of nodes that are drawn as numbers.
    fn key(&self, graph: &LearnedGraph) -> Markup {
        html! {
            @if !self.named() {
                details.fold {
                    summary { "Silos by number" }
                    ol.key-list { @for node in 0..graph.nodes { li { (self.about(graph, node)) } } }
                }
            }
        }
    }
}

fn lines(edges: &[&(usize, usize)], drawn: &DrawnTopology) -> String {
    let mut path = String::new();
    for &&(a, b) in edges {
        let (a, b) = (drawn.places[a], drawn.places[b]);
        path.push_str(&format!("M{} {}L{} {}", px(a.0), px(a.1), px(b.0), px(b.1)));
    }
    path
}
