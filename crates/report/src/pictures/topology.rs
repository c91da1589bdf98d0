//! The client topology of TFL (Ma, Li & Peng 2024): the graph of members whose models are similar, as it
//! was first learned and as it was last, side by side as in the paper's Figure 6.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use serde_json::Value;

use super::regions::Regions;
use super::{NAMED, kept, of_members};
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

/// A graph as it was learned in a round.
#[derive(Debug, PartialEq)]
struct LearnedGraph {
    /// The first round after which it was like this.
    round: u64,
    nodes: usize,
    edges: BTreeSet<(usize, usize)>,
    /// The cluster of every member, where nodes are clusters.
    clusters: Option<Vec<Option<usize>>>,
    /// One number per node, adding up to 1.
    prior: Vec<f64>,
}

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
        about: about(story, &regions, last),
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
                @if !story.outside.is_empty() { "Hollow dots are silos outside of training, which have no model to compare. " }
                @if !picture.named() { "The numbers are those of the list below. " }
                @if changed { "Dashed lines are in this graph and not in the other." }
            }
            (regions.legend())
            div.(class) {
                @for (one, other) in shown { (picture.figure(one, other, &drawn, changed)) }
            }
            (picture.key())
        }
    }
}

/// The graphs that differ from the one before, in order.
fn learned(story: &Story) -> Vec<LearnedGraph> {
    let members = story.silos.len();
    let mut graphs: Vec<LearnedGraph> = Vec::new();
    for round in &story.rounds {
        let Some(graph) = read(&round.memory, members, round.round) else {
            continue;
        };
        match graphs.last_mut() {
            Some(before) if before.edges == graph.edges && before.clusters == graph.clusters => {
                before.prior = graph.prior;
            }
            _ => graphs.push(graph),
        }
    }
    graphs
}

/// The graph that a strategy keeps after a round.
fn read(memory: &BTreeMap<String, Value>, members: usize, round: u64) -> Option<LearnedGraph> {
    let graph = kept(memory, ".graph")?;
    let nodes = graph.get("nodes")?.as_u64()? as usize;
    let end = |value: &Value| value.as_u64().map(|end| end as usize);
    let edge = |pair: &Value| {
        let [a, b] = pair.as_array()?.as_slice() else {
            return None;
        };
        let (a, b) = (end(a)?, end(b)?);
        (a.max(b) < nodes).then_some((a.min(b), a.max(b)))
    };
    let edges: Option<BTreeSet<_>> = graph.get("edges")?.as_array()?.iter().map(edge).collect();
    let clusters = kept(memory, ".clusters").and_then(Value::as_array);
    let clusters = clusters.filter(|all| all.len() == members && nodes != members);
    let clusters = clusters.map(|all| all.iter().map(end).collect::<Vec<_>>());
    let prior = kept(memory, ".prior").and_then(|prior| of_members(prior, members));
    let prior = prior.unwrap_or_else(|| vec![1.0 / members.max(1) as f64; members]);
    let prior = match &clusters {
        None if nodes == members => prior,
        None => return None,
        Some(clusters) => {
            let mut sums = vec![0.0; nodes];
            for (cluster, share) in clusters.iter().zip(&prior) {
                *sums.get_mut((*cluster)?)? += share;
            }
            sums
        }
    };
    Some(LearnedGraph {
        round,
        nodes,
        edges: edges?,
        clusters,
        prior,
    })
}

/// How the graph changed, in one sentence.
fn said(first: &LearnedGraph, last: &LearnedGraph, graphs: usize) -> String {
    let pairs = |graph: &LearnedGraph| graph.nodes * graph.nodes.saturating_sub(1) / 2;
    let of = |graph: &LearnedGraph| {
        let (edges, pairs) = (graph.edges.len(), pairs(graph));
        if pairs > 0 && edges == pairs {
            format!("all {pairs} pairs")
        } else {
            format!("{edges} of {pairs} pairs")
        }
    };
    if graphs == 1 {
        return format!(
            "Learned after round {}, and the same since: {} are joined.",
            last.round,
            of(last)
        );
    }
    let came = last.edges.difference(&first.edges).count();
    let went = first.edges.difference(&last.edges).count();
    format!(
        "First learned after round {}, when {} were joined; the last change was after round {}, and since then {} \
         are. Between the two {} came and {went} went.",
        first.round,
        of(first),
        last.round,
        of(last),
        numbers::plural(came, "edge"),
    )
}

/// Where everything is.
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
    /// The text on pointing, without numbers.
    about: Vec<String>,
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

fn about(story: &Story, regions: &Regions<'_>, graph: &LearnedGraph) -> Vec<String> {
    let about = |node: usize| match &graph.clusters {
        None => regions.name(&story.silos[node]),
        Some(clusters) => {
            let own = story.silos.iter().zip(clusters);
            let own = own.filter(|(_, cluster)| **cluster == Some(node));
            let names: Vec<String> = own.map(|(silo, _)| silo.name.clone()).collect();
            format!("cluster {} of {}", node + 1, numbers::names(&names, 10))
        }
    };
    (0..graph.nodes).map(about).collect()
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

    fn figure(
        &self,
        graph: &LearnedGraph,
        other: &LearnedGraph,
        drawn: &DrawnTopology,
        changed: bool,
    ) -> Markup {
        let joined = numbers::plural(graph.edges.len(), "edge");
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
        let said = format!("{joined} between {} {}.", graph.nodes, self.what(graph));
        html! {
            figure {
                figcaption {
                    "After round " (graph.round) ": " (joined)
                    @if changed { span.muted { " (" (only.len()) " dashed)" } }
                }
                (described(&title, &said, (drawn.width, height), html! {
                    path.tie opacity=(opacity) d=(lines(&kept, drawn)) {}
                    path.tie.change opacity=(opacity) d=(lines(&only, drawn)) {}
                    @for node in 0..graph.nodes { (self.node(graph, node, drawn)) }
                    @if let Some((outside, _)) = &outside { (outside) }
                }))
                (download::plot(
                    &format!("{}-topology-{}", self.story.scenario, graph.round),
                    &self.csv(graph),
                ))
            }
        }
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
                    (self.about[node]) ": " (numbers::plural(neighbours, "neighbour")) ", "
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

    /// The silos outside of training in rows below the graph, and the height of these.
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
            Some(_) => self.about[node].clone(),
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
    fn key(&self) -> Markup {
        html! {
            @if !self.named() {
                details.fold {
                    summary { "Silos by number" }
                    ol.key-list { @for name in &self.about { li { (name) } } }
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::tests::{assert_inside, numbers_of};
    use super::*;
    use crate::fixture;
    use serde_json::json;

    /// A story whose members form a ring in rounds 2 and 3, and a ring with chords from round 4 on.
    fn story(silos: usize, outside: usize) -> Story {
        let mut summary = fixture::summary(silos + outside, 1, 5);
        for (at, silo) in summary.silos.iter_mut().enumerate() {
            silo.outside = at >= silos;
            silo.group = Some(["West", "South", "Midwest"][at % 3].into());
        }
        let ring: Vec<_> = (1..silos).map(|at| json!([at - 1, at])).collect();
        let chords: Vec<_> = (3..silos).map(|at| json!([at - 3, at])).collect();
        let prior: Vec<f64> = (0..silos).map(|_| 1.0 / silos as f64).collect();
        for round in &mut summary.rounds {
            if round.round == 1 {
                continue;
            }
            let mut edges = ring.clone();
            if round.round > 3 {
                edges.extend(chords.clone());
                edges.drain(..edges.len().min(1));
            }
            let graph = json!({ "nodes": silos, "edges": edges });
            round.memory.insert("tfl.graph".into(), graph);
            round.memory.insert("tfl.prior".into(), json!(prior));
        }
        Story::of(&summary, "")
    }

    #[test]
    fn the_first_and_the_last_graph_are_drawn_with_what_came_and_went() {
        let page = section(&story(6, 2)).into_string();
        assert!(page.contains(
            "First learned after round 2, when 5 of 15 pairs were joined; the last change was after round 4, and \
             since then 7 of 15 pairs are. Between the two 3 edges came and 1 went."
        ), "{page}");
        assert_eq!(page.matches("<svg role").count(), 2);
        // Each member in both, and each silo outside.
        assert_eq!(page.matches("<circle class=\"node\" cx").count(), 12 + 3);
        assert_eq!(page.matches("<circle class=\"hollow\"").count(), 4);
        assert!(page.contains("Hospital 01 (West): 1 neighbour, 16.67 % of the prior"));
        for region in ["West", "South", "Midwest"] {
            assert!(page.contains(&format!("</svg>{region}</li>")), "{page}");
        }
    }

    #[test]
    fn everything_is_inside_and_no_name_is_on_another() {
        for (silos, outside) in [(1, 0), (2, 1), (6, 2), (20, 14), (139, 0), (125, 14)] {
            let page = section(&story(silos, outside)).into_string();
            assert_inside(&page);
            assert_eq!(page, section(&story(silos, outside)).into_string());
            assert_eq!(page.contains("class=\"name halo\""), silos <= NAMED);
        }
        let page = section(&story(20, 0)).into_string();
        let names = page.split("<text class=\"name halo\"").skip(1);
        let names: Vec<(f64, f64, f64)> = names
            .take(20)
            .map(|text| {
                let place = |attribute| numbers_of(text, attribute)[0];
                let label = text.split('>').nth(1).unwrap().split('<').next().unwrap();
                (
                    place("x"),
                    place("y"),
                    LETTER * label.chars().count() as f64,
                )
            })
            .collect();
        for (at, a) in names.iter().enumerate() {
            for b in &names[..at] {
                let apart = (a.0 - b.0).abs() >= (a.2 + b.2) / 2.0 || (a.1 - b.1).abs() >= 13.0;
                assert!(apart, "{a:?} and {b:?}");
            }
        }
    }

    #[test]
    fn clusters_are_nodes_with_the_shares_of_their_members() {
        let mut story = story(4, 0);
        for round in &mut story.rounds {
            let graph = json!({ "nodes": 2, "edges": [[0, 1]] });
            round.memory.insert("tfl.graph".into(), graph);
            round
                .memory
                .insert("tfl.clusters".into(), json!([0, 1, 1, 1]));
            round
                .memory
                .insert("tfl.prior".into(), json!([0.25, 0.25, 0.25, 0.25]));
        }
        let page = section(&story).into_string();
        assert!(
            page.contains("Learned after round 1, and the same since: all 1 pairs are joined."),
            "{page}"
        );
        assert!(page.contains("cluster 2 of Hospital 02, Hospital 03, Hospital 04: 1 neighbour, 75.00 % of the prior"), "{page}");
    }

    #[test]
    fn a_graph_that_does_not_fit_the_members_is_not_drawn() {
        let mut story = story(4, 0);
        for (round, graph) in story.rounds.iter_mut().zip([
            json!({ "nodes": 3, "edges": [] }),
            json!({ "nodes": 4, "edges": [[0, 4]] }),
            json!({ "nodes": 4, "edges": [[0]] }),
            json!([1.0]),
            json!(null),
        ]) {
            round.memory.insert("tfl.graph".into(), graph);
        }
        assert_eq!(section(&story).into_string(), "");
    }
}
